from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from recurrent_cases import louder
from separatrix.diagnose import product_exponents, recurrent
from separatrix.matrices import Haar


def test_a_multiple_of_a_rotation_has_one_exponent(generator: torch.Generator) -> None:
    matrix = 0.9 * Haar().unit(6, generator=generator)

    def step(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return h @ matrix.mT + x

    found = recurrent(step, torch.zeros(1, 40, 6), states=torch.zeros(1, 6, dtype=torch.float64)).layers[0]
    assert found.spectrum is not None
    assert found.spectrum.exponents.tolist() == pytest.approx([math.log(0.9)] * 6, abs=1e-12)
    assert found.spectrum.dimension is None
    assert found.gradients is not None
    assert found.gradients.steps_to_e == pytest.approx(-1 / math.log(0.9), rel=1e-9)
    assert found.linear is not None
    assert found.linear.time_constants.tolist() == pytest.approx([-1 / math.log(0.9)] * 6, rel=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [nn.RNN, nn.GRU, nn.LSTM])
def test_exponents_sum_to_the_mean_log_determinant(make: type[nn.RNN], generator: torch.Generator) -> None:
    found = recurrent(make(3, 6, batch_first=True), torch.randn(2, 80, 3, generator=generator)).layers[0].spectrum
    assert found is not None
    assert found.sum_error is not None
    assert found.sum_error < 1e-8
    assert bool((found.standard_errors > 0).all())
    assert found.n_steps == 120


def test_chaos_is_called_so_with_a_dimension(generator: torch.Generator) -> None:
    rnn = louder(nn.RNN(1, 24, bias=False, batch_first=True), 6.0)
    found = recurrent(rnn, torch.zeros(1, 300, 1) + 0.1 * torch.randn(1, 300, 1, generator=generator)).layers[0]
    assert found.spectrum is not None
    assert float(found.spectrum.exponents[0]) > 0.05
    assert found.spectrum.dimension is not None
    assert 1 < found.spectrum.dimension < 24
    assert any(sentence.startswith("Chaotic") for sentence in found.verdicts)


def test_directions_behind_units_that_are_off_are_counted(generator: torch.Generator) -> None:
    rnn = nn.RNN(2, 5, nonlinearity="relu", batch_first=True)
    with torch.no_grad():
        rnn.bias_ih_l0[:2] = -100.0  # two units that never switch on
        rnn.bias_ih_l0[2:] = 5.0
    found = recurrent(rnn, torch.randn(1, 60, 2, generator=generator)).layers[0].spectrum
    assert found is not None
    assert found.n_extinguished == 2
    assert bool(torch.isneginf(found.exponents[-2:]).all())
    assert bool(torch.isfinite(found.exponents[:3]).all())
    assert found.sum_error is None


def test_products_of_diagonal_matrices_have_the_means_of_their_logarithms(generator: torch.Generator) -> None:
    factors = 0.2 + torch.rand(50, 4, generator=generator, dtype=torch.float64)
    expected = factors.log().mean(0).sort(descending=True).values
    torch.testing.assert_close(product_exponents(torch.diag_embed(factors)), expected, rtol=0, atol=0.1)
    total = product_exponents(torch.diag_embed(factors)).sum()
    assert float(total) == pytest.approx(float(expected.sum()), abs=1e-12)
