"""What experiments on single statements of kerg2022 share: one cell per part and seed, the worst number of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from separatrix.core.names import resolve
from separatrix.core.random import spawn
from separatrix.core.wording import number, small
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge

from ...worst_case import highest, lowest


class Measured(Summary):
    """By part, the worst value of every quantity over all seeds."""

    parts: dict[str, dict[str, float]]


@final
@dataclasses.dataclass(frozen=True)
class Limit:
    """How far a quantity may go: ``at_most`` or ``at_least`` a number."""

    quantity: str
    bound: float
    at_least: bool = False

    def row(self, value: float) -> Row:
        """The comparison, which a value that is not a number leaves open."""
        agrees = value >= self.bound if self.at_least else value <= self.bound
        side = "at least" if self.at_least else "at most"
        return Row(self.quantity, value, f"{side} {small(self.bound)}", agrees=agrees)


def at_most(quantity: str, bound: float) -> Limit:
    """A quantity whose worst value is the largest."""
    return Limit(quantity, bound)


def at_least(quantity: str, bound: float) -> Limit:
    """A quantity whose worst value is the smallest; its name must begin with ``least``."""
    return Limit(quantity, bound, at_least=True)


def part_cells(parts: Iterable[str], seeds: Sequence[int], **common: Any) -> Iterable[Mapping[str, Any]]:
    """One cell per part and seed."""
    for part in parts:
        for seed in seeds:
            yield {"part": part, "seed": seed, **common}


def worst_of_parts(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The worst of each quantity: the smallest of those called ``least ...``, the largest of all others."""
    parts: dict[str, dict[str, float]] = {}
    for cell, payload in results:
        kept = parts.setdefault(cell.args["part"], {})
        for name, value in payload.items():
            worst = lowest if name.startswith("least") else highest
            kept[name] = worst(kept[name], value) if name in kept else value
    rows = [{"part": part, "quantity": name, "worst": v} for part, found in parts.items() for name, v in found.items()]
    return Measured(parts=parts, tables={"Worst over all instances": rows})


def rows_within(summary: Measured, part: str, limits: Sequence[Limit]) -> list[Row]:
    """One row per limit, none if the part was not run."""
    found = summary.parts.get(part)
    if found is None:
        return []
    return [limit.row(resolve(f"quantity of {part}", limit.quantity, found)) for limit in limits]


def within(part: str, *limits: Limit) -> Callable[[Measured], Judgement]:
    """A rule: every quantity of the part is within its limit."""

    def judge_limits(summary: Measured) -> Judgement:
        rows = rows_within(summary, part, limits)
        return judge(", ".join(f"{row.quantity} {number(float(row.measured))}" for row in rows), rows)

    return judge_limits


class Instances(Params):
    """Random instances for each statement."""

    n_instances: int = 20


def run_part(cell: Cell, parts: Mapping[str, Callable[[int, Any], Payload]]) -> Payload:
    """One statement at random instances: their number and a generator to what was measured."""
    part = cell.args["part"]
    return parts[part](cell.args["n_instances"], spawn(cell.seed, cell.experiment, part))


def experiment_of_parts(
    name: str,
    title: str,
    place: str,
    parts: Iterable[str],
    claims: Sequence[Claim],
    *,
    run: Callable[[Cell], Payload],
    rehearsed: int,
    seeds: tuple[int, ...],
) -> Experiment:
    """An experiment of which a cell is one part at one seed; ``run`` stands in its module, where a worker finds it."""

    def expand(settings: Instances) -> Iterable[Mapping[str, Any]]:
        return part_cells(parts, settings.seeds, n_instances=settings.n_instances)

    return Experiment(
        name=name,
        title=title,
        document="kerg2022",
        place=place,
        version=1,
        scales={
            "smoke": Instances(n_instances=rehearsed),
            "laptop": Instances(seeds=seeds),
            "paper": Instances(n_instances=100, seeds=(0, 1, 2)),
        },
        expand=expand,
        run=run,
        summarise=worst_of_parts,
        claims=tuple(claims),
    )
