from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy
import pytest
import scipy.integrate
import scipy.optimize
import torch

from helpers import checks, seeded
from separatrix.core import InvalidInput, Outcome, OutsideTheory
from separatrix.core.networks.activations import find_activation
from separatrix.matrices.ensembles import (
    GOE,
    AbstractEnsemble,
    Antisymmetric,
    Elliptic,
    Gaussian,
    Haar,
    Normal,
    RotationInvariant,
    SymmetricOrthogonal,
)
from separatrix.theory import critical_weight_var, mean_field, mean_response, resolvent_moment

SCALES = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=torch.float64)


def simulate(
    ensemble: AbstractEnsemble, name: str, scale: float, matrices: int = 10
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean squares of h and spectral radii, one per matrix; width 250, half steps."""
    phi, width = find_activation(name), 250
    generator = seeded(17)
    w = ensemble.sample(width, scale**2, generator=generator, batch=(matrices,))
    x = torch.randn(matrices, 6, width, generator=generator, dtype=torch.float64)
    z = x.clone()
    for _ in range(300):
        z = (z + phi.phi(z @ w.mT) + x) / 2
    h = z @ w.mT
    radius = torch.linalg.eigvals(phi.dphi(h[:, 0])[..., None] * w).abs().amax(-1)
    return h.square().mean((-2, -1)), radius


@pytest.mark.sampled(2)
@checks(mean_field, by="simulated networks")
@pytest.mark.parametrize(
    ("ensemble", "name", "scale"),
    [
        (Gaussian(), "hardtanh", 1.0),
        (Haar(), "tanh", 1.0),
        (GOE(), "hardtanh", 0.5),
        (GOE(), "tanh", 0.6),
        (Elliptic(0.5), "hardtanh", 0.6),
        (Elliptic(-0.5), "tanh", 0.6),
        (Antisymmetric(), "tanh", 0.8),
        (SymmetricOrthogonal(), "hardtanh", 0.8),
        (RotationInvariant([1.0, -1.0, 0.5]), "tanh", 0.6),
        (GOE(), "sigmoid", 1.0),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_statistics_match_simulated_networks(ensemble: AbstractEnsemble, name: str, scale: float) -> None:
    h_var, radius = simulate(ensemble, name, scale)
    theory = mean_field(ensemble, name, weight_var=scale**2, input_var=1.0)
    for values, expected, bias in ((h_var, theory.h_var, 0.03), (radius, theory.radius, 0.07)):
        error = float(values.std()) / math.sqrt(len(values))
        assert float(values.mean()) == pytest.approx(expected, abs=4 * error + bias * expected)


def test_symmetric_weights_are_not_described_without_the_reaction() -> None:
    with_reaction = mean_field(GOE(), "hardtanh", weight_var=0.36)
    without = mean_field(Gaussian(), "hardtanh", weight_var=0.36)
    assert with_reaction.h_var > 2.5 * without.h_var
    assert without.reaction == 0


def test_values_for_symmetric_weights() -> None:
    hard = mean_field(GOE(), "hardtanh", weight_var=SCALES.square(), input_var=1.0)
    assert hard.h_var.tolist() == pytest.approx([0.01063, 0.0515, 0.1638, 0.4132, 0.7842], rel=2e-3)
    assert hard.radius.tolist() == pytest.approx([0.2, 0.4, 0.5959, 0.7472, 0.8418], rel=2e-4)
    smooth = mean_field(GOE(), "tanh", weight_var=SCALES.square(), input_var=1.0)
    assert smooth.radius.tolist() == pytest.approx([0.1980, 0.3830, 0.5407, 0.6627, 0.7530], rel=3e-4)
    assert smooth.replicon.tolist() == pytest.approx([0.010, 0.040, 0.085, 0.140, 0.198], abs=6e-4)


def test_values_for_independent_weights() -> None:
    for scale, h_var, p, r in (
        (0.5, 0.31935, 0.92320, 0.48042),
        (1.0, 1.60460, 0.57014, 0.75508),
        (1.5, 3.90979, 0.38696, 0.93309),
    ):
        result = mean_field(Gaussian(), "hardtanh", weight_var=scale**2, input_var=1.0)
        assert (result.h_var, result.slope, result.radius) == pytest.approx((h_var, p, r), rel=2e-5)


@pytest.mark.parametrize(
    ("ensemble", "v"),
    [
        (GOE(), 0.2),
        (Gaussian(), 0.6),
        (Elliptic(-0.5), 0.3),
        (SymmetricOrthogonal(), 0.5),
        (RotationInvariant([2.0, -1.0, 0.0]), 0.2),
    ],
)
def test_linear_activation_gives_the_linear_theory(ensemble: AbstractEnsemble, v: float) -> None:
    result = mean_field(ensemble, "linear", weight_var=v, input_var=1.0)
    assert result.q == pytest.approx(resolvent_moment(ensemble, v), rel=1e-9)
    if not isinstance(ensemble, Gaussian):
        assert result.chi == pytest.approx(mean_response(ensemble, v), rel=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("ensemble", "phi", "input_std", "scale"),
    [
        (Gaussian(), "hardtanh", 0.5, 1.2792),
        (Gaussian(), "tanh", 2.0, 4.1754),
        (GOE(), "hardtanh", 1.0, 1.0186),
        (GOE(), "tanh", 1.0, 1.3370),
        (Antisymmetric(), "hardtanh", 1.0, 0.5042),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_thresholds(ensemble: AbstractEnsemble, phi: str, input_std: float, scale: float) -> None:
    critical = critical_weight_var(ensemble, phi, input_var=input_std**2)
    assert math.sqrt(critical) == pytest.approx(scale, abs=1e-4)


@checks(critical_weight_var, by="the scalar equations of independent weights, by quadrature and root finding")
@pytest.mark.parametrize("name", ["hardtanh", "tanh"])
def test_critical_scale_of_independent_weights_solves_the_scalar_equations(name: str) -> None:
    function, slope = {
        "hardtanh": (lambda h: numpy.clip(h, -1, 1), lambda h: (abs(h) < 1) * 1.0),
        "tanh": (numpy.tanh, lambda h: 1 - numpy.tanh(h) ** 2),
    }[name]

    def mean_square(of: Any, log_variance: float) -> float:
        """Over a Gaussian field of this variance, split where the hard-tanh has its kinks."""
        std = math.exp(log_variance / 2)
        parts = (-10.0, *sorted({max(-10.0, -1 / std), min(10.0, 1 / std)}), 10.0)
        density = lambda g: of(std * g) ** 2 * math.exp(-g * g / 2) / math.sqrt(2 * math.pi)  # noqa: E731
        return sum(scipy.integrate.quad(density, *part)[0] for part in itertools.pairwise(parts))

    def scale(log_variance: float) -> float:
        """The V at which this is the variance of h, for inputs of variance 1."""
        return math.exp(log_variance) / (mean_square(function, log_variance) + 1)

    at_one = scipy.optimize.brentq(lambda v: scale(v) * mean_square(slope, v) - 1, -2, 4)
    expected = scale(at_one)
    assert critical_weight_var(Gaussian(), name, input_var=1.0) == pytest.approx(expected, rel=1e-6)


def test_replicon_reaches_one_where_the_rightmost_eigenvalue_does() -> None:
    """An independent condition: on both sides of the threshold the sign of 1 - replicon is that of validity."""
    critical = critical_weight_var(GOE(), "tanh", input_var=1.0)
    below = mean_field(GOE(), "tanh", weight_var=0.9999 * critical)
    above = mean_field(GOE(), "tanh", weight_var=1.0001 * critical)
    assert below.valid
    assert not above.valid
    assert below.replicon == pytest.approx(1, abs=1e-3)
    assert below.radius == pytest.approx(1, abs=1e-6)  # the edge approaches 1 quadratically
    assert math.isnan(above.radius)


@pytest.mark.parametrize("scale", [1.1, 1.5, 3.0])
def test_beyond_the_transition_there_are_no_numbers(scale: float) -> None:
    result = mean_field(GOE(), "hardtanh", weight_var=scale**2, input_var=1.0)
    assert result.valid is False
    numbers = (result.h_var, result.q, result.chi, result.radius, result.replicon, result.slope, result.reaction)
    assert all(math.isnan(number) for number in numbers)


def test_equilibrium_may_exist_where_plain_iteration_fails() -> None:
    result = mean_field(Antisymmetric(), "tanh", weight_var=0.64, input_var=1.0)
    assert result.valid
    assert result.radius > 1


def test_non_monotone_activation_is_refused_for_symmetric_weights_only() -> None:
    with pytest.raises(
        OutsideTheory, match=r"phi must not decrease anywhere for the goe family.*'gelu' has slopes down to"
    ):
        mean_field(GOE(), "gelu", weight_var=0.1)
    named = mean_field(Gaussian(), "gelu", weight_var=0.36)
    probed = mean_field(Gaussian(), torch.nn.functional.gelu, weight_var=0.36)
    assert named.valid
    assert probed.radius == pytest.approx(named.radius, rel=1e-9)


def test_families_without_theory_are_refused() -> None:
    with pytest.raises(OutsideTheory, match="no theory of nonlinear networks covers the ensemble 'normal'"):
        mean_field(Normal([1j, -1j]), "tanh", weight_var=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_var": 0.0}, "weight_var must be positive"),
        ({"weight_var": -1.0}, "weight_var must be positive"),
        ({"weight_var": 0.1, "input_var": -1.0}, "input_var must be at least 0"),
        ({"weight_var": math.nan}, "weight_var must be finite"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mean_field(GOE(), "tanh", **arguments)


def test_batch_and_single_calls_agree_and_kinds_are_kept() -> None:
    batch = mean_field(GOE(), "tanh", weight_var=torch.tensor([0.04, 0.25, 4.0], dtype=torch.float64))
    single = mean_field(GOE(), "tanh", weight_var=0.25)
    assert isinstance(single.h_var, float)
    assert single.outcome is Outcome.CONVERGED
    assert float(batch.h_var[1]) == pytest.approx(single.h_var, rel=1e-9)
    assert batch.valid.tolist() == [True, True, False]
    assert mean_field(GOE(), "tanh", weight_var=torch.tensor([0.25])).h_var.shape == (1,)


@pytest.mark.sampled(1, each="cell")
@pytest.mark.parametrize("cell", ["outside", "inside"])
@pytest.mark.parametrize("ensemble", [Gaussian(), GOE()], ids=lambda e: e.name)
def test_mean_squares_for_both_places_of_the_input(
    ensemble: AbstractEnsemble, cell: Literal["outside", "inside"], generator: torch.Generator
) -> None:
    """h is what the activation is applied to: W z, or W z + x when the input enters inside."""
    width, inside = 300, cell == "inside"
    w = ensemble.sample(width, 0.2, generator=generator, batch=(8,))
    x = 0.5 + torch.randn(8, 4, width, generator=generator, dtype=torch.float64)
    z = torch.zeros_like(x)
    for _ in range(200):
        z = torch.tanh(z @ w.mT + x) if inside else (z + torch.tanh(z @ w.mT) + x) / 2
    h = z @ w.mT + (x if inside else 0)
    theory = mean_field(ensemble, "tanh", weight_var=0.2, input_var=1.0, input_mean=0.5, cell=cell)
    for measured, expected in ((z, theory.q), (h, theory.h_var)):
        values = measured.square().mean((-2, -1))
        assert float(values.mean()) == pytest.approx(expected, abs=4 * float(values.std()) / math.sqrt(8) + 0.01)


def test_input_with_a_mean(generator: torch.Generator) -> None:
    width = 300
    w = GOE().sample(width, 0.2, generator=generator, batch=(8,))
    x = 0.8 + torch.randn(8, 4, width, generator=generator, dtype=torch.float64)
    z = torch.zeros_like(x)
    for _ in range(200):
        z = (z + torch.tanh(z @ w.mT) + x) / 2
    values = z.square().mean((-2, -1))
    theory = mean_field(GOE(), "tanh", weight_var=0.2, input_var=1.0, input_mean=0.8)
    assert float(values.mean()) == pytest.approx(theory.q, abs=4 * float(values.std()) / math.sqrt(8) + 0.01)


def test_critical_scale_is_one_attribute_away() -> None:
    result = mean_field(Gaussian(), "hardtanh", weight_var=0.5, input_var=1.0)
    assert math.sqrt(result.critical_weight_var) == pytest.approx(1.7216, abs=1e-4)
