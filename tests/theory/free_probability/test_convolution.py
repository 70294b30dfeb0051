from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.theory.free_probability import (
    AbstractLaw,
    Arcsine,
    Bernoulli,
    Discrete,
    FreeProduct,
    FreeSum,
    MarchenkoPastur,
    Semicircle,
    TwoPoint,
    UniformLaw,
    free_product,
    free_sum,
)


def grid(low: float, high: float, count: int = 400) -> torch.Tensor:
    return torch.linspace(low, high, count, dtype=torch.float64)


def test_sum_of_semicircles_is_a_semicircle() -> None:
    x = grid(-3.9, 3.9)
    torch.testing.assert_close(
        free_sum(Semicircle(1.0), Semicircle(3.0)).density(x), Semicircle(4.0).density(x), atol=1e-9, rtol=0
    )


def test_sum_of_two_reflections_is_arcsine() -> None:
    x = grid(-1.9, 1.9)
    total = free_sum(TwoPoint(1.0), TwoPoint(1.0))
    torch.testing.assert_close(total.density(x), Arcsine(2.0).density(x), atol=1e-9, rtol=0)
    assert total.edges() == pytest.approx((-2, 2))


@pytest.mark.parametrize(("ratio", "p"), [(0.5, 0.4), (1.0, 0.7), (2.0, 0.3)])
def test_marchenko_pastur_times_a_projection_is_a_smaller_wishart_matrix(ratio: float, p: float) -> None:
    """Keeping a fraction p of the rows of X leaves a Marchenko-Pastur law of ratio p c, and zeros."""
    kept = MarchenkoPastur(ratio * p)
    low, high = kept.edges()
    x = grid(low + 0.02, high - 0.02)
    product = free_product(Bernoulli(p), MarchenkoPastur(ratio))
    torch.testing.assert_close(product.density(x), p * kept.density(x), atol=1e-6, rtol=0)
    assert product.edges()[1] == pytest.approx(high, rel=1e-9)


def test_product_of_two_wishart_matrices_has_the_fuss_catalan_law() -> None:
    product = free_product(MarchenkoPastur(1.0), MarchenkoPastur(1.0))
    assert product.edges()[1] == pytest.approx(27 / 4, rel=1e-9)
    assert product.moments(3).tolist() == pytest.approx([1, 3, 12], rel=1e-6)


def test_projected_semicircle_has_its_closed_form() -> None:
    """Bernoulli times semicircle: an atom and a semicircle (the corrected Eq. 124 of agarwala2022)."""
    z = torch.tensor([1.2 + 0.3j, -0.1 + 0.02j], dtype=torch.complex128)
    p, radius = 0.6, 2 * 0.6**0.5
    expected = (1 - p) / z + (z - torch.sqrt(z - radius) * torch.sqrt(z + radius)) / 2
    torch.testing.assert_close(free_product(Bernoulli(p), Semicircle(1.0)).stieltjes(z), expected)


@checks(free_sum, free_product, FreeSum.stieltjes, FreeProduct.stieltjes, by="sampled matrices")
def test_sum_and_product_agree_with_sampled_matrices(generator: torch.Generator) -> None:
    width = 500
    rotation, _ = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))
    first = (torch.arange(width, dtype=torch.float64) + 0.5) / width
    second = rotation @ torch.diag(2 * (torch.arange(width) % 2).double() - 1) @ rotation.mT
    spectra = {
        "sum": (torch.linalg.eigvalsh(torch.diag(first) + second), free_sum(UniformLaw(0.0, 1.0), TwoPoint(1.0))),
        "product": (
            torch.linalg.eigvalsh(first.sqrt()[:, None] * second * first.sqrt()),
            free_product(UniformLaw(0.0, 1.0), TwoPoint(1.0)),
        ),
    }
    z = torch.tensor([0.3 + 0.2j, -0.8 + 0.2j, 1.5 + 0.2j], dtype=torch.complex128)
    for values, law in spectra.values():
        # linear statistics fluctuate by about 1 / (width * height) = 0.01
        torch.testing.assert_close(Discrete(values).stieltjes(z), law.stieltjes(z), atol=0.02, rtol=0)
        assert law.edges() == pytest.approx((float(values.min()), float(values.max())), abs=0.03)


