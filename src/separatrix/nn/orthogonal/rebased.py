r"""Maps around a base that moves along: :math:`W = B\exp(A)`, A small, absorbed into B before every training pass.

At A = 0 the gradient by A is a projection of the gradient by W: nothing goes back through the exponential, which
would cost about ten times the matrix product itself. The optimiser moves A as if it were an ordinary weight (its
moments live in the tangent coordinates and are not transported), the next training pass moves the base. No training
loop has to know. Within one step of an optimiser the base stays: a line search comes back to where it was.

Rounding adds up along the way: in float32 the entries of :math:`B^\top B - I` reach 1e-4 within 1500 steps of real
training. One Newton-Schulz step :math:`B(3I - B^\top B)/2` every few steps keeps them below 2e-5; it is not an option.
"""

from __future__ import annotations

import abc
import math
import warnings
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.arithmetic.linear_systems import solve
from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.arrays import require_integer
from separatrix.core.errors import DivergenceWarning
from separatrix.core.names import suggest_options

from .algebra import (
    skew,
    skew_entries,
    skew_gradient,
    skew_hermitian,
    skew_hermitian_gradient,
)
from .manifold import AbstractOrthogonalMap, member_tolerance, nearest_orthogonal, orthogonality_error, widened
from .optimiser_steps import running_step
from .starts import haar_unitary, rotation_logarithm, rotation_start, skew_start

CORRECT_EVERY = 5
LARGE_STEP = 0.5
"""An entry of the tangent beyond this asks for a correction at once."""
MOST_TERMS = 4
"""Of the exponential series, before the general routine is the cheaper one."""
FAR = 1e-3
"""Above this, one Newton-Schulz step is not enough, and the polar factor is computed."""


