from __future__ import annotations

import math

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.theory.free_probability import (
    AbstractLaw,
    Arcsine,
    AtomsAndDensity,
    Bernoulli,
    Discrete,
    MarchenkoPastur,
    Semicircle,
    TwoPoint,
    UniformLaw,
)


@pytest.mark.parametrize(
    ("law", "r", "s"),
    [
        (Semicircle(2.0), lambda m: 2 * m, None),
        (TwoPoint(1.0), lambda m: ((1 + 4 * m * m) ** 0.5 - 1) / (2 * m), None),
        (Arcsine(1.0), lambda m: ((1 + m * m) ** 0.5 - 1) / m, None),
        (MarchenkoPastur(0.5), lambda m: 1 / (1 - 0.5 * m), lambda y: 1 / (1 + 0.5 * y)),
        (Bernoulli(0.6), lambda m: (m - 1 + ((m - 1) ** 2 + 2.4 * m) ** 0.5) / (2 * m), lambda y: (1 + y) / (y + 0.6)),
    ],
)
def test_r_and_s_transforms_are_the_textbook_ones(law: AbstractLaw, r: object, s: object) -> None:
    m = torch.tensor([0.1, 0.4, -0.3], dtype=torch.float64)
    torch.testing.assert_close(law.r_transform(m), r(m))  # type: ignore[operator]
    step = 1e-6
    slope = (law.r_transform(m + step) - law.r_transform(m - step)) / (2 * step)
    torch.testing.assert_close(law.r_prime(m), slope, atol=1e-7, rtol=1e-6)
    if s is not None:
        y = torch.tensor([-0.3, 0.5], dtype=torch.float64)
        torch.testing.assert_close(law.s_transform(y), s(y))  # type: ignore[operator]


@checks(
    Semicircle.inverse_stieltjes,
    Semicircle.inverse_moment,
    MarchenkoPastur.inverse_stieltjes,
    MarchenkoPastur.inverse_moment,
    TwoPoint.inverse_stieltjes,
    TwoPoint.inverse_moment,
    Bernoulli.inverse_moment,
    UniformLaw.inverse_stieltjes,
    Arcsine.inverse_stieltjes,
    by="the transform they invert",
)
@pytest.mark.parametrize(
    "law",
    [Semicircle(2.0), MarchenkoPastur(0.5), TwoPoint(0.5), Bernoulli(0.3), UniformLaw(-1.0, 2.0), Arcsine(1.5)],
    ids=lambda law: type(law).__name__,
)
def test_inverses_undo_the_transforms(law: AbstractLaw) -> None:
    m = torch.tensor([0.05, 0.2, -0.1], dtype=torch.float64)
    z = law.inverse_stieltjes(m)
    torch.testing.assert_close(law.stieltjes(torch.complex(z, torch.zeros_like(z))).real, m, atol=1e-9, rtol=1e-9)
    y = torch.tensor([0.02, 0.4], dtype=torch.float64)
    z = law.inverse_moment(y)
    torch.testing.assert_close(law.moment_transform(torch.complex(z, torch.zeros_like(z)))[0].real, y)


def test_searched_inverses_agree_with_closed_ones() -> None:
    m = torch.tensor([0.3, 1.0, -2.0, 1e3], dtype=torch.float64)
    torch.testing.assert_close(Discrete([-1.0, 1.0]).r_transform(m), TwoPoint(1.0).r_transform(m))
    y = torch.tensor([-0.3, 0.5, 1e-3, 20.0], dtype=torch.float64)
    torch.testing.assert_close(Discrete([0.0, 1.0], [0.4, 0.6]).s_transform(y), Bernoulli(0.6).s_transform(y))


def test_transforms_refuse_what_lies_outside() -> None:
    with pytest.raises(OutsideTheory, match="m must be a value of the Stieltjes transform"):
        Semicircle(1.0).r_transform(torch.tensor(1.5))
    with pytest.raises(OutsideTheory, match="needs a law on the positive half-line"):
        Semicircle(1.0).s_transform(torch.tensor(0.1))
    with pytest.raises(OutsideTheory, match="y must be a value"):
        Bernoulli(0.3).s_transform(torch.tensor(-0.5))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Semicircle(0.0), "variance must be a positive number"),
        (lambda: Bernoulli(0.0), r"p must lie in \(0, 1\]"),
        (lambda: UniformLaw(1.0, 1.0), "low must be below high"),
        (lambda: Discrete([]), "at least one number"),
        (lambda: Discrete([1.0], [-1.0]), "weights must be one number"),
        (lambda: AtomsAndDensity(torch.ones_like, 0.0, 2.0), "add up to 1; they add up to 2"),
    ],
)
def test_laws_that_are_not_laws_are_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]


def test_density_of_a_sample_is_smoothed_by_the_height() -> None:
    sample = Discrete(torch.linspace(0, 1, 2000, dtype=torch.float64))
    inner = torch.linspace(0.1, 0.9, 9, dtype=torch.float64)
    # a Lorentzian of width 0.005 leaks 2 eta / (pi distance to the edge), 3% at 0.1
    torch.testing.assert_close(sample.density(inner, eta=0.005), torch.ones_like(inner), atol=0.04, rtol=0)


def test_density_near_the_axis_of_a_given_density_is_exact() -> None:
    law = AtomsAndDensity(lambda t: 2 / math.pi * (1 - t * t).clamp_min(0).sqrt(), -1.0, 1.0, panels=400)
    x = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64)
    torch.testing.assert_close(law.density(x), Semicircle(0.25).density(x), atol=1e-6, rtol=0)


def test_the_density_is_infinite_at_an_atom_and_that_of_the_rest_beside_it() -> None:
    law = MarchenkoPastur(2.0)  # mass 1/2 at zero
    places, masses = law.atoms()
    assert places.tolist() == [0.0]
    assert law.density(places).tolist() == [math.inf]
    beside = torch.tensor([-1e-6, 1e-5, 1e-3], dtype=torch.float64)  # in the gap, under the flank of the peak
    torch.testing.assert_close(law.density(beside), torch.zeros(3, dtype=torch.float64), atol=1e-6, rtol=0)
    peak = float(masses[0]) / (math.pi * 1e-2)
    assert float(law.density(places, eta=1e-2)) == pytest.approx(peak, rel=1e-2)  # smoothed, if smoothing is asked for


def test_a_law_of_atoms_alone_has_no_density_between_them() -> None:
    points = torch.tensor([-1.0, 0.3, 1.0], dtype=torch.float64)
    assert TwoPoint(1.0).density(points).tolist() == [math.inf, 0.0, math.inf]


@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan])
def test_densities_are_read_above_the_axis(eta: float) -> None:
    with pytest.raises(InvalidInput, match="eta must be a positive number"):
        Semicircle(1.0).density(torch.zeros(1), eta=eta)
