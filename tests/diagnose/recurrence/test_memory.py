from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.diagnose import recurrent


def small(scale: float) -> nn.RNN:
    rnn = nn.RNN(2, 6, batch_first=True)
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(scale * torch.eye(6))
    return rnn


def test_a_normal_linearisation_has_memory_one_and_a_delay_line_more() -> None:
    memory = recurrent(small(0.5), torch.zeros(1, 30, 2)).layers[0].memory
    assert memory is not None
    assert memory.totals is not None
    assert memory.spatial_eigenvalues is not None
    assert float(memory.spatial_eigenvalues.sum()) == pytest.approx(6)
    line = small(0.0)
    with torch.no_grad():
        line.weight_hh_l0.copy_(torch.diag(torch.full((5,), 1.5), -1))
        for bias in (line.bias_ih_l0, line.bias_hh_l0):
            bias.zero_()
    longer = recurrent(line, torch.zeros(1, 30, 2)).layers[0].memory
    assert longer is not None
    assert longer.spatial_eigenvalues is not None
    assert float(longer.spatial_eigenvalues[0]) > 2


def test_no_memory_is_explained_with_a_scale_that_would_have_one() -> None:
    rnn = small(1.5)
    with torch.no_grad():
        rnn.bias_ih_l0.zero_()
        rnn.bias_hh_l0.zero_()
    memory = recurrent(rnn, torch.zeros(1, 30, 2)).layers[0].memory
    assert memory is not None
    assert memory.curve is None
    assert "spectral radius at the mean state is 1.5" in memory.reason
    assert "linearisation * 0.66" in memory.reason
