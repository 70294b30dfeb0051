from __future__ import annotations

import inspect

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.nn import ContextNorm, temporal_context_norm


def test_every_feature_of_every_problem_has_mean_zero_and_unbiased_variance_one() -> None:
    z = torch.randn(4, 7, 5, generator=seeded(0), dtype=torch.float64)
    normal = temporal_context_norm(z)
    assert float(normal.mean(1).abs().max()) < 1e-12
    assert float((normal.var(1, correction=1) - 1).abs().max()) < 1e-6  # eps = 1e-8


def test_two_positions_become_a_sign_unless_they_are_nearly_equal() -> None:
    z = torch.tensor([[[3.0, 1.0, 1.0], [5.0, 1.0, 1.0 + 1e-5]]], dtype=torch.float64)
    normal = temporal_context_norm(z)[0]
    assert normal[:, 0].tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5])
    assert normal[:, 1].tolist() == [0, 0]
    assert abs(float(normal[1, 2])) == pytest.approx(0.05, rel=0.01)


def test_segments_are_normalised_by_themselves_and_stay_in_place() -> None:
    z = torch.randn(3, 6, 4, generator=seeded(1))
    segments = [[4, 1], [0, 2, 5, 3]]
    whole = temporal_context_norm(z, segments=segments)
    for segment in segments:
        assert torch.allclose(whole[:, segment], temporal_context_norm(z[:, segment]))


def test_gain_and_shift_are_applied_after() -> None:
    z = torch.randn(2, 3, 4, generator=seeded(2))
    gain, shift = torch.arange(4.0), torch.ones(4)
    assert torch.allclose(temporal_context_norm(z, gain, shift), temporal_context_norm(z) * gain + shift)


def test_one_position_and_wrong_segments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 2 positions"):
        temporal_context_norm(torch.zeros(2, 1, 3))
    for segments in ([[0, 1]], [[0, 1, 1, 2]], [[0, 1, 3]]):
        with pytest.raises(InvalidInput, match="each of the 3 positions once"):
            temporal_context_norm(torch.zeros(2, 3, 3), segments=segments)
    with pytest.raises(InvalidInput, match="segments are for normalise='tcn'"):
        ContextNorm(3, "l2", [[0, 1]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_knows_epsilon(dtype: torch.dtype) -> None:
    z = torch.tensor([[[1.0, 3.0], [1.0, 5.0], [1.0, 7.0]]], dtype=dtype)
    assert temporal_context_norm(z).tolist() == [[[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]]]
    assert temporal_context_norm(z).dtype is dtype


def test_what_is_no_real_number_is_refused() -> None:
    for wrong in (torch.ones(1, 3, 2, dtype=torch.complex64), torch.ones(1, 3, 2, dtype=torch.int64), [[1.0]]):
        with pytest.raises(InvalidInput, match="z must be a tensor of real floating numbers"):
            inspect.unwrap(temporal_context_norm)(wrong)  # past the checks of types that tests have and users have not
