from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.matrices.ensembles import (
    GOE,
    AbstractEnsemble,
    Antisymmetric,
    BiInvariant,
    Elliptic,
    Gaussian,
    Haar,
    Normal,
    RotationInvariant,
    SymmetricOrthogonal,
)
from separatrix.theory import (
    divergence_exponent,
    existence_weight_var,
    length_variance,
    linear_critical_weight_var,
    mean_response,
    output_variance,
    resolvent_moment,
)
from separatrix.theory.equilibrium_networks import moments as moments
from separatrix.theory.free_probability import Semicircle

WIDTH, MATRICES = 300, 6
CASES: list[tuple[AbstractEnsemble, float]] = [
    (GOE(), 0.05),
    (GOE(), 0.1),
    (GOE(), 0.2),
    (Gaussian(), 0.2),
    (Haar(), 0.2),
    (Gaussian(), 0.5),
    (Haar(), 0.5),
    (Elliptic(0.5), 0.3),
    (Elliptic(-0.5), 0.3),
    (Antisymmetric(), 0.3),
    (SymmetricOrthogonal(), 0.3),
    (RotationInvariant([1.0, -2.0, 1.5]), 0.2),
    (BiInvariant([0.0, 0.6, 0.9]), 0.3),
    (Normal([1.0, 1j, -1j, -1.0]), 0.3),
]
PRINTED = {  # spectra of section 2.7: m1, m2, chi
    ("goe", 0.05): (1.1803, 1.7469, 1.0557),
    ("goe", 0.1): (1.4550, 3.5861, 1.1270),
    ("goe", 0.2): (3.0902, 55.90, 1.3820),
    ("gaussian", 0.5): (2.0, 16.0, 1.0),
    ("haar", 0.5): (2.0, 12.0, 1.0),
    ("antisymmetric", 0.3): (0.80540, None, 0.80540),
}


@pytest.mark.sampled(7)
@checks(
    moments.bi_invariant_second_moment,
    moments.bi_invariant_fourth_moment,
    moments.goe_second_moment,
    moments.goe_fourth_moment,
    moments.elliptic_response,
    moments.elliptic_second_moment,
    moments.elliptic_fourth_moment,
    moments.normal_moment,
    resolvent_moment,
    mean_response,
    by="sampled matrices",
)
@pytest.mark.parametrize(("ensemble", "v"), CASES, ids=lambda value: getattr(value, "name", value))
def test_tied_moments_match_sampled_matrices(ensemble: AbstractEnsemble, v: float) -> None:
    generator = seeded(7)
    matrices = ensemble.sample(WIDTH, v, generator=generator, batch=(MATRICES,))
    response = torch.linalg.inv(torch.eye(WIDTH, dtype=torch.float64) - matrices)
    measured = {
        "chi": response.diagonal(dim1=-2, dim2=-1).mean(-1),
        "m1": response.square().sum((-2, -1)) / WIDTH,
        "m2": (response @ response.mT).square().sum((-2, -1)) / WIDTH,
    }
    expected = {
        "chi": mean_response(ensemble, v),
        "m1": resolvent_moment(ensemble, v, 1),
        "m2": resolvent_moment(ensemble, v, 2),
    }
    for name, values in measured.items():
        error = float(values.std()) / math.sqrt(MATRICES)
        slack = 0.1 if name == "m2" and expected[name] > 30 else 0.02  # O(1/N) bias, larger near criticality
        assert float(values.mean()) == pytest.approx(expected[name], abs=4 * error + slack * abs(expected[name])), name


@pytest.mark.parametrize(("key", "values"), PRINTED.items(), ids=str)
def test_values_of_the_closed_forms(key: tuple[str, float], values: tuple[float | None, ...]) -> None:
    ensemble = {e.name: e for e, _ in CASES}[key[0]]
    got = (resolvent_moment(ensemble, key[1]), resolvent_moment(ensemble, key[1], 2), mean_response(ensemble, key[1]))
    for number, expected in zip(got, values, strict=True):
        assert expected is None or number == pytest.approx(expected, rel=2e-4)


