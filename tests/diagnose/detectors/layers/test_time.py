"""Memory: the rate, not the radius of a matrix; cuts, not underflow."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from check_recipes.networks import CellLoop
from separatrix.diagnose.detectors.layers.time import fitted_rate, layer_rate
from separatrix.matrices import robust_eigenvalues

_ = (faults, healthy)


def test_a_large_radius_of_a_gate_is_no_accusation() -> None:
    case = RECIPES["lstm_large_recurrence"].case(0)
    blocks = case.model.rnn.weight_hh_l0.detach().double().chunk(4)
    assert max(float(robust_eigenvalues(block).abs().max()) for block in blocks) > 1
    found = scores.examine(case)
    assert found.verdict == "ok"
    assert found.find("memory").severity == "note"  # type: ignore[union-attr]


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.1])
def test_the_rate_of_a_linear_layer_is_its_exponent(decay: float) -> None:
    """A rectifying layer whose units stay on is linear: d h_T / d x_t = decay^(T - 1 - t) W."""
    layer = nn.RNN(3, 5, nonlinearity="relu", batch_first=True)
    layer.weight_hh_l0.data.copy_(decay * torch.eye(5))
    layer.weight_ih_l0.data.abs_()
    layer.bias_ih_l0.data.fill_(1.0)
    layer.bias_hh_l0.data.zero_()
    rate = layer_rate(layer, torch.rand(6, 20, 3) + 0.1, 0)
    assert rate is not None
    assert rate.mean == pytest.approx(math.log(decay), abs=1e-6)
    assert rate.r2 == pytest.approx(1.0, abs=1e-9)


def test_zeros_of_underflow_are_left_out_of_the_fit() -> None:
    lags = torch.arange(39, -1, -1, dtype=torch.float64)
    norms = torch.exp(-20 * lags).repeat(3, 1)
    norms[:, :5] = 0.0
    rate = fitted_rate(norms)
    assert rate is not None
    assert rate.mean == pytest.approx(-20, abs=1e-9)


@pytest.mark.slow
def test_gradients_that_underflow_are_not_cut() -> None:
    """float32 gradients over 120 steps end in exact zeros; none of them lies beside a large value."""
    torch.manual_seed(0)
    model = CellLoop(16, 3)
    model.cell.weight_hh.data.mul_(0.3)
    x = torch.randn(8, 120, 8)
    by_first = torch.autograd.grad(model(x.requires_grad_()).sum(), x)[0][:, 0]
    assert not by_first.any()
    found = separatrix.check(model, x.detach())
    assert found.find("time_cut") is None


def test_a_model_that_sees_only_a_window_is_not_cut() -> None:
    class Window(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv1d(8, 12, 5), nn.Linear(12, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.conv(x.transpose(1, 2)))[:, :, -1])

    assert separatrix.check(Window(), torch.randn(8, 30, 8)).find("time_cut") is None


class Stacked(nn.Module):
    def __init__(self, rnn: nn.LSTM, classes: int = 4) -> None:
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(rnn.hidden_size, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("file", "prefix", "layers", "length", "rate"),
    [
        ("vad_lstm_silero", "", 1, 100, -0.0108),
        pytest.param("speaker_lstm3_resemblyzer", "lstm.", 3, 80, -0.0095, marks=pytest.mark.slow),
    ],
)
def test_trained_networks_are_not_accused(file: str, prefix: str, layers: int, length: int, rate: float) -> None:
    """Their matrices have radii of 3 to 8; gradients live for a hundred steps (rates of another implementation)."""
    arrays = numpy.load(f"{os.environ['SEPARATRIX_DATA']}/weights/{file}.npz")
    names = {f"{name}_l{i}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for i in range(layers)}
    state = {name: torch.from_numpy(arrays[prefix + (name if prefix else name[:-3])]) for name in names}
    rnn = nn.LSTM(state["weight_ih_l0"].shape[1], state["weight_hh_l0"].shape[1], layers, batch_first=True)
    rnn.load_state_dict(state)
    torch.manual_seed(0)
    x = torch.randn(8, length, rnn.input_size).clamp_min(0)
    found = separatrix.check(Stacked(rnn), x)
    assert found.verdict == "ok"
    assert found.measures["recurrent_rate_max"] == pytest.approx(rate, abs=0.01)


@pytest.mark.needs_data
def test_the_rates_of_a_character_model_and_why_one_number_is_not_enough_for_it() -> None:
    """Another implementation gives -0.062 and -0.079 per step for its two layers on real text, 40 characters.

    The second layer agrees. Gradients of the first fall for about twenty steps and then rise again, so that the slope
    of one line depends on where it is laid: with the last five steps or without it lies on either side of that number.
    """
    arrays = numpy.load(f"{os.environ['SEPARATRIX_DATA']}/weights/char_lstm_lm_textgenrnn.npz")
    text = Path(os.environ["SEPARATRIX_DATA"], "text", "tinyshakespeare.txt").read_text().replace("\n", " ")
    place = {chr(point): k for k, point in enumerate(arrays["vocab_codepoints"].tolist()) if point}
    x = torch.tensor([[place[c] for c in text[k : k + 60] if c in place][:40] for k in range(0, 32 * 1500, 1500)])
    cores = []
    for name, width in (("lstm1", 100), ("lstm2", 128)):
        core = nn.LSTM(width, 128, batch_first=True)
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        core.load_state_dict({f"{part}_l0": torch.from_numpy(arrays[f"{name}.{part}"]) for part in parts})
        cores.append(core)
    states = torch.from_numpy(arrays["embedding"])[x]
    rates = []
    for core in cores:
        rates.append(layer_rate(core, states, 0))
        states = core(states)[0].detach()
    first, second = rates
    assert first is not None
    assert second is not None
    assert second.mean == pytest.approx(-0.079, abs=0.01)
    lag = torch.arange(40.0, dtype=torch.float64)

    def slope(kept: torch.Tensor) -> float:
        x, y = lag[kept] - lag[kept].mean(), first.norms[kept]
        return float(x @ (y - y.mean()) / (x @ x))

    assert slope(lag < 20) < -0.2
    assert slope(lag >= 20) > 0.0
    assert slope(lag >= 0) < -0.062 < slope(lag >= 5)
