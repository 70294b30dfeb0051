"""A census: many weight instances, many starts each, every end point certified and counted.

Source: altafini2025, Example 2. Each instance draws from its own streams, so that it can be computed alone and in
any order.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import (
    InvalidInput,
    SeparatrixError,
    in_words,
    require_integer,
    require_positive,
    spawn,
)
from separatrix.core.arithmetic.eigenvalues import eigvals

from ..equilibria.equilibrium import Equilibrium
from ..flows.attention import AttentionFlow
from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from ..flows.sphere import random_tokens
from ..integration.integrate import integrate
from .classification import as_cycle, classify
from .counts import NO_END, Census, InstanceCensus
from .proportions import wilson_interval

Sampler: TypeAlias = Callable[[torch.Generator], AbstractFlow]
Flows: TypeAlias = Sequence[AbstractFlow] | Mapping[int, AbstractFlow]
Check: TypeAlias = Callable[[int, int, int, int], bool]
"""Given instance, eigenvector, and the two sizes of a bipartite end point: may it be stable?"""


class Contradiction(SeparatrixError, ArithmeticError):
    """A simulated end point that the closed form forbids: one of the two is wrong."""


def census(
    ensemble: Sampler | Flows,
    n_instances: int | Iterable[int] | None = None,
    *,
    n_tokens: int,
    n_starts: int,
    seed: int,
    preset: str = "default",
    check: Check | None = None,
    half_width: float | None = None,
    max_starts: int = 10_000,
) -> Census:
    """Where uniform starts go, for each weight instance.

    Args:
        ensemble: a function that draws a flow from a generator, a list of flows, or flows by their number.
        n_instances: how many to draw, or which numbers; given flows are taken whole by default.
        n_tokens: tokens of a start, uniform on the sphere.
        n_starts: starts per instance.
        seed: instance i draws its weights and starts from streams of its own.
        preset: as in ``integrate``.
        check: asked about every stable bipartite end point; a refusal raises ``Contradiction``.
        half_width: go on with further starts until the interval of every family's share is this narrow.
        max_starts: limit of starts per instance when ``half_width`` is given.

    Raises:
        Contradiction: a simulated stable end point that ``check`` forbids.
    """
    chosen = _indices(ensemble, n_instances)
    for value, name in ((n_tokens, "n_tokens"), (n_starts, "n_starts"), (max_starts, "max_starts")):
        require_integer(value, name, at_least=1)
    if half_width is not None:
        require_positive(half_width, "half_width")
    if check is not None and not callable(check):
        raise InvalidInput(f"check must be a function of instance, eigenvector and two sizes; got {in_words(check)}.")
    results = []
    for i in chosen:
        flow = _flow(ensemble, i, seed)
        rounds, left = list[_Round](), n_starts if half_width is None else max_starts
        while left > 0 and (half_width is None or not rounds or _too_wide(rounds, half_width)):
            rounds.append(_round(flow, i, len(rounds), n_tokens, min(n_starts, left), seed, preset))
            left -= len(rounds[-1].ends)
        results.append(_summary(flow, i, rounds))
        if check is not None:
            _confront(results[-1], check)
    return Census(tuple(results))


@final
@dataclasses.dataclass(frozen=True)
class _Round:
    ends: tuple[Equilibrium, ...]
    times: Tensor
    saddles: int
    evaluations: int


def _round(
    flow: AbstractSphereFlow, instance: int, number: int, n_tokens: int, n_starts: int, seed: int, preset: str
) -> _Round:
    generator = spawn(seed, "census", "starts", instance, number)
    starts = random_tokens(n_tokens, flow.dim, n_starts, generator=generator)
    run = integrate(flow, starts, preset)
    ends = classify(flow, run.final, cycles=False, normalise=True)
    ends = [as_cycle(end, run.cycles[i]) if i in run.cycles else end for i, end in enumerate(ends)]
    # A trajectory that is still moving beside an unstable equilibrium has not arrived anywhere.
    ends = [
        dataclasses.replace(end, kind="not converged") if end.is_equilibrium and end.index and not arrived else end
        for end, arrived in zip(ends, run.converged.tolist(), strict=True)
    ]
    return _Round(tuple(ends), run.time, int(run.saddles.sum()), int(run.evaluations.sum()))


def _flow(ensemble: Sampler | Flows, instance: int, seed: int) -> AbstractSphereFlow:
    drawn = ensemble(spawn(seed, "census", "weights", instance)) if callable(ensemble) else ensemble[instance]
    flow = require_sphere(drawn, "census")
    if flow.instances:
        raise InvalidInput(
            f"flow {instance} of ensemble must have one weight instance; got leading axes {tuple(flow.instances)}."
        )
    return flow


def _too_wide(rounds: list[_Round], half_width: float) -> bool:
    counts = Counter(end.family for part in rounds for end in part.ends)
    total = sum(counts.values())
    widths = [high - low for low, high in (wilson_interval(count, total) for count in counts.values())]
    return max(widths) / 2 > half_width


def _summary(flow: AbstractSphereFlow, instance: int, rounds: list[_Round]) -> InstanceCensus:
    ends = tuple(end for part in rounds for end in part.ends)
    return InstanceCensus(
        instance=instance,
        n_starts=len(ends),
        eigenvalues=eigvals(flow.value_sum).real.sort(descending=True).values,
        alignments=_alignments(flow),
        families=dict(Counter(end.family for end in ends).most_common()),
        coarse=dict(Counter(end.coarse_label for end in ends).most_common()),
        fine=dict(Counter(end.fine_label for end in ends).most_common()),
        n_stable=sum(end.stable for end in ends),
        n_not_converged=sum(end.kind in NO_END for end in ends),
        saddles=sum(part.saddles for part in rounds),
        times=torch.cat([part.times for part in rounds]),
        evaluations=sum(part.evaluations for part in rounds),
        ends=ends,
    )


def _alignments(flow: AbstractSphereFlow) -> tuple[float, float] | None:
    """beta v' M v on the first and the last eigenvector, for one head and a symmetric value matrix."""
    if not isinstance(flow, AttentionFlow) or flow.n_heads > 1 or not torch.allclose(flow.value, flow.value.mT):
        return None
    vectors = torch.linalg.eigh(flow.value).eigenvectors
    c = float(flow.weights.beta) * (vectors * (flow.coupling @ vectors)).sum(dim=0)
    return float(c[-1]), float(c[0])


