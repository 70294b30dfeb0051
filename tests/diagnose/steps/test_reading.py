from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import separatrix.nn as layers
from recurrent_cases import Reader, StrangerCell, as_function, louder, networks
from separatrix.core import InvalidInput, MissingData
from separatrix.diagnose import AbstractRecurrentMap, recurrent_networks

X = torch.linspace(-1, 1, 30).reshape(2, 5, 3)


def some_states(layer: AbstractRecurrentMap, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(3, layer.input_size, generator=generator, dtype=torch.float64)
    return x, torch.randn(3, layer.state_size, generator=generator, dtype=torch.float64)


def by_autodiff(function: Any, x: Tensor, y: Tensor, argument: int) -> Tensor:
    def alone(x: Tensor, y: Tensor) -> Tensor:
        return function(x[None], y[None])[0]

    return torch.stack([torch.func.jacrev(alone, argument)(x[k], y[k]) for k in range(len(x))])


@pytest.mark.parametrize("name", networks())
def test_derivatives_are_those_of_autodiff(name: str, generator: torch.Generator) -> None:
    layer = recurrent_networks(networks()[name])[0].as_map()
    x, state = some_states(layer, generator)
    y = layer.lower(state)
    pairs = [
        (layer.jacobian(x, state), by_autodiff(layer.advance, x, state, 1)),
        (layer.input_jacobian(x, state), by_autodiff(layer.advance, x, state, 0)),
        (layer.slope(x, state), by_autodiff(layer.displacement, x, state, 1)),
        (layer.rest_jacobian(x, y), by_autodiff(layer.rest_map, x, y, 1)),
        (layer.rest_input_jacobian(x, y), by_autodiff(layer.rest_map, x, y, 0)),
        (layer.displacement(x, state), layer.advance(x, state) - state),
    ]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["gru of two layers", "lstm of three layers", "lstm with a projection", "lstm cell"])
def test_where_the_map_of_rest_rests_the_network_does(name: str, generator: torch.Generator) -> None:
    layer = recurrent_networks(networks()[name])[0].as_map()
    x, state = some_states(layer, generator)
    y = layer.lower(state)
    for _ in range(400):
        y = layer.rest_map(x, y)
    rest = layer.lift(x, y)
    assert layer.displacement(x, rest).abs().max() < 1e-12
    low, high = layer.bounds(x)  # type: ignore[misc]
    assert bool(((low < rest) & (rest < high)).all())


@pytest.mark.parametrize("make", [layers.ExpRNN, layers.NonNormalRNN, layers.LRU, layers.MinGRU, layers.CoRNN])
def test_modules_of_torch_s_convention_are_asked_themselves(make: Any, generator: torch.Generator) -> None:
    layer = recurrent_networks(make(3, 4), X)[0].as_map()
    x, state = some_states(layer, generator)
    step = 1e-6 * torch.eye(layer.state_size, dtype=torch.float64)
    columns = [(layer.advance(x, state + row) - layer.advance(x, state - row)) / 2e-6 for row in step]
    torch.testing.assert_close(layer.jacobian(x, state), torch.stack(columns, dim=-1), rtol=0, atol=1e-8)


def test_a_step_a_closure_and_a_tuple_of_states_are_taken(generator: torch.Generator) -> None:
    stranger = recurrent_networks(StrangerCell(), X, torch.zeros(1, 5))[0].as_map()
    gru = recurrent_networks(as_function(nn.GRUCell(3, 4)), X, torch.zeros(2, 4))[0].as_map()
    lstm = recurrent_networks(as_function(nn.LSTMCell(3, 4)), X, (torch.zeros(2, 4), torch.zeros(2, 4)))[0].as_map()
    assert (stranger.state_size, gru.state_size, lstm.state_size) == (5, 4, 8)
    x, state = some_states(stranger, generator)
    assert float((stranger.advance(x, state) - 0.8 * state).abs().max()) <= 0.2


class PairCell(nn.Module):
    """A cell of two tensors, called with input and state."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.LSTMCell(3, 6)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next pair."""
        h, c = self.inside(x, state)
        return 0.5 * h, c


