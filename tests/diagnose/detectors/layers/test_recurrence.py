from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import separatrix


class Last(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def test_the_exponent_of_a_scaled_orthogonal_linear_layer_is_its_logarithm() -> None:
    rnn = nn.RNN(3, 6, nonlinearity="relu", batch_first=True)
    rnn.weight_hh_l0.data.copy_(0.8 * torch.eye(6))
    rnn.weight_ih_l0.data.abs_()
    rnn.bias_ih_l0.data.fill_(1.0)
    rnn.bias_hh_l0.data.zero_()
    found = separatrix.check(Last(rnn), torch.rand(4, 40, 3)).find("exponents")
    assert found is not None
    assert found.value == pytest.approx(math.log(0.8), abs=1e-6)
    assert "settles" in found.meaning
