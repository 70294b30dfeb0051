"""Linear deep equilibrium network z = W z + x: response, moments, critical scales, for every matrix family.

``weight_var`` is V = E tr W^T W with the normalised trace. All results are exact in the limit of infinite width; they
hold at width N while the distance to the critical scale, delta = 1 - V / V_c, is large against the fluctuation of the
spectral edge (delta >> N^(-2/3) for symmetric Gaussian matrices, N^(-1/2) for independent entries).

Source: agarwala2022, section 2 and appendices A and C; families beyond its three are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, as_float64, formula, require_integer
from separatrix.matrices.ensembles import AbstractEnsemble, find_ensemble

from . import moments as moments
from .families import (
    eigenvalue_atoms,
    gaussian_correlation,
    is_bi_invariant,
    known_facts,
    require_uniform_basis,
    unknown_family,
)

Family: TypeAlias = AbstractEnsemble | str
"""A square family or its name."""

Scalar: TypeAlias = float | int | Tensor
"""A number, or a tensor of them; the result is of the same kind."""


@formula("agarwala2022", "Eqs. (10), (16)")
def resolvent_moment(ensemble: Family, weight_var: Scalar, order: int = 1, tied: bool = True) -> float | Tensor:
    """E tr[((1 - W)^{-T} (1 - W)^{-1})^order], the second (order 1) and fourth (order 2) moment of the output.

    Untied means that every iteration draws a new W; then z does not converge but these statistics do.

    Args:
        ensemble: a square family or its name.
        weight_var: V, below the scale at which 1 - W becomes singular.
        order: 1 or 2.
        tied: the same W at every iteration.

    Raises:
        OutsideTheory: V at or above the limit, a family that no formula covers, or untied weights with a non-zero
            mean eigenvalue.

    Example:
        >>> from separatrix.matrices.ensembles import GOE
        >>> round(resolvent_moment(GOE(), 0.1), 4)
        1.455
    """
    ensemble = find_ensemble(ensemble)
    if order not in (1, 2):
        raise InvalidInput(f"order must be 1 or 2; got {order!r}.")
    limit = existence_weight_var(ensemble) if tied else 1.0
    v, restore = _checked(ensemble, weight_var, limit)
    return restore(_tied_moment(ensemble, v, order) if tied else _untied_moment(ensemble, v, order))


@formula("agarwala2022", "Eqs. (8), (9)", erratum="agarwala2022-eq9")
def mean_response(ensemble: Family, weight_var: Scalar) -> float | Tensor:
    """chi = tr (1 - W)^{-1}: the mean output is chi times the input (not the input itself, as the document has it)."""
    ensemble = find_ensemble(ensemble)
    v, restore = _checked(ensemble, weight_var, existence_weight_var(ensemble))
    tau, atoms = gaussian_correlation(ensemble), eigenvalue_atoms(ensemble)
    if tau is not None:
        return restore(moments.elliptic_response(v, tau))
    if atoms is not None:
        values, masses = atoms
        return restore((masses * (1 / (1 - v.sqrt()[..., None] * values)).real).sum(-1))
    return restore(torch.ones_like(v))


@formula("agarwala2022", "Eqs. (8), (9), (11)", erratum="agarwala2022-eq11")
def output_variance(ensemble: Family, weight_var: Scalar, input_power: Scalar = 1.0) -> float | Tensor:
    """Variance over matrices of one coordinate of z for a fixed input: (m1 - chi^2) x.x / N.

    Source: Eq. (8) for independent entries; the document's Eq. (11) for symmetric ones is wrong
    (erratum agarwala2022-eq11).
    """
    second, response = resolvent_moment(ensemble, weight_var, 1), mean_response(ensemble, weight_var)
    return (second - response * response) * input_power


@formula("agarwala2022", "Definition 2.1, Lemma 2.2, Eqs. (12), (13)", erratum="agarwala2022-eq12")
def length_variance(
    ensemble: Family, weight_var: Scalar, width: int, *, tied: bool = True, input_var: Scalar = 1.0
) -> float | Tensor:
    """Variance over Gaussian inputs of z.z / N: (2 / N) input_var^2 E tr[((1 - W)^{-T}(1 - W)^{-1})^2].

    Source: Eq. (13); the prefactor of its definition (12) is an erratum (agarwala2022-eq12).
    """
    width = require_integer(width, "width", at_least=1)
    return (2 / width) * input_var * input_var * resolvent_moment(ensemble, weight_var, 2, tied)


@formula("agarwala2022", "Sec. 2.1.2, after Eqs. (10) and (11)")
def linear_critical_weight_var(ensemble: Family) -> float:
    """The largest V at which the iteration z <- W z + x converges: spectral radius 1.

    Example:
        >>> from separatrix.matrices.ensembles import GOE, Haar
        >>> linear_critical_weight_var(GOE()), linear_critical_weight_var(Haar())
        (0.25, 1.0)
    """
    ensemble = find_ensemble(ensemble)
    tau, atoms = gaussian_correlation(ensemble), eigenvalue_atoms(ensemble)
    if tau is not None:
        return 1 / (1 + abs(tau)) ** 2
    if atoms is not None:
        values, masses = atoms
        return 1 / float(values[masses > 0].abs().max()) ** 2
    if is_bi_invariant(ensemble):
        return 1.0
    raise unknown_family(ensemble)


@formula("separatrix", "least scale at which 1 is an eigenvalue")
def existence_weight_var(ensemble: Family) -> float:
    """The least V at which 1 is an eigenvalue of W: below it the equilibrium exists, reached by iteration or not.

    Equal to the critical scale except where the outermost eigenvalues are not positive: infinite for antisymmetric
    matrices, whose iteration needs damping above 1/4 but whose equilibrium always exists.
    """
    ensemble = find_ensemble(ensemble)
    tau, atoms = gaussian_correlation(ensemble), eigenvalue_atoms(ensemble)
    if tau is not None:
        return 1 / (1 + tau) ** 2 if tau > -1 else math.inf
    if atoms is not None:
        values, masses = atoms
        positive = values.real[(values.imag.abs() < 1e-12) & (values.real > 0) & (masses > 0)]
        return 1 / float(positive.max()) ** 2 if len(positive) else math.inf
    return linear_critical_weight_var(ensemble)


@formula("agarwala2022", "Sec. 2.2.3", erratum="agarwala2022-sec223-untied")
def divergence_exponent(ensemble: Family, order: int = 1, *, tied: bool = True) -> float:
    """The exponent with which a resolvent moment diverges as delta = 1 - V / V_c goes to zero.

    The slope of the closed form between delta = 1e-9 and 1e-8, rounded to a multiple of 1/8 (it approaches its limit
    as delta, or its square root, does).

    Example:
        >>> from separatrix.matrices.ensembles import GOE, Gaussian, Haar
        >>> [divergence_exponent(family, 2) for family in (Gaussian(), Haar(), GOE())]
        [4.0, 3.0, 2.5]
    """
    ensemble = find_ensemble(ensemble)
    limit = existence_weight_var(ensemble) if tied else 1.0
    if math.isinf(limit):
        raise OutsideTheory(f"the moments of the {ensemble.name} family do not diverge at any weight_var.")
    deltas = torch.tensor([1e-8, 1e-9], dtype=torch.float64)
    values = resolvent_moment(ensemble, limit * (1 - deltas), order, tied)
    assert isinstance(values, Tensor)
    return round(8 * float((values[1] / values[0]).log() / math.log(10))) / 8


def _tied_moment(ensemble: AbstractEnsemble, v: Tensor, order: int) -> Tensor:
    tau, atoms = gaussian_correlation(ensemble), eigenvalue_atoms(ensemble)
    if is_bi_invariant(ensemble):
        second = moments.bi_invariant_second_moment(v)
        return second if order == 1 else moments.bi_invariant_fourth_moment(v, known_facts(ensemble).excess)
    if tau == 1:
        return moments.goe_second_moment(v) if order == 1 else moments.goe_fourth_moment(v)
    if tau is not None:
        return moments.elliptic_second_moment(v, tau) if order == 1 else moments.elliptic_fourth_moment(v, tau)
    if atoms is not None:
        return moments.normal_moment(v, *atoms, order)
    raise unknown_family(ensemble)


def _untied_moment(ensemble: AbstractEnsemble, v: Tensor, order: int) -> Tensor:
    facts = known_facts(ensemble)
    require_uniform_basis(ensemble, "moments with a new matrix at every step")
    if abs(facts.mean) > 1e-9:
        raise OutsideTheory("untied weights need a family with zero mean eigenvalue; subtract the mean.")
    if order == 1:
        return moments.untied_second_moment(v)
    return moments.untied_fourth_moment(v, facts.square, facts.excess, facts.third)


def _checked(
    ensemble: AbstractEnsemble, weight_var: Scalar, limit: float
) -> tuple[Tensor, Callable[[Tensor], float | Tensor]]:
    """V as float64, and how to give a result back in the caller's kind."""
    v = as_float64(weight_var, "weight_var")
    if bool(((v < 0) | (v >= limit)).any()):
        raise OutsideTheory(
            f"weight_var must lie in [0, {limit:.6g}) for the {ensemble.name} family, where the fixed point exists; "
            f"got values in [{float(v.min()):.6g}, {float(v.max()):.6g}]."
        )
    return v, (lambda result: result) if isinstance(weight_var, Tensor) else (lambda result: float(result))
