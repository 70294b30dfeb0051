from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.training import paired_difference, spread


def test_the_interval_covers_the_truth_as_often_as_it_says(generator: torch.Generator) -> None:
    samples = torch.randn(400, 5, generator=generator, dtype=torch.float64) + 3
    covered = sum(found.low <= 3 <= found.high for found in map(spread, samples.tolist()))
    assert 362 <= covered <= 398  # 380 expected, 4 standard errors of 4.4 around it


def test_pairing_removes_what_seeds_share() -> None:
    first, second = [10.0, 20.0, 30.0], [9.9, 19.8, 29.9]
    gap = paired_difference(first, second)
    assert gap.mean == pytest.approx(0.4 / 3)
    assert gap.half_width < 0.2 < spread(first).half_width


def test_one_seed_has_no_interval() -> None:
    single = spread([2.0])
    assert (single.mean, single.n) == (2.0, 1)
    assert math.isinf(single.half_width)
    assert math.isnan(single.std)


def test_values_that_are_not_finite_or_do_not_pair_are_refused() -> None:
    with pytest.raises(InvalidInput, match="finite numbers, at least one"):
        spread([1.0, float("nan")])
    with pytest.raises(InvalidInput, match="got 1 and 2 values"):
        paired_difference([1.0], [1.0, 2.0])