def test_order_of_a_positive_product_does_not_matter() -> None:
    z = torch.tensor([0.4 + 0.1j, 2.0 + 0.5j], dtype=torch.complex128)
    one = free_product(UniformLaw(0.2, 1.0), MarchenkoPastur(0.5)).stieltjes(z)
    other = free_product(MarchenkoPastur(0.5), UniformLaw(0.2, 1.0)).stieltjes(z)
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


def test_s_transforms_multiply() -> None:
    y = torch.tensor([-0.2, 0.3], dtype=torch.float64)
    product = free_product(UniformLaw(0.2, 1.0), MarchenkoPastur(0.5))
    expected = UniformLaw(0.2, 1.0).s_transform(y) * MarchenkoPastur(0.5).s_transform(y)
    z = (1 + y) / (y * expected)
    moment = z * product.stieltjes(torch.complex(z, torch.zeros_like(z))).real - 1
    torch.testing.assert_close(moment, y, atol=1e-9, rtol=0)


def test_first_factor_must_be_positive() -> None:
    with pytest.raises(InvalidInput, match="positive must be a law on the positive half-line"):
        free_product(Semicircle(1.0), Bernoulli(0.5))


def test_product_of_positive_laws_begins_where_sampled_matrices_do(generator: torch.Generator) -> None:
    width = 400
    noise = torch.randn(width, 4 * width, generator=generator, dtype=torch.float64)
    root = (1 + (torch.arange(width, dtype=torch.float64) + 0.5) / width).sqrt()
    values = torch.linalg.eigvalsh(root[:, None] * (noise @ noise.mT / (4 * width)) * root)
    edges = free_product(MarchenkoPastur(0.25), UniformLaw(1.0, 2.0)).edges()
    assert edges == pytest.approx((float(values.min()), float(values.max())), rel=0.04)  # edges shift by N^(-2/3)
    assert free_product(UniformLaw(1.0, 2.0), MarchenkoPastur(0.25)).edges() == pytest.approx(edges, rel=1e-9)
    assert free_product(Discrete([2.0]), UniformLaw(1.0, 3.0)).edges() == pytest.approx((2.0, 6.0), rel=1e-9)


def test_product_with_a_negative_law_is_the_mirrored_one() -> None:
    mirrored = free_product(MarchenkoPastur(0.25), UniformLaw(-2.0, -1.0)).edges()
    low, high = free_product(MarchenkoPastur(0.25), UniformLaw(1.0, 2.0)).edges()
    assert mirrored == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("law", "atoms"),
    [
        (free_product(Bernoulli(0.6), Semicircle(1.0)), {0.0: 0.4}),
        (free_product(Bernoulli(0.6), Bernoulli(0.7)), {0.0: 0.4, 1.0: 0.3}),
        (free_product(MarchenkoPastur(2.0), Bernoulli(0.4)), {0.0: 0.6}),
        (
            free_product(Discrete([2.0, 2.0, 1.0]), Discrete([3.0, 0.0], [0.9, 0.1])),
            {0.0: 0.1, 3.0: 1 / 3 - 0.1, 6.0: 2 / 3 - 0.1},
        ),
        (free_sum(Bernoulli(0.2), Bernoulli(0.3)), {0.0: 0.5, 1.0: 0.1}),
        (free_sum(Discrete([1.0]), TwoPoint(1.0)), {0.0: 0.5, 2.0: 0.5}),
        (free_sum(Semicircle(1.0), TwoPoint(1.0)), {}),
    ],
)
def test_atoms_are_where_eigenspaces_must_meet(law: AbstractLaw, atoms: dict[float, float]) -> None:
    positions, masses = law.atoms()
    assert dict(zip(positions.tolist(), masses.tolist(), strict=True)) == pytest.approx(atoms)