class _Notes:
    """What a map saw last. Beside the module, whose own attributes are slow to write, and not in its ``state_dict``."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.version = -1
        """Of the tangent."""
        self.own_version = 0
        """Of the base, after we wrote it."""
        self.has_told = False


class AbstractRebasedMap(AbstractOrthogonalMap):
    """A base in a buffer and a tangent vector that is zero whenever a training pass begins.

    For implementers: write ``moved`` (base and tangent to the matrix, differentiable) and ``tangent_gradient`` (the
    gradient by the tangent at zero from that by the matrix).
    """

    free_names = ("tangent",)
    base: Tensor
    n_moved: Tensor
    n_waiting: Tensor

    def __init__(self, n: int, rebase: int | None = 1) -> None:
        super().__init__(n)
        if rebase is not None:
            require_integer(rebase, "rebase", at_least=1)
        self.rebase = rebase
        identity = torch.eye(n)
        # real and imaginary parts, because ``module.to(torch.float64)`` would cut off those of a complex buffer
        self.register_buffer("base", torch.stack([identity, 0 * identity], -1) if self.is_complex else identity)
        self.register_buffer("n_moved", torch.zeros((), dtype=torch.int64))
        self.register_buffer("n_waiting", torch.zeros((), dtype=torch.int64))
        self._notes = _Notes()

    @property
    def base_matrix(self) -> Tensor:
        """The base."""
        return torch.view_as_complex(self.base) if self.is_complex else self.base

    def _set_base(self, matrix: Tensor) -> None:
        # a new tensor, not in place: graphs that are still alive hold the old one
        self.base = torch.view_as_real(matrix).contiguous() if self.is_complex else matrix
        self._notes.own_version = 0 if self.base.is_inference() else self.base._version

    @abc.abstractmethod
    def moved(self, base: Tensor, tangent: Tensor) -> Tensor:
        """The matrix at a tangent vector from the base."""

    def moved_on(self, base: Tensor, tangent: Tensor) -> Tensor:
        """The same without a gradient; a cheaper way to the same numbers may replace it."""
        return self.moved(base, tangent)

    @abc.abstractmethod
    def tangent_gradient(self, base: Tensor, gradient: Tensor) -> Tensor:
        """The gradient by the tangent vector at zero."""

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix; in training, a tangent that an optimiser moved is first absorbed into the base."""
        (tangent,) = free
        self._settle()
        has_moved = transforms_active() or _is_somewhere(tangent.detach())
        if self._absorbs(tangent) and self._is_first_look(tangent) and has_moved:
            has_moved = self._waits() or self._is_lost(tangent.detach())
            if not has_moved:
                self._absorb(tangent)
        if has_moved:
            return self.moved(self.base_matrix, tangent)
        matrix: Tensor = _AtBase.apply(self, self.base_matrix, tangent)
        return matrix

    def _waits(self) -> bool:
        """Count a pass with a moved tangent, and say whether it is too early to absorb it."""
        if self.rebase == 1:
            return False
        self.n_waiting = self.n_waiting + 1
        assert self.rebase is not None
        return int(self.n_waiting) < self.rebase

    def _is_lost(self, tangent: Tensor) -> bool:
        """Whether an optimiser left something that is no number; then the base stays what it was, and we say so."""
        if math.isfinite(float(tangent.abs().max())):
            return False
        if not self._notes.has_told:
            warnings.warn(
                f"after {int(self.n_moved)} moves the tangent of the {self.name} map is not finite: the last step of "
                "the optimiser was too long or had an overflown gradient (in a recurrent network, states that grow "
                "without bound). Clip gradients, lower the rate, or load an earlier state.",
                DivergenceWarning,
                stacklevel=2,
            )
            self._notes.has_told = True
        return True

    def _absorbs(self, tangent: Tensor) -> bool:
        """Only the parameter an optimiser holds is absorbed, not a tensor somebody calls the module with."""
        can = self.training and torch.is_grad_enabled() and self.rebase is not None
        return can and isinstance(tangent, nn.Parameter) and tangent.is_leaf and not transforms_active()

    def _is_first_look(self, tangent: Tensor) -> bool:
        """Whether something was written into the tangent since the last pass, and not by the step that called it.

        What is absorbed at once leaves zero behind, so a tangent that is not zero has been written to, also where it
        was done behind the back of the version counter (``parameter.data``).
        """
        step, written, seen = running_step(), tangent._version, self._notes
        is_new = self.rebase == 1 or written != seen.version
        is_first = is_new and (step is None or step != seen.step)
        seen.step, seen.version = step, written
        return is_first

    @torch.no_grad()
    def _settle(self) -> None:
        """Bring back a base that somebody else wrote: an average of several, or one from a coarser precision."""
        if transforms_active() or self.base.is_inference() or self.base._version == self._notes.own_version:
            return  # nobody wrote since we did
        base = self.base_matrix
        is_off = member_tolerance(base) < orthogonality_error(base) < float("inf")
        self._set_base(corrected(base) if is_off else base.clone())

    @torch.no_grad()
    def _absorb(self, tangent: Tensor) -> None:
        base = self.moved_on(self.base_matrix, tangent)
        self.n_moved = self.n_moved + 1
        if int(self.n_moved) % CORRECT_EVERY == 0 or float(tangent.abs().max()) > LARGE_STEP:
            base = corrected(base)
        self._set_base(base)
        tangent.zero_()
        if self.rebase != 1:
            self.n_waiting = torch.zeros_like(self.n_waiting)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """The matrix becomes the base; the tangent is zero."""
        self._set_base(matrix.detach().clone().to(matrix.dtype.to_complex() if self.is_complex else matrix.dtype))
        self.n_waiting = torch.zeros_like(self.n_waiting)
        return (torch.zeros(self._n_tangent(), dtype=torch.float64),)

    def _n_tangent(self) -> int:
        return self.n * self.n if self.is_complex else self.n * (self.n - 1) // 2

    def _recalled(self, matrix: Tensor) -> tuple[Tensor, ...] | None:
        return None  # any member can be the base

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}, rebase={self.rebase}"


@torch.no_grad()
def corrected(matrix: Tensor) -> Tensor:
    """A matrix that should be orthogonal, brought back: one Newton-Schulz step, or the polar factor if it is far."""
    found = widened(matrix)
    gram = found.mH @ found
    identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    error = float((gram - identity).abs().max())
    if error < FAR:
        return (1.5 * found - 0.5 * (found @ gram)).to(matrix.dtype)
    return nearest_orthogonal(matrix) if error < float("inf") else matrix  # NaN stays to be seen


def _is_somewhere(tangent: Tensor) -> bool:
    """Whether it is not zero; NaN is not."""
    return tangent.numel() > 0 and float(tangent.abs().max()) != 0


def _terms_needed(norm: float, precision: float) -> int:
    """Terms of the exponential series until what is left is below the precision; one too many where that is late."""
    n_terms, left = 0, norm
    while not left < precision and n_terms <= MOST_TERMS:  # NaN goes on to the end
        n_terms += 1
        left *= norm / (n_terms + 1)
    return n_terms


class _AtBase(torch.autograd.Function):
    """The base itself, with the gradient of the map at a zero tangent."""

    @staticmethod
    def forward(manifold: AbstractRebasedMap, base: Tensor, tangent: Tensor) -> Tensor:
        return base.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[AbstractRebasedMap, Tensor, Tensor], output: Tensor) -> None:
        ctx.manifold = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        base, tangent = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: second derivatives need the map itself
            matrix = ctx.manifold.moved(base, tangent)
            (gradient,) = torch.autograd.grad(matrix, tangent, gradients[0], create_graph=True)
            return None, None, gradient
        return None, None, ctx.manifold.tangent_gradient(base, gradients[0])


