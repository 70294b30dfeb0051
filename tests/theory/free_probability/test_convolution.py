from __future__ import annotations

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.theory.free_probability import (
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


def test_results_do_not_depend_on_the_rest_of_the_batch() -> None:
    law = free_sum(UniformLaw(0.0, 1.0), TwoPoint(1.0))
    x = grid(-0.8, 1.8, 7)
    torch.testing.assert_close(law.density(x)[3], law.density(x[3:4])[0], atol=1e-12, rtol=0)
