"""What every law claims, run for every law. A new law is entered by one line in ``LAWS``: the law and its moments."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import pytest
import torch

from helpers import checks
from separatrix.core import OutsideTheory
from separatrix.theory.free_probability import (
    AbstractLaw,
    Arcsine,
    AtomsAndDensity,
    Bernoulli,
    Discrete,
    MarchenkoPastur,
    Reflected,
    Semicircle,
    TwoPoint,
    UniformLaw,
    free_product,
    free_sum,
)


@dataclasses.dataclass  # not frozen, so not hashable: laws of strangers need not be
class Triangle(AbstractLaw):
    """A stranger's law: density 1 - |x| on [-1, 1]. Only what the base class asks for."""

    symmetric: ClassVar[bool] = True

    def stieltjes(self, z: torch.Tensor) -> torch.Tensor:
        return (z + 1) * (torch.log(z + 1) - torch.log(z)) + (z - 1) * (torch.log(z - 1) - torch.log(z))

    def stieltjes_prime(self, z: torch.Tensor) -> torch.Tensor:
        return torch.log(z + 1) + torch.log(z - 1) - 2 * torch.log(z)

    def edges(self) -> tuple[float, float]:
        return -1.0, 1.0


LAWS: dict[str, tuple[AbstractLaw, list[float]]] = {
    "semicircle": (Semicircle(2.0), [0, 2, 0, 8]),
    "marchenko-pastur": (MarchenkoPastur(0.5), [1, 1.5, 2.75, 5.625]),
    "marchenko-pastur with an atom": (MarchenkoPastur(2.0, 3.0), [3, 27, 297, 3645]),
    "two points": (TwoPoint(0.5), [0, 0.5, 0, 0.25]),
    "bernoulli": (Bernoulli(0.3), [0.3] * 4),
    "uniform": (UniformLaw(-1.0, 2.0), [0.5, 1.0, 1.25, 2.2]),
    "arcsine": (Arcsine(1.5), [0, 1.125, 0, 3 / 8 * 1.5**4]),
    "atoms": (Discrete([1.0, -2.0], [0.75, 0.25]), [0.25, 1.75, -1.25, 4.75]),
    "atoms and density": (
        AtomsAndDensity(lambda t: torch.full_like(t, 0.5), 0.0, 1.0, [2.0], [0.5]),
        [0.25 + 1, 1 / 6 + 2, 0.125 + 4, 0.1 + 8],
    ),
    "reflected": (Reflected(Bernoulli(0.3)), [-0.3, 0.3, -0.3, 0.3]),
    "sum": (free_sum(UniformLaw(0.0, 1.0), TwoPoint(1.0)), [0.5, 1 / 3 + 1]),
    "sum with an atom": (free_sum(Bernoulli(0.3), Bernoulli(0.4)), [0.7, 0.7 + 0.24]),
    "product": (free_product(UniformLaw(0.0, 1.0), TwoPoint(1.0)), [0, 0.25]),
    "positive product": (free_product(MarchenkoPastur(0.25), UniformLaw(1.0, 2.0)), [1.5, 1.25 * 2.25 + 7 / 3 - 2.25]),
    "product with an atom": (free_product(Bernoulli(0.6), Semicircle(1.0)), [0, 0.36]),
    "product with a negative law": (free_product(UniformLaw(1.0, 2.0), Discrete([-1.0])), [-1.5, 7 / 3]),
    "a stranger's": (Triangle(), [0, 1 / 6, 0, 1 / 15]),
    "a stranger's sum": (free_sum(Triangle(), Bernoulli(0.5)), [0.5, 1 / 6 + 0.5]),
}
POINTS = torch.tensor([0.3 + 0.7j, -1.2 - 0.4j, 5.0 + 0.1j], dtype=torch.complex128)


pytestmark = pytest.mark.sampled(4, across="case")


@pytest.fixture(params=LAWS.values(), ids=LAWS.keys())
def case(request: pytest.FixtureRequest) -> tuple[AbstractLaw, list[float]]:
    return request.param


@pytest.fixture
def law(case: tuple[AbstractLaw, list[float]]) -> AbstractLaw:
    return case[0]


