"""Self-attention in discrete time: the updates a transformer makes, as maps of the sphere.

(A) x+ = normalise(x + step * velocity), whose multipliers at rest are 1 + step * (tangent eigenvalues);
(B) x+ = normalise(x + step * pull), the residual update with normalisation, where a token whose factor
    1 + step * gamma is negative flips at every step;
LayerNorm: x+ = gain * sqrt(d) normalise(y - mean y) + bias of y = x + step * pull. Source: altafini2025, section 7.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import Outcome, Result, require_integer, require_positive, unknown_name
from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.names import suggest_options

from .base import AbstractSphereFlow
from .sphere import check_tokens, normalise, tangent_basis


@final
@dataclasses.dataclass(frozen=True, repr=False)
class MapRun(Result):
    """The end of an iteration: converged, cycle (period two: some tokens flip at every step) or out of steps."""

    final: Float[Tensor, "*batch n d"]
    outcome: Int[Tensor, "*batch"]
    residual: Float[Tensor, "*batch"]
    steps: int


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AttentionMap:
    """One layer of attention as a map of the sphere.

    Args:
        flow: the flow it discretises.
        step: step size, the weight of the update against the residual stream.
        update: ``"tangent"`` for (A), ``"residual"`` for (B).
    """

    flow: AbstractSphereFlow
    step: float
    update: str = "residual"

    def __post_init__(self) -> None:
        require_positive(self.step, "step")
        if self.update not in ("tangent", "residual"):
            raise unknown_name("update", self.update, ("tangent", "residual"))

    def __call__(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The state after one step."""
        return normalise(x + self.step * self._change(x))

    def _change(self, x: Tensor) -> Tensor:
        return self.flow.velocity(x) if self.update == "tangent" else self.flow.pull(x)

    def iterate(self, x: object, *, tol: float = 1e-12, max_steps: int = 10_000) -> MapRun:
        """Apply the map until the state, or the state two steps on, stays."""
        state = check_tokens(x, "x").to(self.flow.dtype)
        require_integer(max_steps, "max_steps", at_least=1)
        steps = 0
        before, once = state, self(state)
        while steps < max_steps:
            before, state, once = state, once, self(once)
            steps += 1
            move = _largest(once - state)
            if bool((torch.minimum(move, _largest(once - before)) < tol).all()):
                break
        move, back = _largest(once - state), _largest(once - before)
        outcome = torch.full(move.shape, int(Outcome.OUT_OF_STEPS))
        outcome = torch.where(back < tol, int(Outcome.CYCLE), outcome)
        outcome = torch.where(move < tol, int(Outcome.CONVERGED), outcome)
        return MapRun(once, outcome, move, steps)

    def multipliers(self, x: Float[Tensor, "n d"]) -> Complex[Tensor, " directions"]:
        """Eigenvalues of the derivative at a fixed point (modulo flips of tokens), on the tangent space.

        A token that flips is compared with its antipode, so that stable means spectral radius below one.
        """
        image = self(x)
        same = torch.where((image * x).sum(dim=-1, keepdim=True) < 0, -1.0, 1.0).to(x.dtype)
        pull, change = self.flow.pull_and_jvp(x, _tangents(x))
        if self.update == "tangent":
            change, pull = self.flow.jvp(x, _tangents(x)), self.flow.velocity(x)
        moved = _tangents(x) + self.step * change
        length = torch.linalg.vector_norm(x + self.step * pull, dim=-1, keepdim=True)
        derivative = (moved - image * (image * moved).sum(dim=-1, keepdim=True)) / length * same
        matrix = (tangent_basis(x).mT @ derivative.unsqueeze(-1)).flatten(1)
        return eigvals(matrix.mT)

    def stable(self, x: Float[Tensor, "n d"]) -> bool:
        """Whether every multiplier lies inside the unit circle."""
        return float(self.multipliers(x).abs().max()) < 1


def layer_norm(
    x: Float[Tensor, "*batch n d"],
    gain: Float[Tensor, " d"] | None = None,
    bias: Float[Tensor, " d"] | None = None,
) -> Float[Tensor, "*batch n d"]:
    """LayerNorm of each token: centre, divide by the standard deviation, gain, bias.

    Without gain and bias its image is the sphere of radius sqrt(d) in the hyperplane of zero sum, on which a layer
    acts like map (B) with V replaced by Pi V, Pi = I - 11'/d.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    y = x.shape[-1] ** 0.5 * normalise(centred)
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


def _tangents(x: Tensor) -> Tensor:
    """Every tangent basis vector of every token as a direction of the whole state, (n e, n, d)."""
    basis = torch.block_diag(*tangent_basis(x))
    return basis.mT.reshape(-1, *x.shape)


def _largest(difference: Tensor) -> Tensor:
    return torch.linalg.vector_norm(difference, dim=-1).amax(dim=-1)
