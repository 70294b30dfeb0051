"""The windowed transformer: what it sees, and that segments may be cut."""

from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.nn import SequenceModel, WindowedAttention


def test_a_token_sees_its_window_and_the_first_tokens() -> None:
    network = WindowedAttention(3, 8, window=3, n_global=2, n_layers=1, n_heads=2, dtype=torch.float64)
    x = torch.randn(1, 12, 3, generator=seeded(0), dtype=torch.float64, requires_grad=True)
    reached = torch.autograd.grad(network(x)[0][0, 9, 0], x)[0].abs().sum(-1)[0]
    assert reached.nonzero().flatten().tolist() == [0, 1, 7, 8, 9]


@pytest.mark.parametrize("layers", [1, 2])
def test_a_sequence_may_be_cut_and_samples_are_independent(layers: int) -> None:
    network = WindowedAttention(3, 8, window=4, n_global=2, n_layers=layers, n_heads=2, dtype=torch.float64)
    x = torch.randn(3, 14, 3, generator=seeded(0), dtype=torch.float64)
    whole, _ = network(x)
    lengths = torch.tensor([5, 8, 1])
    first, state = network(x[:, :8], lengths=lengths)
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(first[row, :n], whole[row, :n])
        assert not first[row, n:].any()
    rest = torch.stack([torch.roll(x[row], -n, 0) for row, n in enumerate(lengths.tolist())])
    second, _ = network(rest, state, 14 - lengths)
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(second[row, : 14 - n], whole[row, n:])
    alone, kept = network(x[1, :8])
    torch.testing.assert_close(alone, whole[1, :8])
    torch.testing.assert_close(network(x[1, 8:], kept)[0], whole[1, 8:])


def test_it_fits_a_sequence_model_and_names_bad_sizes() -> None:
    assert SequenceModel(WindowedAttention(3, 8), 2)(torch.zeros(2, 5, 3), torch.tensor([3, 5])).shape == (2, 5, 2)
    with pytest.raises(InvalidInput, match="even multiple of n_heads = 4; got 6"):
        WindowedAttention(3, 6)
