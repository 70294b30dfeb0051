"""Monotone equilibrium layers: z = relu(W z + U x + b) with exactly one equilibrium whatever the parameters.

W = (1 - m) I - A^T A + B - B^T has I - W >= m > 0 (its symmetric part), so the equilibrium exists, is unique and moves
by at most 1/m times a change of the input. Plain Picard need not converge to it; two splittings do, because relu is
the projection on the positive cone:

- forward-backward: z <- relu(z - a ((I - W) z - U x - b)), for 0 < a < 2 m / |I - W|^2;
- Peaceman-Rachford: reflections with (I + a (I - W))^-1 and relu, for every a > 0.

Both are ordinary fixed-point maps, so every solver and every way to differentiate applies to them.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arithmetic.linear_systems import inv
from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator
from separatrix.dynamics.solve.methods.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.methods.named import find_solver
from separatrix.matrices.ensembles.initialisers import gaussian_

from .backward import AbstractBackward
from .cells import empty_linear
from .deq import DEQ

Splitting = Literal["peaceman-rachford", "forward-backward"]


@suggest_options
class MonotoneDEQ(nn.Module):
    """The equilibrium of z = relu(W z + U x + b), W monotone.

    Args:
        input_size: dimension of x.
        width: dimension of z.
        margin: m, the strong monotonicity.
        splitting: ``"peaceman-rachford"`` (one inverse a call, few steps) or ``"forward-backward"``.
        step: a; by default 1 for Peaceman-Rachford and m / |I - W|^2 for forward-backward, with the norm bounded by
            the Frobenius norm.
        solver: of the split map, or its name, which stands for ``tol=1e-4, max_steps=300``; ``"picard"`` by default,
            whose convergence is what the splitting guarantees.
        backward: as in ``DEQ``.
        on_fail: as in ``DEQ``.
        generator: source of randomness of the initial parameters.
        dtype: of the parameters.

    Cost a call: O(width^3) for the inverse of Peaceman-Rachford, O(batch width^2) a step.
    """

    def __init__(
        self,
        input_size: int,
        width: int,
        *,
        margin: float = 0.5,
        splitting: Splitting = "peaceman-rachford",
        step: float | None = None,
        solver: AbstractEquilibriumSolver[Any] | str = "picard",
        backward: AbstractBackward | str = "implicit",
        on_fail: Literal["return", "warn", "raise"] = "warn",
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        require_integer(input_size, "input_size", at_least=1)
        require_integer(width, "width", at_least=1)
        require_positive(margin, "margin")
        if step is not None:
            require_positive(step, "step")
        choose("splitting", splitting, ("peaceman-rachford", "forward-backward"))
        self.margin, self.splitting, self.step = margin, splitting, step
        self.inject = empty_linear(input_size, width, dtype=dtype)
        gaussian_(self.inject, 1.0, generator=generator)
        nn.init.zeros_(self.inject.bias)
        self.symmetric = nn.Parameter(torch.empty(width, width, dtype=dtype))  # A
        self.skew = nn.Parameter(torch.empty(width, width, dtype=dtype))  # B
        for matrix in (self.symmetric, self.skew):
            gaussian_(matrix, 0.25, generator=generator)
        reflect = splitting == "peaceman-rachford"
        self.equilibrium = DEQ(
            _reflected if reflect else _projected,
            solver=find_solver(solver, tol=1e-4, max_steps=300),
            backward=backward,
            initial=_zeros,
            on_fail=on_fail,
        )

    def weight(self) -> Float[Tensor, "d d"]:
        """W = (1 - m) I - A^T A + B - B^T."""
        identity = torch.eye(len(self.skew), dtype=self.skew.dtype, device=self.skew.device)
        return (1 - self.margin) * identity - self.symmetric.mT @ self.symmetric + self.skew - self.skew.mT

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch d"]:
        """The equilibrium for x; ``self.equilibrium.last`` holds the solution of the split map."""
        weight = self.weight()
        identity = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
        injected = self.inject(x)
        if self.splitting == "peaceman-rachford":
            step = 1.0 if self.step is None else self.step
            resolvent = inv((1 + step) * identity - step * weight)
            return torch.relu(self.equilibrium((injected, resolvent, step)))
        norm = torch.linalg.vector_norm(identity - weight.detach())
        step = float(self.margin / norm.square()) if self.step is None else self.step
        out: Tensor = self.equilibrium((injected, weight, step))
        return out


def _zeros(inputs: tuple[Tensor, Tensor, float]) -> Tensor:
    return torch.zeros_like(inputs[0])


def _projected(z: Tensor, inputs: tuple[Tensor, Tensor, float]) -> Tensor:
    """A gradient-like step towards W z + U x + b, then the projection."""
    injected, weight, step = inputs
    return torch.relu(z + step * (z @ weight.mT + injected - z))


def _reflected(u: Tensor, inputs: tuple[Tensor, Tensor, float]) -> Tensor:
    """Reflect at the projection, then at the resolvent of I - W."""
    injected, resolvent, step = inputs
    mirrored = 2 * torch.relu(u) - u
    return 2 * (mirrored + step * injected) @ resolvent.mT - mirrored
