from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

import separatrix
from separatrix.core import InvalidInput
from separatrix.diagnose import fixed_points, input_branch, recurrent


@pytest.fixture(autouse=True)
def fixed_weights() -> Iterator[None]:
    """Constructors of torch layers draw from the global generator; give each test the same draws, and put it back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        yield


def test_fixed_points_are_drawn_in_the_plane_of_the_visited_states() -> None:
    rnn = nn.RNN(2, 5)
    with torch.no_grad():
        rnn.weight_hh_l0.mul_(0.3).add_(1.5 * torch.eye(5))
    ax = separatrix.plot(fixed_points(rnn, torch.zeros(2)))
    assert ax.get_xlabel().startswith("first component")
    legend = ax.get_legend()
    assert legend is not None
    assert {"visited", "stable", "unstable"} <= {text.get_text() for text in legend.get_texts()}
    with pytest.raises(InvalidInput, match="at least two numbers"):
        separatrix.plot(fixed_points(nn.RNN(2, 1), torch.zeros(2)))


def test_parts_of_a_report_are_drawn() -> None:
    found = recurrent(nn.GRU(2, 4), torch.zeros(30, 1, 2)).layers[0]
    labels = [
        separatrix.plot(part).get_xlabel()
        for part in (found.blocks[0], found.blocks[0].schur, found.spectrum, found.gradients)
    ]
    assert labels == ["real part", "from mode", "number", "steps"]
    (linear,) = recurrent({"A_log": torch.zeros(2), "dt_bias": torch.zeros(2)}).linear
    assert separatrix.plot(linear).has_data()


def test_a_branch_is_drawn_with_its_events() -> None:
    gru = nn.GRU(2, 4)
    branch = input_branch(gru, torch.eye(2), fixed_points(gru, torch.eye(2)[0]).states[:1], n_points=5)
    assert separatrix.plot(branch).get_ylabel() == "largest |eigenvalue|"


@pytest.mark.slow
def test_a_whole_report_is_drawn_with_and_without_a_run() -> None:
    lstm = nn.LSTM(2, 4, num_layers=2)
    ran = separatrix.plot(recurrent(lstm, torch.zeros(30, 1, 2)))
    assert ran.get_ylabel() == "Lyapunov exponent per step"
    legend = ran.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 2
    still = recurrent(lstm)
    assert "no sign of (in)stability" in separatrix.plot(still).get_title()
    assert separatrix.plot(still.layers[0]).get_xlabel() == "real part"