def real(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def special_points(law: AbstractLaw) -> torch.Tensor:
    """Atoms, edges, the centre, and round numbers, where symmetric laws have zeros of G."""
    low, high = law.edges()
    return real([*law.atoms()[0].tolist(), (low + high) / 2, low, high, low - 0.1, high + 0.1, 0.0, 0.5, 1.0])


@checks(
    Semicircle.stieltjes,
    MarchenkoPastur.stieltjes,
    TwoPoint.stieltjes,
    Bernoulli.stieltjes,
    UniformLaw.stieltjes,
    Arcsine.stieltjes,
    Reflected.stieltjes,
    by="known moments",
)
def test_moments_by_contour_are_the_known_ones(case: tuple[AbstractLaw, list[float]]) -> None:
    law, expected = case
    assert law.moments(len(expected)).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert AbstractLaw.moments(law, len(expected)).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_transform_is_analytic_with_the_derivative_it_claims(law: AbstractLaw) -> None:
    step = 1e-5
    for direction in (1.0, 1j):  # the same derivative along both axes: analytic
        shift = step * direction
        slope = (law.stieltjes(POINTS + shift) - law.stieltjes(POINTS - shift)) / (2 * shift)
        torch.testing.assert_close(slope, law.stieltjes_prime(POINTS), atol=2e-8, rtol=2e-8)


def test_transform_maps_half_planes_and_is_one_over_z_at_infinity(law: AbstractLaw) -> None:
    values = law.stieltjes(POINTS)
    assert bool((values.imag * POINTS.imag < 0).all())
    torch.testing.assert_close(law.stieltjes(POINTS.conj()), values.conj().resolve_conj())
    far = torch.tensor([1e4j], dtype=torch.complex128)
    torch.testing.assert_close(
        law.stieltjes(far) * far, torch.ones_like(far), atol=5e-4, rtol=0
    )  # the mean over 1e4, at most 3e-4


def test_support_lies_within_the_edges_and_reaches_them(law: AbstractLaw) -> None:
    low, high = law.edges()
    assert law.density(real([low - 0.05, high + 0.05])).abs().max() < 1e-6
    margin = 0.02 * (high - low)
    for start, end in ((low, low + margin), (high - margin, high)):
        positions, masses = law.atoms()
        tolerance = 1e-9 * (1 + abs(start))
        atoms = float(masses[(positions >= start - tolerance) & (positions <= end + tolerance)].sum())
        inner = start + (end - start) * (torch.arange(20, dtype=torch.float64) + 0.5) / 20
        assert atoms + float(law.density(inner).mean() * (end - start)) > 1e-5


def test_density_and_atoms_hold_the_whole_mass(law: AbstractLaw) -> None:
    """By the midpoint rule in the angle, which takes singular ends of the support well."""
    low, high = law.edges()
    positions, masses = law.atoms()
    half, count = (high - low) / 2, 600
    angle = (torch.arange(count, dtype=torch.float64) + 0.5) * (math.pi / count)
    x = (low + high) / 2 + half * angle.cos()
    near = ((x[:, None] - positions).abs() < 1e-4).any(-1)  # the smeared atom itself
    density = torch.where(near, 0.0, law.density(x))
    continuous = float((density * half * angle.sin()).sum() * (math.pi / count))
    assert float(masses.sum()) + continuous == pytest.approx(1, abs=0.01)  # jumps inside: a cell of the grid


def test_atoms_are_the_poles_of_the_transform(law: AbstractLaw) -> None:
    positions, masses = law.atoms()
    height = 1e-7
    x = special_points(law)
    claimed = (((x[:, None] - positions).abs() < 1e-9) * masses).sum(-1)
    found = -height * law.stieltjes(torch.complex(x, torch.full_like(x, height))).imag
    # a density that diverges as the root of the distance leaves sqrt(height) = 3e-4
    torch.testing.assert_close(found, claimed, atol=2e-3, rtol=1e-3)


@pytest.mark.sampled(9)
def test_r_transform_inverts_the_stieltjes_transform(law: AbstractLaw) -> None:
    low, high = law.edges()
    reach, step = 1 + high - low, 1e-5
    z = real([high + reach, low - reach])
    m = law.stieltjes(torch.complex(z, torch.zeros_like(z))).real
    at, above, below = law.r_transform(torch.stack([m, m + step, m - step]))
    torch.testing.assert_close(at + 1 / m, z, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(law.r_prime(m), (above - below) / (2 * step), atol=1e-5, rtol=1e-5)


def test_s_transform_inverts_the_moment_function_on_every_branch(law: AbstractLaw) -> None:
    low, high = law.edges()
    if low < 0:
        with pytest.raises(OutsideTheory, match="needs a law on the positive half-line"):
            law.s_transform(real([0.1]))
        return
    points = [high + 1.0, -0.7] + ([0.5 * low] if low > 0 else [])
    z = real(points)
    y = law.moment_transform(torch.complex(z, torch.zeros_like(z)))[0].real
    torch.testing.assert_close((1 + y) / (y * law.s_transform(y)), z, atol=1e-7, rtol=1e-7)


def test_self_energy_is_what_it_says_and_tends_to_the_mean(law: AbstractLaw) -> None:
    local = law.local(POINTS)
    torch.testing.assert_close(local.g, law.stieltjes(POINTS))
    torch.testing.assert_close(local.energy, POINTS - 1 / law.stieltjes(POINTS))
    step = 1e-5
    slope = (law.local(POINTS + step).energy - law.local(POINTS - step).energy) / (2 * step)
    torch.testing.assert_close(local.energy_slope, slope, atol=2e-7, rtol=2e-7)
    mean = float(law.moments(1)[0])
    for distance in (1e5, 1e14):
        far = law.local(torch.tensor([1j * distance], dtype=torch.complex128))
        assert complex(far.energy[0]) == pytest.approx(mean, abs=10 / distance**0.5)
        assert complex(far.g[0]) * 1j * distance == pytest.approx(1, abs=1e-4)


@pytest.mark.sampled(6)
def test_results_do_not_depend_on_the_rest_of_the_batch(law: AbstractLaw) -> None:
    low, high = law.edges()
    x = torch.cat([special_points(law), torch.linspace(low, high, 9, dtype=torch.float64)])
    together = law.density(x)
    alone = torch.cat([law.density(x[i : i + 1]) for i in range(len(x))])
    assert not bool(together.isnan().any())
    torch.testing.assert_close(
        together, alone, atol=1e-11, rtol=1e-6
    )  # at an edge rounding is amplified by 1/sqrt(eta)
    assert law.density(x.reshape(1, -1)).shape == (1, len(x))


def test_claimed_symmetry_is_true(law: AbstractLaw) -> None:
    mirrored = -law.stieltjes(-POINTS)
    same = bool(torch.isclose(mirrored, law.stieltjes(POINTS), atol=1e-9).all())
    assert same or not law.symmetric
    torch.testing.assert_close(Reflected(law).stieltjes(POINTS), mirrored)
    assert Reflected(law).atoms()[0].tolist() == [-a for a in law.atoms()[0].tolist()]
