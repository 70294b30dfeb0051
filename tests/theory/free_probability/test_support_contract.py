"""Where free sums and products begin and end, and the atoms they keep: every pair of laws, by three routes.

Laws that hold for any pair (a point mass shifts or scales), the counting of meeting eigenspaces, sampled matrices.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from separatrix.theory.free_probability import (
    AbstractLaw,
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

WIDTH = 160
FRACTION = (torch.arange(WIDTH, dtype=torch.float64) + 0.5) / WIDTH

POINTS: dict[float, list[AbstractLaw]] = {
    3.0: [
        Discrete([3.0]),
        Discrete([3.0, 0.0], [1.0, 0.0]),
        Discrete([3.0, 3.0]),
        free_sum(Discrete([1.0]), Discrete([2.0])),
    ],
    1.0: [Bernoulli(1.0), Discrete([1.0])],
    0.25: [Discrete([0.25]), free_product(Discrete([0.5]), Discrete([0.5]))],
}
"""The same point masses, written in several ways."""


def haar(generator: torch.Generator) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=generator, dtype=torch.float64))[0]


def wishart(ratio: float) -> Callable[[torch.Generator], torch.Tensor]:
    def values(generator: torch.Generator) -> torch.Tensor:
        columns = round(WIDTH / ratio)
        noise = torch.randn(WIDTH, columns, generator=generator, dtype=torch.float64)
        return torch.linalg.eigvalsh(noise @ noise.mT / columns).clamp_min(0.0)

    return values


def goe(generator: torch.Generator) -> torch.Tensor:
    noise = torch.randn(WIDTH, WIDTH, generator=generator, dtype=torch.float64)
    return torch.linalg.eigvalsh((noise + noise.mT) / (2 * WIDTH) ** 0.5)


SPECTRA: dict[str, tuple[AbstractLaw, Callable[[torch.Generator], torch.Tensor]]] = {
    "semicircle": (Semicircle(1.0), goe),
    "wishart": (MarchenkoPastur(0.3), wishart(0.3)),
    "wishart with zeros": (MarchenkoPastur(2.0), wishart(2.0)),
    "projection": (Bernoulli(0.6), lambda _: (FRACTION > 0.4).double()),
    "identity": (Bernoulli(1.0), lambda _: torch.ones_like(FRACTION)),
    "interval": (UniformLaw(1.0, 2.0), lambda _: 1 + FRACTION),
    "centred interval": (UniformLaw(-1.0, 1.0), lambda _: 2 * FRACTION - 1),
    "two points": (TwoPoint(1.0), lambda _: torch.where(FRACTION < 0.5, -1.0, 1.0).double()),
    "three points": (
        Discrete([-1.0, 0.0, 2.0], [0.2, 0.1, 0.7]),
        lambda _: torch.where(FRACTION < 0.2, -1.0, torch.where(FRACTION < 0.3, 0.0, 2.0)).double(),
    ),
    "mirrored": (Reflected(MarchenkoPastur(0.3)), lambda generator: -wishart(0.3)(generator)),
    "atom and density": (
        AtomsAndDensity(lambda t: torch.full_like(t, 0.25), 1.0, 2.0, [0.5, 9.0], [0.75, 0.0], panels=8),
        lambda _: torch.where(FRACTION < 0.75, 0.5, 4 * FRACTION - 2.0).double(),
    ),
}
"""Laws with the eigenvalues of a matrix that has them."""
PAIRS = list(itertools.combinations_with_replacement(SPECTRA, 2))


@pytest.mark.parametrize("name", SPECTRA)
def test_adding_a_point_mass_shifts(name: str) -> None:
    law = SPECTRA[name][0]
    for place, points in POINTS.items():
        low, high = (edge + place for edge in law.edges())
        for point in points:
            assert free_sum(point, law).edges() == pytest.approx((low, high), abs=1e-9)
            assert free_sum(law, point).edges() == pytest.approx((low, high), abs=1e-9)
            assert atoms(free_sum(law, point)) == pytest.approx({a + place: m for a, m in atoms(law).items()})


@pytest.mark.parametrize("name", SPECTRA)
def test_multiplying_by_a_point_mass_scales(name: str) -> None:
    law = SPECTRA[name][0]
    for place, points in POINTS.items():
        edges = pytest.approx(tuple(edge * place for edge in law.edges()), abs=1e-9)
        masses = pytest.approx({a * place: m for a, m in atoms(law).items()})
        for point in points:
            assert free_product(point, law).edges() == edges
            assert atoms(free_product(point, law)) == masses
            if law.edges()[0] >= 0:
                assert free_product(law, point).edges() == edges


@pytest.mark.parametrize("name", SPECTRA)
def test_the_point_mass_at_zero_adds_nothing_and_leaves_nothing(name: str) -> None:
    law, nothing = SPECTRA[name][0], Discrete([0.0])
    assert free_sum(law, nothing).edges() == pytest.approx(law.edges(), abs=1e-9)
    assert free_product(nothing, law).edges() == (0.0, 0.0)
    assert atoms(free_product(nothing, law)) == {0.0: 1.0}


@pytest.mark.parametrize("pairs", [PAIRS[::4], pytest.param(PAIRS, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("kind", ["sum", "product"])
def test_support_and_atoms_are_those_of_sampled_matrices(
    kind: str, pairs: list[tuple[str, str]], generator: torch.Generator
) -> None:
    for one, other in pairs:
        (first, first_values), (second, second_values) = SPECTRA[one], SPECTRA[other]
        if kind == "product" and first.edges()[0] < 0:
            first, first_values, second, second_values = second, second_values, first, first_values
        if kind == "product" and first.edges()[0] < 0:
            continue
        law = free_sum(first, second) if kind == "sum" else free_product(first, second)
        values = sampled(kind, first_values(generator), second_values(generator), haar(generator))
        low, high = law.edges()
        near = 0.15 * (high - low) + 1e-9  # an edge is smeared over a few N^(-2/3) = .034
        ends = (float(values.min()), float(values.max()))
        assert ends == pytest.approx((low, high), abs=near), f"{kind} of {one} and {other}"
        assert repeated(values) == counted(law), f"{kind} of {one} and {other}"


def sampled(kind: str, first: torch.Tensor, second: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """Eigenvalues of A + U B U' or of sqrt(A) U B U' sqrt(A)."""
    rotated = rotation * second @ rotation.mT
    whole = torch.diag(first) + rotated if kind == "sum" else first.sqrt()[:, None] * rotated * first.sqrt()
    return torch.linalg.eigvalsh((whole + whole.mT) / 2)


def repeated(values: torch.Tensor) -> dict[float, int]:
    """Eigenvalues that occur several times, and how often."""
    groups = [list(group) for _, group in itertools.groupby(values.tolist(), key=lambda value: round(value, 6) + 0.0)]
    return {round(group[0], 6) + 0.0: len(group) for group in groups if len(group) > 1}


def counted(law: AbstractLaw) -> dict[float, int]:
    """The atoms of a law as counts of eigenvalues."""
    return {round(place, 6) + 0.0: round(mass * WIDTH) for place, mass in sorted(atoms(law).items())}


def atoms(law: AbstractLaw) -> dict[float, float]:
    """Positions with their masses."""
    return {place: mass for place, mass in zip(*(part.tolist() for part in law.atoms()), strict=True) if mass > 0}