def test_a_zero_of_the_transform_is_no_obstacle() -> None:
    """At the centre of a symmetric gap G vanishes and one point of the subordination lies at infinity."""
    law = free_sum(UniformLaw(0.0, 1.0), TwoPoint(1.0))
    x = grid(-0.8, 1.8, 7)
    assert float(x[3]) == pytest.approx(0.5)
    torch.testing.assert_close(law.density(x)[3], law.density(x[3:4])[0], atol=1e-12, rtol=0)
    at = torch.tensor([0.5 + 1e-12j, 0.5 + 1e-6j, 0.5 + 0.0j, 0.5 + 0.1j], dtype=torch.complex128)
    for order in (law, free_sum(TwoPoint(1.0), UniformLaw(0.0, 1.0))):
        values = order.stieltjes(at)
        torch.testing.assert_close(values.real, torch.zeros(4, dtype=torch.float64), atol=1e-9, rtol=0)
        assert bool((values.imag < 0).all())
        assert bool(torch.isfinite(order.stieltjes_prime(at).abs()).all())


def random_law(source: random.Random, *, positive: bool) -> AbstractLaw:
    """A law with atoms on a coarse lattice (so that sums coincide and centres are symmetric), or a known one."""
    low = 0 if positive else -3
    values = [float(source.randint(low, 3)) for _ in range(source.randint(1, 4))]
    kinds: list[Callable[[], AbstractLaw]] = [
        lambda: Discrete([*values, values[0] + 1]),
        lambda: Bernoulli(source.choice([0.2, 0.5, 0.75])),
        lambda: MarchenkoPastur(source.choice([0.3, 1.0, 2.5])),
        lambda: UniformLaw(float(source.randint(low, 1)), float(source.randint(2, 3))),
    ]
    centred: list[Callable[[], AbstractLaw]] = [
        lambda: TwoPoint(1.0),
        lambda: Semicircle(source.choice([0.1, 1.0])),
        lambda: Arcsine(1.0),
        lambda: UniformLaw(-1.0, 1.0),
    ]
    return source.choice(kinds if positive else kinds + centred)()


@pytest.mark.slow
@settings(max_examples=16)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["sum", "product"]))
def test_any_pair_of_laws_gives_a_law_at_every_point(seed: int, kind: str) -> None:
    source = random.Random(seed)
    first, second = random_law(source, positive=kind == "product"), random_law(source, positive=False)
    law = free_sum(first, second) if kind == "sum" else free_product(first, second)
    low, high = law.edges()
    ends = [(*one.edges(), *one.atoms()[0].tolist()) for one in (first, second)]
    meeting = [a + b if kind == "sum" else a * b for a in ends[0] for b in ends[1]]
    x = torch.tensor([*meeting, low, high, (low + high) / 2, 0.0, 0.5, 1.0, low - 1, high + 1], dtype=torch.float64)
    density = law.density(x)
    atoms = law.atoms()[0]
    at_atom = (x[:, None] - atoms).abs().lt(1e-9).any(-1) if len(atoms) else torch.zeros_like(x, dtype=torch.bool)
    assert bool((torch.isfinite(density) | at_atom).all())
    assert bool((density >= -1e-9).all())
    assert float(density[-2:].max()) < 1e-6
    a, b = first.moments(2).tolist(), second.moments(2).tolist()
    mean = a[0] + b[0] if kind == "sum" else a[0] * b[0]
    square = a[1] + b[1] + 2 * a[0] * b[0]
    if kind == "product":
        square = a[1] * b[0] ** 2 + a[0] ** 2 * b[1] - (a[0] * b[0]) ** 2
    assert law.moments(2).tolist() == pytest.approx([mean, square], rel=1e-6, abs=1e-6)
