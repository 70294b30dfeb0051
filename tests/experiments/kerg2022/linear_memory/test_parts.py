"""Experiments on statements of chapters 2 and 3 that need no training, or very little."""

from __future__ import annotations

import json
from typing import Any

import pytest

from separatrix.experiments import find
from separatrix.experiments.kerg2022.linear_memory import kerg3_prop3_4_2
from separatrix.lab import Summary, Verdict

EXPECTED = {
    "kerg2-lemmas": {"kerg2022-ch2-real-schur": Verdict.CONDITIONAL, "kerg2022-ch2-ceiling": Verdict.CONDITIONAL},
    "kerg2-gradients": {"kerg2022-ch2-explodes-or-vanishes": Verdict.CONDITIONAL},
    "kergE-algebras": {"kerg2022-E-imaginary-spectra": Verdict.CONDITIONAL},
    "kerg3-prop3-4-2": {"kerg2022-ch3-polynomial": Verdict.CONDITIONAL},
    "kergA-schur": {},
    "kergD-solutions": {},
}
TINY: dict[str, dict[str, Any]] = {"kergA-schur": {"sizes": (70,)}, "kerg2-lemmas": {"n_instances": 3}}


def summary_of(name: str, **changes: Any) -> Summary:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **changes))
    summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    return experiment.summary.from_dict(json.loads(json.dumps(summary.to_dict(), allow_nan=False)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXPECTED)
def test_statements_are_confirmed_but_for_the_known_ones(name: str) -> None:
    experiment, summary = find(name), summary_of(name, **TINY.get(name, {}))
    found = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert found == {claim.id: Verdict.CONFIRMED for claim in experiment.claims} | EXPECTED[name]
    for claim in experiment.claims:
        assert claim.judge(claim.counterfeit(summary)).verdict is Verdict.REFUTED, claim.id


def test_coefficients_of_powers_are_products_of_binomials() -> None:
    assert kerg3_prop3_4_2._coefficients(3, 10) == [0, 10, 90, 120]  # C(10, l) C(2, l - 1)


def test_gradients_and_listening_of_both_networks_are_compared() -> None:
    summary = summary_of("kergD-saturation", seeds=(0, 1), length=20, n_hidden=8, n_steps=2)
    rows = {row["quantity"]: row for row in summary.table("Unitary network minus LSTM, 95 % interval over seeds")}
    assert set(rows) == {"gradients", "listening"}
    assert rows["gradients"]["lstm"] > rows["gradients"]["urnn"]  # what an untrained LSTM forgets at once
