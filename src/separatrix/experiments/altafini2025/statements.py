"""What the lemmas and the propositions of altafini2025 share: random instances, one cell per statement and seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Params, Payload, Summary

if TYPE_CHECKING:
    from separatrix.matrices import AttentionInstance

statement = functools.partial(Claim, measures="dense Jacobians and states at random instances")
"""A claim about one statement."""


class Settings(Params):
    """Random instances for each statement."""

    dim: int = 3
    n_instances: int = 20


class Measured(Summary):
    """What was measured for each statement, by quantity."""

    parts: dict[str, dict[str, Any]]


def statement_cells(settings: Settings, parts: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    """One cell per statement and seed."""
    for seed in settings.seeds:
        for part in parts:
            yield {"part": part, "seed": seed, "dim": settings.dim, "n_instances": settings.n_instances}


def statements_experiment(
    *,
    name: str,
    title: str,
    place: str,
    parts: Iterable[str],
    run: Callable[[Cell], Payload],
    claims: tuple[Claim, ...],
) -> Experiment:
    """The experiment whose cells are statements; ``run`` stands in the module that is to be found by its name."""
    return Experiment(
        name=name,
        title=title,
        document="altafini2025",
        place=place,
        version=1,
        scales={
            "smoke": Settings(n_instances=6),
            "laptop": Settings(),
            "paper": Settings(n_instances=50, seeds=(0, 1)),
        },
        expand=functools.partial(statement_cells, parts=tuple(parts)),
        run=run,
        summarise=summarise,
        claims=claims,
    )


def draw_instances(cell: Cell, experiment: str) -> AttentionInstance:
    """The random instances of a cell, as one batch."""
    from separatrix import matrices

    generator = spawn(cell.seed, experiment, cell.args["part"])
    return matrices.attention_instance(cell.args["dim"], generator=generator, batch=(cell.args["n_instances"],))


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The numbers of the first seed in full, and a table of all."""
    parts: dict[str, Any] = {}
    for cell, payload in results:
        parts.setdefault(cell.args["part"], payload)
    table = [
        {"statement": cell.args["part"], "seed": cell.seed, "quantity": name, "measured": str(value)}
        for cell, payload in results
        for name, value in payload.items()
    ]
    return Measured(parts=parts, tables={"Measured": table})


def two_groups(value: Any, k: int, n1: int, n2: int) -> Any:
    """n_1 tokens at +v_k and n_2 at -v_k, for a batch of symmetric value matrices."""
    import torch

    vector = torch.linalg.eigh(value)[1].flip(-1)[..., k]
    signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
    return signs[:, None] * vector[..., None, :]
