"""Flows drawn at random end where they must: no cycle is missed, none invented, and what rests is at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fresh_flows import KINDS, drawn, line, neutral, outside_an_unstable_ring, saddle, spiral
from separatrix.core import Outcome
from separatrix.dynamics import integrate

N_FLOWS = 20
MOST_STEPS = 4000
BESIDE = 3e-5
"""Distance from the end on a line, relative: errors of 1e-6 a step add up along it."""


def told(kind: Callable[..., Any], seed: tuple[int, ...]) -> str:
    """What is wrong with the end of one flow; empty if nothing is."""
    flow, start, core = drawn(kind, seed)
    run = integrate(flow, start, max_steps=MOST_STEPS)
    outcome = Outcome(int(run.outcome))
    if core.period is None:
        if outcome != Outcome.CONVERGED:
            return f"{seed}: {outcome.label} instead of rest"
        beside = 0.0 if core.end is None else float((run.final - core.end).norm() / core.end.norm())
        return "" if beside < BESIDE else f"{seed}: ends {beside:.1e} beside its end"
    if outcome != Outcome.CYCLE:
        return f"{seed}: {outcome.label} instead of a cycle"
    floquet = run.cycles[0]
    if abs(floquet.period / core.period - 1) > 1e-4:
        return f"{seed}: period {floquet.period:.6g} instead of {core.period:.6g}"
    return "" if floquet.stable == core.stable else f"{seed}: stable {floquet.stable}"


ONE_OF_A_KIND = (line, neutral, outside_an_unstable_ring, saddle, spiral)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ONE_OF_A_KIND, ids=lambda kind: kind.__name__)
def test_a_flow_ends_where_it_must(kind: Callable[..., Any]) -> None:
    assert told(kind, (0, 0)) == ""


def test_a_neutral_orbit_is_the_one_that_the_motion_settles_on() -> None:
    assert told(neutral, (7741, 2)) == ""  # it comes around while a decaying coordinate is still on its way


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_many_flows_end_where_they_must(kind: Callable[..., Any], seed: int) -> None:
    assert [said for number in range(N_FLOWS) if (said := told(kind, (seed, 1 + number)))] == []
