from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

import separatrix.nn as layers
from recurrent_cases import Reader, StrangerCell, as_function
from separatrix.core import InvalidInput
from separatrix.diagnose import recurrent

RADII = {
    "char_lstm_lm_textgenrnn.npz": {
        "lstm1": (10.9323, 11.8975, 30.8433, 8.6894),
        "lstm2": (11.3621, 12.6320, 11.7051, 10.1109),
    },
    "speaker_lstm3_resemblyzer.npz": {
        "lstm.l0": (7.2660, 7.8217, 2.6761, 6.7280),
        "lstm.l1": (4.3781, 4.0414, 3.0747, 4.6604),
        "lstm.l2": (3.9255, 3.6766, 2.8992, 4.3169),
    },
    "vad_lstm_silero.npz": {"": (5.1355, 5.1464, 5.2925, 5.6553)},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "speaker" in name else ()) for name in RADII]
)
def test_gates_of_trained_lstms_have_the_radii_measured_elsewhere(name: str, data_dir: Path) -> None:
    found = recurrent(data_dir / "weights" / name)
    for layer, radii in RADII[name].items():
        (report,) = [part for part in found.layers if part.name == layer]
        assert [block.gate for block in report.blocks] == ["i", "f", "g", "o"]
        assert [block.spectral_radius for block in report.blocks] == pytest.approx(radii, abs=5e-5)
        assert "Not judged by its recurrent matrices" in report.verdicts[0]


@pytest.mark.slow
def test_a_voice_detector_with_radii_of_five_is_at_the_edge_of_chaos(
    data_dir: Path, generator: torch.Generator
) -> None:
    x = torch.randn(1, 160, 128, generator=generator).relu()
    found = recurrent(data_dir / "weights" / "vad_lstm_silero.npz", x, n_exponents=4, warm_up=40).layers[0]
    blocks = {block.gate: block for block in found.blocks}
    assert [blocks[gate].largest_singular for gate in "ifgo"] == pytest.approx(
        [17.015, 16.771, 14.786, 17.593], abs=5e-4
    )
    assert [blocks[gate].henrici for gate in "ifgo"] == pytest.approx([41.740, 38.649, 33.701, 43.102], abs=5e-4)
    assert [blocks[gate].relative_henrici for gate in "ifgo"] == pytest.approx(
        [0.8045, 0.7923, 0.7780, 0.8032], abs=5e-5
    )
    assert found.spectrum is not None
    assert abs(float(found.spectrum.exponents[0])) < 0.01
    assert any(sentence.startswith("Edge of chaos") for sentence in found.verdicts)


def test_every_layer_and_direction_has_a_report_fed_as_torch_feeds_it() -> None:
    found = recurrent(nn.GRU(3, 4, 2, bidirectional=True), torch.ones(30, 2, 3))
    assert [layer.name for layer in found.layers] == ["l0", "l0 backward", "l1", "l1 backward"]
    assert all(layer.spectrum is not None for layer in found.layers)
    assert [row["gate"] for row in found.rows()] == list("rzn") * 4
    json.loads(found.to_json())


def test_without_inputs_only_matrices_are_measured_and_it_says_so() -> None:
    found = recurrent(nn.LSTM(3, 4))
    assert found.layers[0].spectrum is None
    assert found.not_measured == (
        "Not run: no inputs were given for the network; matrices alone say nothing about a gated network.",
    )
    assert "LSTM" in repr(found)


def test_made_up_inputs_are_named_in_the_report() -> None:
    found = recurrent(nn.RNN(2, 3), "gaussian", n_exponents=1)
    assert found.inputs_are == "run on made-up inputs (gaussian, 300 steps)"
    with pytest.raises(InvalidInput, match="unknown inputs 'gausian'"):
        recurrent(nn.RNN(2, 3), "gausian")


def test_a_plain_network_may_be_judged_by_its_radius() -> None:
    rnn = nn.RNN(2, 3)
    radius = float(torch.linalg.eigvals(rnn.weight_hh_l0.detach()).abs().max())
    assert recurrent(rnn).layers[0].verdicts[0].startswith(f"Spectral radius {radius:.4g}")


def test_a_whole_model_is_run_and_its_network_watched() -> None:
    found = recurrent(Reader(), torch.arange(40).reshape(2, 20) % 7)
    assert [layer.name for layer in found.layers] == ["memory"]
    assert found.layers[0].gradients is not None


@pytest.mark.parametrize("source", [StrangerCell(), as_function(nn.GRUCell(3, 5))])
def test_steps_of_strangers_are_looked_at_and_not_judged_by_a_matrix(source: Any) -> None:
    found = recurrent(source, torch.ones(1, 30, 3), states=torch.zeros(1, 5)).layers[0]
    assert found.spectrum is not None
    assert found.blocks[0].gate == "Jacobian at the mean state"
    assert found.verdicts[0].startswith("Not judged by its matrix")


