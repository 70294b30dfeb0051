from __future__ import annotations

import itertools

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.diagnose import linear_cka


def test_rotation_and_scale_do_not_matter(generator: torch.Generator) -> None:
    x = torch.randn(30, 5, generator=generator, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))
    for unbiased in (False, True):
        assert float(linear_cka(x, 3 * x @ rotation + 2, unbiased=unbiased)) == pytest.approx(1)


def test_centred_cka_is_the_textbook_ratio_of_covariances(generator: torch.Generator) -> None:
    x, y = torch.randn(2, 12, 4, generator=generator, dtype=torch.float64)
    x0, y0 = x - x.mean(0), y - y.mean(0)
    ratio = (x0.mT @ y0).square().sum() / ((x0.mT @ x0).norm() * (y0.mT @ y0).norm())
    assert float(linear_cka(x, y)) == pytest.approx(float(ratio))


def test_the_unbiased_estimator_averages_over_distinct_samples(generator: torch.Generator) -> None:
    x, y = torch.randn(2, 6, 3, generator=generator, dtype=torch.float64)
    k, other = x @ x.mT, y @ y.mT

    def inner(a: torch.Tensor, b: torch.Tensor) -> float:
        total = 0.0
        for i, j, q, r in itertools.permutations(range(6), 4):
            total += float(a[i, j] * (b[i, j] + b[q, r] - 2 * b[i, q]))
        return total

    by_hand = inner(k, other) / (inner(k, k) * inner(other, other)) ** 0.5
    assert float(linear_cka(x, y, unbiased=True)) == pytest.approx(by_hand)


def test_independent_features_look_similar_only_to_the_biased_estimator(generator: torch.Generator) -> None:
    x, y = torch.randn(2, 64, 50, 60, generator=generator, dtype=torch.float64)
    assert float(linear_cka(x, y).mean()) > 0.4
    unbiased = linear_cka(x, y, unbiased=True)
    assert abs(float(unbiased.mean())) < 5 * float(unbiased.std()) / 8


def test_a_representation_that_does_not_vary_has_no_similarity() -> None:
    assert linear_cka(torch.ones(5, 2), torch.randn(5, 2)).isnan()


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="same samples on both sides"):
        linear_cka(torch.zeros(5, 2), torch.zeros(4, 2))
    with pytest.raises(InvalidInput, match="at least 4"):
        linear_cka(torch.zeros(3, 2), torch.zeros(3, 2), unbiased=True)
