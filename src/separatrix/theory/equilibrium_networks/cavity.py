"""The self-consistent (cavity) equations of a wide nonlinear equilibrium network.

One unit feels h = g + a z with g Gaussian of variance ``gain * q``: the rest of the network without it, and the echo
of its own output. q = E z^2, chi = E[dphi / (1 - a dphi)] is the response of the network to a field on one unit.
How a and gain depend on chi is all that distinguishes matrix families.
See explanation/why-symmetric-matrices-are-different.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import OutsideTheory
from separatrix.core.networks.activations import ACTIVATIONS, Activation
from separatrix.matrices.ensembles import AbstractEnsemble

from ..free_probability import AbstractLaw
from .families import gaussian_correlation, is_bi_invariant, require_uniform_basis, symmetric_law, unknown_family
from .field_averages import FieldAverages, hardtanh_averages, quadrature_averages

Injection: TypeAlias = Literal["outside", "inside"]
"""Where the input enters: z = phi(W z) + x, or z = phi(W z + x)."""

_DAMPED_STEPS = 12
_MAX_STEPS = 30
_TOL = 1e-12
_RUNAWAY = 1e8
"""A mean square beyond this has no equilibrium to go to."""


@final
@dataclasses.dataclass(frozen=True)
class CavityProblem:
    """One network per element: tensors of equal shape, float64."""

    ensemble: AbstractEnsemble
    activation: Activation
    weight_var: Tensor
    input_var: Tensor
    input_mean: Tensor
    cell: Injection

    def reaction(self, chi: Tensor) -> tuple[Tensor, Tensor]:
        """a and the gain: tau V chi and V for Gaussian entries, R(chi) and R'(chi) for symmetric families."""
        tau, bi_invariant = self._facts
        if bi_invariant:
            return torch.zeros_like(chi), self.weight_var
        if tau is not None:
            return tau * self.weight_var * chi, self.weight_var
        return _scaled_r_transform(self.law, self.weight_var, chi)

    @functools.cached_property
    def _facts(self) -> tuple[float | None, bool]:
        """Asked of the family once: a family states its facts anew at every call, and a solution takes sixty."""
        return gaussian_correlation(self.ensemble), is_bi_invariant(self.ensemble)

    @functools.cached_property
    def law(self) -> AbstractLaw:
        """The eigenvalue law of a symmetric family at unit scale."""
        law = symmetric_law(self.ensemble)
        if law is None:
            raise unknown_family(self.ensemble)
        return law

    def averages(self, q: Tensor, chi: Tensor) -> tuple[FieldAverages, Tensor, Tensor, Tensor]:
        """The averages over one unit, a, and mean and variance of y; a is held below 1 / max slope."""
        a, gain = self.reaction(chi)
        a = a.clamp_max((1 - 1e-9) / self.activation.max_slope)
        outside = self.cell == "outside"
        mean = a * self.input_mean if outside else self.input_mean
        variance = gain * q + (a.square() if outside else 1.0) * self.input_var
        variance = variance.clamp_min(1e-300)
        if self.activation is ACTIVATIONS["hardtanh"]:
            return hardtanh_averages(a, mean, variance), a, mean, variance
        return quadrature_averages(self.activation, a, mean, variance), a, mean, variance

    def update(self, state: Tensor) -> Tensor:
        """One evaluation of the right-hand sides for (q, chi), stacked on the last axis."""
        q, chi = state.unbind(-1)
        averages, a, _, _ = self.averages(q, chi)
        power = averages.phi_square
        if self.cell == "outside":
            overlap = self.input_mean * averages.phi + a * self.input_var * averages.response
            power = power + 2 * overlap + self.input_var + self.input_mean.square()
        return torch.stack([power, averages.response], -1)


