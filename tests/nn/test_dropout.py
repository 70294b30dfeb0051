from __future__ import annotations

import copy

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.nn import VariationalDropout, renew_masks


def test_mask_stays_until_renewed_and_keeps_the_mean(generator: torch.Generator) -> None:
    dropout = VariationalDropout(0.25, generator=generator)
    x = torch.ones(100, 100)
    first = dropout(x)
    assert torch.equal(dropout(x), first)
    assert first.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert float(first.mean()) == pytest.approx(1, abs=5 * (1 / 3) ** 0.5 / 100)  # five standard errors
    renew_masks(torch.nn.Sequential(dropout))
    assert not torch.equal(dropout(x), first)


def test_evaluation_is_the_identity(generator: torch.Generator) -> None:
    x = torch.ones(3, 4)
    assert VariationalDropout(0.5, generator=generator).eval()(x) is x
    assert VariationalDropout(0.0, generator=generator)(x) is x


def test_a_restored_state_continues_the_stream_of_masks(generator: torch.Generator) -> None:
    dropout = VariationalDropout(0.5, generator=generator)
    x = torch.ones(8, 8)
    dropout(x)
    saved = copy.deepcopy(dropout.state_dict())
    dropout.renew()
    following = dropout(x)
    restored = VariationalDropout(0.5, generator=generator)
    restored.load_state_dict(saved)
    assert torch.equal(restored(x), following)


def test_a_change_of_shape_without_renewal_and_a_bad_probability_are_refused(generator: torch.Generator) -> None:
    dropout = VariationalDropout(0.5, generator=generator)
    dropout(torch.ones(2, 3))
    with pytest.raises(InvalidInput, match=r"has shape \(2, 3\); got an input of shape \(4, 3\). Call renew"):
        dropout(torch.ones(4, 3))
    with pytest.raises(InvalidInput, match=r"p must lie in \[0, 1\); got 1"):
        VariationalDropout(1.0, generator=generator)