class OwnPair(PairCell):
    """The same by a step."""

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next pair."""
        return self(x, state)


def test_the_states_of_a_module_are_found_by_trial() -> None:
    assert recurrent_networks(StrangerCell(), X)[0].as_map().state_size == 5
    assert recurrent_networks(OwnPair(), X)[0].as_map().state_size == 12


def test_a_parametrised_weight_is_read_as_it_is_used() -> None:
    rnn = nn.RNN(3, 4)
    nn.utils.parametrizations.orthogonal(rnn, "weight_hh_l0")
    block = recurrent_networks(rnn)[0].levels[0][0].blocks["recurrent"]
    torch.testing.assert_close(block @ block.mT, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-5)


def test_a_model_shows_its_network_what_reaches_it() -> None:
    model = Reader()
    symbols = torch.arange(6).reshape(2, 3)
    (found,) = recurrent_networks(model, symbols)
    assert found.name == "memory"
    torch.testing.assert_close(found.captured, model.table(symbols).double())


def test_files_of_every_kind_hold_the_same_network(tmp_path: Path) -> None:
    state = nn.LSTM(3, 4, 2).state_dict()
    save_file(state, tmp_path / "a.safetensors")
    torch.save(state, tmp_path / "a.pt")
    numpy.savez(tmp_path / "a.npz", **{name: tensor.numpy() for name, tensor in state.items()})
    for name in ("a.safetensors", "a.pt", "a.npz"):
        (network,) = recurrent_networks(tmp_path / name)
        assert [level[0].kind for level in network.levels] == ["LSTM", "LSTM"]
        torch.testing.assert_close(network.levels[1][0].blocks["o"], state["weight_hh_l1"][12:].double())


class Bomb:
    """Pickled code that a loader must not run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the file was executed",))


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    (tmp_path / "bomb.pt").write_bytes(pickle.dumps(Bomb()))
    numpy.savez(tmp_path / "bomb.npz", weight_hh=numpy.array([Bomb()], dtype=object))
    for name in ("bomb.pt", "bomb.npz"):
        with pytest.raises(InvalidInput, match="plain"):
            recurrent_networks(tmp_path / name)


def test_bad_sources_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"by their shape these may be recurrent: core \(16, 4\)"):
        recurrent_networks({"core": torch.zeros(16, 4)})
    with pytest.raises(InvalidInput, match="1, 3 or 4 times"):
        recurrent_networks({"weight_ih": torch.zeros(8, 3), "weight_hh": torch.zeros(8, 4)})
    with pytest.raises(InvalidInput, match="finite"):
        recurrent_networks({"weight_ih": torch.zeros(4, 3), "weight_hh": torch.full((4, 4), torch.nan)})
    with pytest.raises(InvalidInput, match="weight_ih is missing"):
        recurrent_networks({"weight_hh": torch.zeros(4, 4)})
    with pytest.raises(MissingData, match="no file"):
        recurrent_networks(tmp_path / "absent.npz")
    for module in (nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh())):
        with pytest.raises(InvalidInput, match="must be a recurrent network"):
            recurrent_networks(module, X)
    with pytest.raises(InvalidInput, match="pass states"):
        recurrent_networks(as_function(nn.GRUCell(3, 4)), X)


def test_what_is_no_map_of_states_is_refused() -> None:
    with pytest.raises(InvalidInput, match="both directions"):
        recurrent_networks(nn.GRU(3, 4, bidirectional=True))[0].as_map()
    with pytest.raises(InvalidInput, match="keep the samples of a batch apart"):
        recurrent_networks(lambda x, h: h - h.mean(0), X, torch.zeros(2, 4))
    with pytest.raises(InvalidInput, match="two equal calls differ"):
        recurrent_networks(lambda x, h: torch.rand_like(h), X, torch.zeros(2, 4))
    hooked = nn.GRU(3, 4)
    hooked.register_forward_hook(lambda module, args, output: (2 * output[0], output[1]))
    with pytest.raises(InvalidInput, match="does not compute what its weights say"):
        recurrent_networks(hooked)


def test_reading_leaves_the_module_as_it_was() -> None:
    module = louder(nn.GRU(3, 4), 2.0).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    recurrent_networks(module, X)
    assert module.training
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert all(parameter.requires_grad for parameter in module.parameters())