def test_a_linear_module_is_known_by_a_probe_and_a_bent_one_is_not() -> None:
    lru = layers.LRU(3, 4)
    (linear,) = recurrent(lru, torch.ones(1, 20, 3)).linear
    own = lru.eigenvalues().to(torch.complex128)
    both = torch.cat([own, own.conj()])
    gaps = (linear.eigenvalues[:, None] - both[None]).abs().amin(1)
    assert float(gaps.max()) < 1e-6
    assert recurrent(layers.NonNormalRNN(3, 4), torch.ones(1, 20, 3)).linear == ()
    assert recurrent(layers.MinGRU(3, 4), torch.linspace(-1, 1, 60).reshape(1, 20, 3)).linear == ()


def test_several_networks_of_a_file_take_inputs_by_name(tmp_path: Path) -> None:
    state = {f"{name}.{key}": part for name in ("a", "b") for key, part in nn.GRUCell(3, 4).state_dict().items()}
    numpy.savez(tmp_path / "two.npz", **{name: tensor.numpy() for name, tensor in state.items()})
    found = recurrent(tmp_path / "two.npz", {"b": torch.ones(1, 20, 3)})
    assert [layer.spectrum is None for layer in found.layers] == [True, False]
    assert found.not_measured == ("Not run: what reaches a is not known; pass inputs={'a': sequences}.",)


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [
        (torch.ones(2, 5, 4), {}, "with 3 features; got"),
        (torch.full((2, 5, 3), math.nan), {}, "inputs must be finite"),
        (torch.ones(2, 5, 3), {"n_sequences": 0}, "n_sequences must be an integer of at least 1"),
        (torch.ones(2, 5, 3), {"direct": torch.ones(2, 5, 9)}, "direct must be"),
        (torch.ones(2, 5, 3), {"nonlinearity": "gelu"}, "nonlinearity"),
    ],
)
def test_what_does_not_fit_is_refused(inputs: Tensor, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        recurrent(nn.GRU(3, 4), inputs, **options)


def test_an_overflow_is_told_with_its_step() -> None:
    rnn = nn.RNN(1, 1, nonlinearity="relu", batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.fill_(1e10)
    with pytest.raises(InvalidInput, match=r"it overflows at step \d+"):
        recurrent(rnn, torch.ones(1, 60, 1))


def test_a_warm_up_longer_than_the_run_is_refused_and_one_step_is_not_judged() -> None:
    gru = nn.GRU(2, 3, batch_first=True)
    with pytest.raises(InvalidInput, match="warm_up must leave some of the 5 steps; got 10"):
        recurrent(gru, torch.zeros(1, 5, 2), warm_up=10)
    said = recurrent(gru, torch.zeros(1, 1, 2)).verdicts
    assert any("Not judged: top exponent" in sentence and "over 1 step," in sentence for sentence in said)
    assert not any("nan" in sentence for sentence in said)


def test_a_run_that_rests_on_an_unstable_point_or_grows_is_not_called_chaotic() -> None:
    """Without inputs a network that begins at zero stays there, however chaotic it is elsewhere."""

    def logistic(x: Tensor, h: Tensor) -> Tensor:
        return 4 * h * (1 - h) + x

    push, state = torch.zeros(1, 80, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    still = recurrent(logistic, push, states=state)
    assert "Unstable point of rest" in still.verdicts[2]
    push[0, 0] = 0.3
    assert "Chaotic" in recurrent(logistic, push, states=state).verdicts[2]
    growing = recurrent(lambda x, h: 1.1 * h + x, torch.ones(1, 80, 2), states=torch.zeros(1, 2))
    assert "Growing" in growing.verdicts[2]
    assert "not chaos" in growing.verdicts[2]


def test_exponents_of_known_maps_are_found() -> None:
    """The logistic map at 4 (ln 2) and Henon's map, whose exponents sum to ln 0.3."""

    def logistic(x: Tensor, h: Tensor) -> Tensor:
        return 4 * h * (1 - h) + x

    def henon(x: Tensor, h: Tensor) -> Tensor:
        return torch.stack([1 - 1.4 * h[..., 0].square() + h[..., 1], 0.3 * h[..., 0]], -1) + 0 * x

    push = torch.zeros(2, 1200, 1, dtype=torch.float64)
    push[:, 0, 0] = torch.tensor([0.3, 0.41])
    found = recurrent(logistic, push, states=torch.zeros(1, 1, dtype=torch.float64)).layers[0].spectrum
    assert found is not None
    assert abs(float(found.exponents[0]) - math.log(2)) < 0.02
    spread = recurrent(henon, 0 * push, states=torch.zeros(1, 2, dtype=torch.float64)).layers[0].spectrum
    assert spread is not None
    assert abs(float(spread.exponents.sum()) - math.log(0.3)) < 1e-6
    assert abs(float(spread.exponents[0]) - 0.419) < 0.03


def test_a_notebook_shows_sentences_and_tables_and_escapes_names() -> None:
    page = recurrent({"<b>.weight_hh_l0": torch.eye(2), "<b>.weight_ih_l0": torch.eye(2)})._repr_html_()
    assert "<li>&lt;b&gt;" in page
    assert "<caption>matrices</caption>" in page
    assert "<b>." not in page
