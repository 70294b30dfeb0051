"""What experiments on statements of altafini2025 share: random instances, one cell per statement and seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Params, Payload

from ..worst_case import Measured, worst_of_all

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.matrices import AttentionInstance

statement = functools.partial(Claim, measures="dense Jacobians and states at random instances")
"""A claim about one statement."""


class Settings(Params):
    """Random instances for each statement."""

    dim: int = 3
    n_instances: int = 20


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
    version: int,
    parts: Iterable[str],
    run: Callable[[Cell], Payload],
    claims: tuple[Claim, ...],
    least: Sequence[str] = (),
    totals: Sequence[str] = (),
) -> Experiment:
    """The experiment whose cells are statements; ``run`` stands in the module that is to be found by its name."""
    return Experiment(
        name=name,
        title=title,
        document="altafini2025",
        place=place,
        version=version,
        scales={
            "smoke": Settings(n_instances=4),
            "laptop": Settings(seeds=(0, 1, 2)),
            "paper": Settings(n_instances=50, seeds=(0, 1, 2)),
        },
        expand=functools.partial(statement_cells, parts=tuple(parts)),
        run=run,
        summarise=functools.partial(worst_of_all, least=tuple(least), totals=tuple(totals)),
        summary=Measured,
        claims=claims,
    )


def draw_instances(cell: Cell, experiment: str) -> AttentionInstance:
    """The random instances of a cell, as one batch."""
    from separatrix import matrices

    generator = spawn(cell.seed, experiment, cell.args["part"])
    return matrices.attention_instance(cell.args["dim"], generator=generator, batch=(cell.args["n_instances"],))


def ambient_jacobian(velocity: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """The Jacobian of the velocity as a function on the whole space, by automatic differentiation."""
    import torch

    return torch.func.jacrev(velocity)(states).reshape(states.numel(), states.numel())


def on_tangents(jacobian: Tensor, states: Tensor) -> Tensor:
    """The Jacobian between the tangent spaces of the spheres on which the tokens lie."""
    import torch

    bases = [torch.linalg.svd(token[None], full_matrices=True).Vh[1:].mT for token in states]
    basis = torch.block_diag(*bases)
    return basis.mT @ jacobian @ basis


def oja_velocity(value: Tensor) -> Callable[[Tensor], Tensor]:
    """The multiagent Oja flow on the whole space, written out."""

    def velocity(tokens: Tensor) -> Tensor:
        pull = tokens.mean(0) @ value.mT
        return pull - (tokens * pull).sum(-1, keepdim=True) * tokens

    return velocity


def two_groups(value: Any, k: int, n1: int, n2: int) -> Any:
    """n_1 tokens at +v_k and n_2 at -v_k, for a batch of symmetric value matrices."""
    import torch

    vector = torch.linalg.eigh(value)[1].flip(-1)[..., k]
    signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
    return signs[:, None] * vector[..., None, :]