@final
@suggest_options
class Exp(AbstractRebasedMap):
    r"""Rotations as exponentials of skew matrices, :math:`P = B\exp(A - A^\top)`.

    Args:
        n: size.
        rebase: training passes with a moved tangent until it is absorbed into B; 1 is the cheapest. ``None``: never;
            B is the identity and A the logarithm, as in the first articles. Use it where the free numbers themselves
            are looked at (penalties, averages of weights without their buffers).

    A base of determinant -1 keeps it. Source: kerg2022, appendix D.4, with the sign of erratum kerg2022-exp-gradient.

    Cost: about 13 products of n x n matrices a training step, 5 of them saved by correcting every fifth time only.
    """

    name = "exp"

    def __init__(self, n: int, rebase: int | None = 1) -> None:
        super().__init__(n, rebase)

    def moved(self, base: Tensor, tangent: Tensor) -> Tensor:
        """``base exp(A - A')``."""
        return base @ torch.linalg.matrix_exp(widened(skew(tangent, self.n))).to(base.dtype)

    def moved_on(self, base: Tensor, tangent: Tensor) -> Tensor:
        """By the first terms of the series, applied to the base, where that is exact to rounding: steps are short."""
        exponent = widened(skew(tangent, self.n)).to(base.dtype)
        n_terms = _terms_needed(float(exponent.abs().sum(0).max()), torch.finfo(base.dtype).eps)
        if n_terms > MOST_TERMS:
            return self.moved(base, tangent)
        term, total = base, base.clone()
        for k in range(1, n_terms + 1):
            term = torch.mm(term, exponent).div_(k)
            total.add_(term)
        return total

    def tangent_gradient(self, base: Tensor, gradient: Tensor) -> Tensor:
        """The upper entries of ``P'G - G'P``."""
        return skew_gradient(base.mT @ gradient)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """The matrix becomes the base; without rebasing its logarithm becomes the tangent."""
        if self.rebase is not None:
            return super().invert(matrix)
        self._set_base(torch.eye(self.n, dtype=matrix.dtype, device=matrix.device))
        return (skew_entries(rotation_logarithm(matrix)),)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The skew matrix of a start; Haar if none is named."""
        exponent = skew_start(start or "haar", self.n, generator=generator)
        if exponent is None:
            exponent = rotation_logarithm(rotation_start("haar", self.n, generator=generator))
        return (skew_entries(exponent),)

    def _value_at(self, free: tuple[Tensor, ...]) -> Tensor:
        return torch.linalg.matrix_exp(skew(free[0], self.n))


@final
@suggest_options
class FullCapacity(AbstractRebasedMap):
    r"""All unitary matrices, :math:`W = (I - A/2)^{-1}(I + A/2) B` with A skew-Hermitian.

    With plain gradient descent a training step is the multiplicative update of the full-capacity unitary network, in
    the direction :math:`GW^* - WG^*` of erratum kerg2022-full-capacity, except that the imaginary diagonal moves at
    half the speed, being counted once among the entries; other optimisers move A in their own way.

    Args:
        n: size; n^2 real parameters.
        rebase: as in ``Exp``, except that ``None`` keeps the first matrix as base.

    Source: kerg2022, appendix D.3.
    """

    name = "full_capacity"
    is_complex = True

    def __init__(self, n: int, rebase: int | None = 1) -> None:
        super().__init__(n, rebase)

    def moved(self, base: Tensor, tangent: Tensor) -> Tensor:
        """The Cayley transform of the tangent, times the base."""
        half = skew_hermitian(tangent, self.n).to(base.dtype) / 2
        identity = torch.eye(self.n, dtype=base.dtype, device=base.device)
        return solve(identity - half, (identity + half) @ base)

    def tangent_gradient(self, base: Tensor, gradient: Tensor) -> Tensor:
        """That of ``A B`` by A."""
        return skew_hermitian_gradient(gradient @ base.mH)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The free numbers are zero; ``sample`` draws the base."""
        return (torch.zeros(self.n * self.n, dtype=torch.float64),)

    @torch.no_grad()
    def sample(self, start: str | None = None, *, generator: torch.Generator) -> Tensor:
        """Uniform on the unitary group, or a named rotation."""
        if start is None or start == "haar":
            return haar_unitary(self.n, generator=generator)
        return rotation_start(start, self.n, generator=generator).to(torch.complex128)