@pytest.mark.sampled(2)
@checks(moments.untied_second_moment, moments.untied_fourth_moment, by="products of sampled matrices")
@pytest.mark.parametrize(
    ("ensemble", "v"),
    [
        (Gaussian(), 0.5),
        (GOE(), 0.5),
        (Haar(), 0.7),
        (Elliptic(-0.5), 0.4),
        (RotationInvariant([2.0, -1.0, -1.0]), 0.4),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_untied_moments_match_products_of_fresh_matrices(ensemble: AbstractEnsemble, v: float) -> None:
    generator = seeded(11)
    width, count = 150, 10
    eye = torch.eye(width, dtype=torch.float64)
    response = eye.expand(count, width, width)
    for _ in range(40):
        response = eye + ensemble.sample(width, v, generator=generator, batch=(count,)) @ response
    for order, values in (
        (1, response.square().sum((-2, -1)) / width),
        (2, (response @ response.mT).square().sum((-2, -1)) / width),
    ):
        error = float(values.std()) / math.sqrt(count)
        expected = resolvent_moment(ensemble, v, order, tied=False)
        assert float(values.mean()) == pytest.approx(expected, abs=4 * error + 0.02 * expected)


def test_untied_values() -> None:
    table = {0.5: (8.0, 28 / 3, 20 / 3), 0.7: (30.94, 33.68, 20.26), 0.85: (201.0, 207.1, 85.29)}
    for v, row in table.items():
        got = [resolvent_moment(family, v, 2, tied=False) for family in (Gaussian(), GOE(), Haar())]
        assert got == pytest.approx(row, rel=5e-4)


@checks(moments.goe_second_moment, moments.goe_fourth_moment, by="quadrature of the semicircle law")
@settings(max_examples=25, deadline=None)
@given(v=st.floats(0.001, 0.24))
def test_goe_moments_are_integrals_of_the_semicircle(v: float) -> None:
    angle = (torch.arange(20000, dtype=torch.float64) + 0.5) * (math.pi / 20000)
    values = 2 * math.sqrt(v) * angle.cos()
    weights = angle.sin().square() * 2 / 20000
    for order in (1, 2):
        integral = float((weights * (1 - values).pow(-2 * order)).sum())
        assert resolvent_moment(GOE(), v, order) == pytest.approx(integral, rel=1e-8)


@checks(moments.elliptic_fourth_moment, by="its three closed limits")
@settings(max_examples=25, deadline=None)
@given(v=st.floats(0.001, 0.2))
def test_elliptic_fourth_moment_contains_the_known_families(v: float) -> None:
    tensor = torch.tensor(v, dtype=torch.float64)
    assert float(moments.elliptic_fourth_moment(tensor, 1.0)) == pytest.approx((1 - 4 * v) ** -2.5, rel=1e-9)
    assert float(moments.elliptic_fourth_moment(tensor, 0.0)) == pytest.approx((1 - v) ** -4, rel=1e-9)
    # antisymmetric: 1 - W is normal, and the mean over i times a semicircle of (1 + l^2)^-2
    angle = (torch.arange(4000, dtype=torch.float64) + 0.5) * (math.pi / 4000)
    squares = 4 * v * angle.cos().square()
    integral = float((angle.sin().square() * 2 / 4000 * (1 + squares).pow(-2)).sum())
    assert float(moments.elliptic_fourth_moment(tensor, -1.0)) == pytest.approx(integral, rel=1e-9)


def test_general_symmetric_formula_contains_the_semicircle() -> None:
    """chi = G(1), m1 = -G'(1) for a symmetric law, here the semicircle of variance V."""
    one, law = torch.tensor(1 + 0j, dtype=torch.complex128), Semicircle(0.2)
    assert mean_response(GOE(), 0.2) == pytest.approx(float(law.stieltjes(one).real))
    assert resolvent_moment(GOE(), 0.2) == pytest.approx(float(-law.stieltjes_prime(one).real))


@checks(moments.bi_invariant_finite_time, moments.goe_finite_time, by="sampled matrices iterated")
@pytest.mark.parametrize(
    ("ensemble", "formula"), [(Gaussian(), moments.bi_invariant_finite_time), (GOE(), moments.goe_finite_time)]
)
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_finite_time_second_moment(ensemble: AbstractEnsemble, formula: object, steps: int) -> None:
    generator = seeded(2)
    matrices = ensemble.sample(200, 0.2, generator=generator, batch=(8,))
    total, power = torch.zeros_like(matrices), torch.eye(200, dtype=torch.float64).expand_as(matrices)
    for _ in range(steps):
        total, power = total + power, power @ matrices
    values = total.square().sum((-2, -1)) / 200
    error = float(values.std()) / math.sqrt(8)
    expected = float(formula(torch.tensor(0.2, dtype=torch.float64), steps))  # type: ignore[operator]
    assert float(values.mean()) == pytest.approx(expected, abs=4 * error + 0.01 * expected)


@checks(moments.iid_power_norm, by="singular values of a sampled matrix")
@pytest.mark.parametrize("power", [1, 2, 3])
def test_norm_of_a_power(power: int, generator: torch.Generator) -> None:
    matrix = Gaussian().sample(400, 0.9, generator=generator)
    largest = torch.linalg.matrix_norm(torch.linalg.matrix_power(matrix, power), 2) ** 2
    expected = float(moments.iid_power_norm(torch.tensor(0.9, dtype=torch.float64), power))
    assert float(largest) == pytest.approx(expected, rel=0.08)  # edge shifts by N^(-2/3)


@checks(output_variance, by="sampled matrices")
def test_variance_of_one_coordinate_matches_sampled_matrices(generator: torch.Generator) -> None:
    """With one large input coordinate: the variance is (m1 - chi^2) x.x/N at every coordinate."""
    width, v = 60, 0.1
    x = torch.ones(width, dtype=torch.float64)
    x[0] = 4.0
    z = torch.linalg.solve(
        torch.eye(width, dtype=torch.float64) - GOE().sample(width, v, generator=generator, batch=(3000,)), x
    )
    expected = output_variance(GOE(), v, float(x.square().mean()))
    assert float(z[:, 1:].var(0).mean()) == pytest.approx(expected, rel=0.08)  # O(1/N) and sampling, 3% each
    assert float(z.mean(0)[0]) == pytest.approx(4 * mean_response(GOE(), v), rel=0.02)


@checks(length_variance, by="sampled inputs")
def test_length_variance_matches_its_definition(generator: torch.Generator) -> None:
    width, v = 200, 0.3
    system = torch.eye(width, dtype=torch.float64) - Haar().sample(width, v, generator=generator)
    x = torch.randn(width, 20000, generator=generator, dtype=torch.float64)
    lengths = torch.linalg.solve(system, x).square().mean(0)
    assert float(lengths.var()) == pytest.approx(length_variance(Haar(), v, width), rel=0.1)


def test_critical_scales() -> None:
    assert linear_critical_weight_var(GOE()) == 0.25
    assert linear_critical_weight_var(Antisymmetric()) == 0.25
    assert (
        linear_critical_weight_var(Gaussian())
        == linear_critical_weight_var(Haar())
        == linear_critical_weight_var(BiInvariant([1.0, 3.0]))
        == 1
    )
    assert linear_critical_weight_var(Elliptic(0.5)) == pytest.approx(1 / 2.25)
    assert linear_critical_weight_var(RotationInvariant([1.0, -3.0])) == pytest.approx(5 / 9)
    assert math.isinf(existence_weight_var(Antisymmetric()))
    assert existence_weight_var(RotationInvariant([1.0, -3.0])) == pytest.approx(5)


@pytest.mark.sampled(3)
@checks(linear_critical_weight_var, existence_weight_var, by="eigenvalues of sampled matrices")
@pytest.mark.parametrize(
    "ensemble",
    [Gaussian(), Haar(), GOE(), Antisymmetric(), Elliptic(0.5), Elliptic(-0.5), RotationInvariant([1.0, -3.0])],
    ids=lambda ensemble: ensemble.name,
)
def test_critical_scales_are_those_of_sampled_spectra(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    values = torch.linalg.eigvals(ensemble.sample(400, 1.0, generator=generator))
    # the radius fluctuates by N^(-1/2) to N^(-2/3), its square by twice that
    assert 1 / float(values.abs().max()) ** 2 == pytest.approx(linear_critical_weight_var(ensemble), rel=0.12)
    rightmost = float(values.real.max())
    if rightmost < 0.1:  # a spectrum on the imaginary axis never reaches 1
        assert math.isinf(existence_weight_var(ensemble))
    else:
        assert 1 / rightmost**2 == pytest.approx(existence_weight_var(ensemble), rel=0.12)


@checks(divergence_exponent, by="quadrature of the eigenvalue law at two distances")
@pytest.mark.parametrize("order", [1, 2])
def test_exponents_are_slopes_of_integrals_over_the_spectrum(order: int) -> None:
    def moment(angles: torch.Tensor, weights: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        return ((weights * distance(angles) ** (-order)).sum() / weights.sum()).log()

    angles = torch.linspace(0, math.pi, 4_000_001, dtype=torch.float64)
    even = torch.ones_like(angles)
    deltas = (1e-3, 1e-4)
    goe, haar = [], []
    for delta in deltas:
        edge, radius = 1 - delta, math.sqrt(1 - delta)  # of the semicircle 2 sqrt(V), and of the circle sqrt(V)
        goe.append(moment(angles, angles.sin().square(), lambda a, e=edge: (1 - math.sqrt(e) * a.cos()).square()))
        haar.append(moment(angles, even, lambda a, r=radius: 1 + r * r - 2 * r * a.cos()))
    for values, family in ((goe, GOE()), (haar, Haar())):
        slope = float(values[1] - values[0]) / math.log(10)
        assert slope == pytest.approx(divergence_exponent(family, order), abs=0.03)


def test_divergence_exponents() -> None:
    exponents = {
        (Gaussian(), 1): 1.0, (Gaussian(), 2): 4.0, (Haar(), 2): 3.0, (GOE(), 1): 0.5, (GOE(), 2): 2.5,
    }  # fmt: skip
    for (family, order), expected in exponents.items():
        assert divergence_exponent(family, order) == expected
    assert [divergence_exponent(f, 2, tied=False) for f in (Gaussian(), GOE(), Haar())] == [3.0, 3.0, 2.0]
    with pytest.raises(OutsideTheory, match="do not diverge"):
        divergence_exponent(Antisymmetric(), 1)


@pytest.mark.parametrize(("ensemble", "v"), [(GOE(), 0.25), (Gaussian(), 1.0), (Haar(), 1.5), (Elliptic(0.5), 0.45)])
def test_at_or_above_the_limit_there_is_no_number(ensemble: AbstractEnsemble, v: float) -> None:
    with pytest.raises(OutsideTheory, match=r"weight_var must lie in \[0, .*where the fixed point exists; got values"):
        resolvent_moment(ensemble, v)


def test_other_refusals() -> None:
    with pytest.raises(OutsideTheory, match="zero mean eigenvalue"):
        resolvent_moment(RotationInvariant([1.0, 2.0]), 0.1, 2, tied=False)
    with pytest.raises(InvalidInput, match="order must be 1 or 2; got 3"):
        resolvent_moment(GOE(), 0.1, 3)
    with pytest.raises(OutsideTheory, match="weight_var must lie in"):
        resolvent_moment(GOE(), -0.1)


def test_tensors_in_tensors_out() -> None:
    v = torch.tensor([[0.05, 0.1], [0.15, 0.2]], dtype=torch.float64)
    batch = resolvent_moment(GOE(), v, 2)
    assert isinstance(batch, torch.Tensor)
    assert batch.shape == (2, 2)
    assert float(batch[1, 0]) == resolvent_moment(GOE(), 0.15, 2)
