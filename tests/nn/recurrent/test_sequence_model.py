from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from separatrix import nn as layers
from separatrix.core import InvalidInput, spawn
from separatrix.nn import SequenceModel, SpectrumWarning, parameter_count

COUNTS = {  # kerg2022, appendix A: one-hot copy (10, 9), permuted MNIST (1, 10), Penn Treebank (embedding of 200, 50)
    ("nnrnn-printed", 10, 128, 9): 18953,
    ("nnrnn", 10, 128, 9): 18889,
    ("exprnn", 10, 128, 9): 10697,
    ("exprnn", 10, 176, 9): 18929,
    ("lstm", 10, 63, 9): 19224,
    ("lstm", 10, 128, 9): 72329,
    ("rnn", 10, 128, 9): 19081,
    ("nnrnn-printed", 1, 512, 10): 268298,
    ("exprnn", 1, 512, 10): 136970,
    ("exprnn", 1, 722, 10): 268955,
    ("lstm", 1, 257, 10): 268832,
    ("lstm", 1, 512, 10): 1057802,
    ("nnrnn-printed", 200, 1024, 50): 1315650 - 50 * 200,
    ("exprnn", 200, 1024, 50): 790850 - 50 * 200,
    ("exprnn", 200, 1386, 50): 1317741 - 50 * 200,
    ("lstm", 200, 475, 50): 1318200 - 50 * 200,
    ("lstm", 200, 1024, 50): 5078850 - 50 * 200,
}


@pytest.mark.parametrize(("case", "count"), COUNTS.items(), ids=lambda value: str(value))
def test_counts_are_those_of_the_document(case: tuple[str, int, int, int], count: int) -> None:
    assert parameter_count(*case) == count


def made(kind: str, n_in: int, n: int) -> nn.Module:
    makers: dict[str, Any] = {
        "nnrnn": lambda: layers.NonNormalRNN(n_in, n),
        "nnrnn-printed": lambda: layers.NonNormalRNN(n_in, n, "printed"),
        "nnrnn-complete": lambda: layers.NonNormalRNN(n_in, n, "complete"),
        "exprnn": lambda: layers.ExpRNN(n_in, n),
        "lstm": lambda: nn.LSTM(n_in, n, batch_first=True),
        "rnn": lambda: nn.RNN(n_in, n, batch_first=True),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpectrumWarning)
        core: nn.Module = makers[kind]()
    return core


@pytest.mark.parametrize("kind", ["nnrnn", "nnrnn-printed", "nnrnn-complete", "exprnn", "lstm", "rnn"])
def test_counts_are_those_of_the_modules(kind: str) -> None:
    model = SequenceModel(made(kind, 7, 12), 5)
    second_biases = 4 * 12 if kind == "lstm" else 0
    assert sum(p.numel() for p in model.parameters()) - second_biases == parameter_count(kind, 7, 12, 5)


@pytest.mark.parametrize("kind", ["nnrnn", "exprnn", "lstm", "rnn"])
def test_the_last_answer_is_that_of_the_last_step(kind: str) -> None:
    core = made(kind, 3, 6)
    x = torch.randn(4, 5, 3, generator=spawn(0, "x"))
    steps, last = SequenceModel(core, 2), SequenceModel(core, 2, "last")
    assert steps(x).shape == (4, 5, 2)
    assert torch.allclose(steps(x)[:, -1], last(x), atol=1e-6)
    first, state = steps.carry(x[:, :2], None)
    second, _ = steps.carry(x[:, 2:], state)
    assert torch.allclose(torch.cat([first, second], 1), steps(x), atol=1e-6)


def test_the_last_answer_of_a_short_sequence_is_at_its_end() -> None:
    model = SequenceModel(layers.ExpRNN(3, 6), 2, "last")
    x, lengths = torch.randn(3, 5, 3, generator=spawn(0, "x")), torch.tensor([2, 5, 3])
    answers = model(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        assert torch.allclose(answers[row], model(x[row : row + 1, :length])[0], atol=1e-6)
    with pytest.raises(InvalidInput, match="lengths are for cores of this package"):
        SequenceModel(nn.LSTM(3, 6, batch_first=True), 2)(x, lengths)


def test_a_core_of_another_order_is_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_first=True"):
        SequenceModel(nn.LSTM(3, 6), 2)