def _confront(result: InstanceCensus, check: Check) -> None:
    for end in result.ends:
        if end.kind != "bipartite" or end.eigenvector is None or not end.stable:
            continue
        first, second = (int(size) for size in end.sizes)
        if not check(result.instance, end.eigenvector, first, second):
            raise Contradiction(
                f"instance {result.instance} has a certified stable bipartite end point on eigenvector "
                f"{end.eigenvector} with sizes {end.sizes} (abscissa {end.abscissa:.3g}) that the check forbids."
            )


def _indices(ensemble: Sampler | Flows, n_instances: int | Iterable[int] | None) -> list[int]:
    if not (callable(ensemble) or isinstance(ensemble, Sequence | Mapping)) or isinstance(ensemble, str | bytes):
        raise InvalidInput(
            "ensemble must be a function that draws a flow from a generator, a list of flows, or flows by their "
            f"number; got {in_words(ensemble)}."
        )
    if not callable(ensemble) and not len(ensemble):
        raise InvalidInput("ensemble must hold at least one flow; got none.")
    if n_instances is None:
        if callable(ensemble):
            raise InvalidInput("n_instances must be given when ensemble draws its flows.")
        return list(ensemble) if isinstance(ensemble, Mapping) else list(range(len(ensemble)))
    if isinstance(n_instances, Iterable) and not isinstance(n_instances, str | bytes):
        chosen = [require_integer(i, "n_instances", at_least=0) for i in n_instances]
        if not chosen:
            raise InvalidInput("n_instances must name at least one flow; got an empty list.")
    else:
        chosen = list(range(require_integer(n_instances, "n_instances", at_least=1)))
    if not callable(ensemble):
        known = ensemble if isinstance(ensemble, Mapping) else range(len(ensemble))
        for i in chosen:
            if i not in known:
                raise InvalidInput(f"n_instances asks for flow {i}; ensemble has {len(ensemble)} flows.")
    return chosen