def solve_cavity(problem: CavityProblem) -> tuple[Tensor, Tensor, Tensor]:
    """q, chi and whether they were reached, elementwise.

    A dozen damped steps lead to the branch that starts at small weights; Newton's method then converges where plain
    iteration would slow down (its rate tends to 1 at the transition). A Newton step is kept if it stays positive and
    lowers the residual.
    """
    state = torch.stack(
        [problem.input_var + problem.input_mean.square() + 0.1, torch.full_like(problem.weight_var, 0.3)], -1
    )
    image = problem.update(state)
    for _ in range(_DAMPED_STEPS):
        state = (state + image) / 2
        image = problem.update(state)
    for _ in range(_MAX_STEPS):
        gap = image - state
        size = (gap.abs() / (1 + state.abs())).amax(-1)
        done = (size <= _TOL) | ~torch.isfinite(size) | (state[..., 0] > _RUNAWAY)
        if bool(done.all()):
            break
        trial = state + _newton_step(problem.update, state, image)
        usable = ((trial > 0) & torch.isfinite(trial)).all(-1)
        trial = torch.where((usable & ~done)[..., None], trial, state)
        trial_image = problem.update(trial)
        better = usable & ((trial_image - trial).abs() / (1 + trial.abs()) < size[..., None]).all(-1)
        damped = torch.where(done[..., None], state, (state + image) / 2)
        state = torch.where(better[..., None], trial, damped)
        image = trial_image if bool(better.all()) else problem.update(state)
    size = ((image - state).abs() / (1 + state.abs())).amax(-1)
    return state[..., 0], state[..., 1], size <= 1e-9


def _newton_step(update: Callable[[Tensor], Tensor], state: Tensor, image: Tensor) -> Tensor:
    """Solve (1 - J) step = image - state with J by differences, 2 x 2 in closed form."""
    columns = []
    for index in (0, 1):
        shift = torch.zeros_like(state)
        shift[..., index] = 1e-7 * (1 + state[..., index].abs())
        columns.append((update(state + shift) - image) / shift[..., index : index + 1])
    (a, c), (b, d) = ((-column).unbind(-1) for column in columns)
    a, d = a + 1, d + 1
    gap_q, gap_chi = (image - state).unbind(-1)
    determinant = a * d - b * c
    return torch.stack([(d * gap_q - b * gap_chi) / determinant, (a * gap_chi - c * gap_q) / determinant], -1)


def _scaled_r_transform(law: AbstractLaw, weight_var: Tensor, chi: Tensor) -> tuple[Tensor, Tensor]:
    """R and R' at chi of the law scaled to variance ``weight_var``; NaN where chi is not in the range of G."""
    scale = weight_var.sqrt()
    m = (scale * chi).clamp_min(1e-300)
    z = law.inverse_stieltjes(m)
    slope = law.stieltjes_prime(torch.complex(z, torch.zeros_like(z))).real
    return scale * (z - 1 / m), weight_var * (1 / slope + 1 / m.square())


def require_monotone(ensemble: AbstractEnsemble, activation: Activation) -> None:
    """Refuse a non-monotone activation for families whose two sides depend on each other."""
    if not is_bi_invariant(ensemble) and not activation.is_monotone:
        raise OutsideTheory(
            f"phi must not decrease anywhere for the {ensemble.name} family, whose spectral edge formula takes the "
            f"root of the slopes; {activation.name!r} has slopes down to {activation.min_slope:.4g}. "
            "Use a family with independent left and right bases (gaussian, haar), or measure."
        )


def require_theory(ensemble: AbstractEnsemble) -> None:
    """Refuse a family that the equations do not cover."""
    if not is_bi_invariant(ensemble) and gaussian_correlation(ensemble) is None and symmetric_law(ensemble) is None:
        raise unknown_family(ensemble, "theory of nonlinear networks")
    require_uniform_basis(ensemble, "nonlinear networks")


def finite_or_nan(values: Tensor, keep: Tensor) -> Tensor:
    """Values where ``keep``, NaN elsewhere."""
    return torch.where(keep, values, torch.full_like(values, math.nan))
