from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import separatrix.nn as layers
from helpers import seeded
from recurrent_cases import StrangerCell, as_function, louder, networks, pitchfork
from separatrix.core import InvalidInput, Trace
from separatrix.diagnose import fixed_points

ROOT = 0.957504  # of h = tanh(2 h)


def test_a_gru_with_closed_gates_has_no_fixed_points_beyond_one(generator: torch.Generator) -> None:
    """Once the update gate rounds to one every state looks at rest; |h| < 1 holds at every true fixed point."""
    gru = louder(nn.GRU(3, 16, dtype=torch.float64), 40.0)
    with torch.no_grad():
        gru.bias_hh_l0[16:32] += 500.0
    states = 2 * torch.randn(256, 16, generator=generator, dtype=torch.float64)
    after = gru(torch.zeros(1, 256, 3, dtype=torch.float64), states[None])[1][0].detach()
    assert float((after - states).abs().max()) < 1e-12  # 256 equilibria for whoever looks at the residual alone
    found = fixed_points(gru, torch.zeros(3), states)
    assert len(found.states) > 0
    assert float(found.states.abs().max()) <= 1
    again = gru(torch.zeros(1, len(found.states), 3, dtype=torch.float64), found.states[None])[1][0].detach()
    assert float((again - found.states).abs().max()) < 1e-9
    assert float(found.relative_residual.max()) < 1e-9


def test_the_same_of_a_closure_is_called_neutral_or_out_of_bounds(generator: torch.Generator) -> None:
    cell = louder(nn.GRUCell(3, 6), 40.0)
    with torch.no_grad():
        cell.bias_hh[6:12] += 500.0
    states = 2 * torch.randn(16, 6, generator=generator)
    found = fixed_points(as_function(cell), torch.zeros(3), states, rounds=0)
    assert len(found.states) == 0 or float(found.states.abs().max()) <= 1.001
    assert len(found.neutral_states) > 0
    bounded = fixed_points(as_function(cell), torch.zeros(3), states, rounds=0, bounds=(-1, 1))
    assert bounded.n_outside > 0
    assert "outside the state space" in bounded.sentence


def test_one_unit_has_the_three_fixed_points_of_theory() -> None:
    found = fixed_points(pitchfork(), [0.0], [[-0.5], [0.1], [0.5]])
    assert found.states[:, 0].tolist() == pytest.approx([-ROOT, ROOT, 0.0], abs=1e-5)
    assert found.stable.tolist() == [True, True, False]
    slope = 2 * (1 - ROOT**2)
    assert found.eigenvalues[:, 0].real.tolist() == pytest.approx([slope, slope, 2.0], abs=1e-5)
    assert found.time_constants[2, 0] == pytest.approx(1 / math.log(2))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", networks())
def test_points_of_every_network_do_not_move_when_the_module_itself_runs(name: str) -> None:
    module = louder(networks()[name], 2.0).double()
    found = fixed_points(module, torch.zeros(3))
    assert len(found.states) >= 1
    layer_names = {"lstm", "without biases", "lstm cell"}
    if name in layer_names:
        state: Any = found.states.split(4, dim=-1)
        state = state if name == "lstm cell" else tuple(part[None].contiguous() for part in state)
    elif name == "lstm of three layers":
        parts = found.states.unflatten(-1, (3, 2, 4)).permute(2, 1, 0, 3).contiguous()
        state = (parts[0], parts[1])
    elif name == "gru of two layers":
        state = found.states.unflatten(-1, (2, 4)).transpose(0, 1).contiguous()
    elif name == "lstm with a projection":
        h, c = torch.stack([found.states[:, :2], found.states[:, 8:10]]), found.states.unflatten(-1, (2, 8))[..., 2:]
        state = (h.contiguous(), c.transpose(0, 1).contiguous())
    else:
        state = found.states if "cell" in name else found.states[None]
    x = torch.zeros(len(found.states), 3, dtype=torch.float64)
    x = x if "cell" in name else x[:, None] if module.batch_first else x[None]
    after = module(x, state)
    after = after if "cell" in name else after[1]
    for before, now in zip(state, after, strict=True) if isinstance(state, tuple) else [(state, after)]:
        torch.testing.assert_close(before, now, rtol=0, atol=1e-8)


def test_stability_is_what_a_run_from_nearby_shows(generator: torch.Generator) -> None:
    rnn = nn.RNN(2, 6, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        rnn.weight_hh_l0.mul_(0.3).add_(1.3 * torch.eye(6))
    found = fixed_points(rnn, torch.zeros(2), torch.rand(200, 6, generator=generator) * 2 - 1)
    assert {True, False} <= set(found.stable.tolist())
    noise = 1e-6 * torch.randn(len(found.states), 6, generator=generator, dtype=torch.float64)
    held = torch.zeros(len(found.states), 300, 2, dtype=torch.float64)
    end = rnn(held, (found.states + noise)[None])[1][0]
    moved = (end - found.states).abs().amax(-1)
    assert bool((moved[found.stable] < 1e-6).all())
    assert bool((moved[~found.stable] > 1e-4).all())


def test_a_ghost_is_a_slow_point_and_no_fixed_point() -> None:
    """Just beyond the fold of h' = tanh(2 h + x) the two points are gone and the motion is slow where they met."""
    fold = math.sqrt(0.5)
    x = -(math.atanh(fold) - 2 * fold) + 1e-4
    found = fixed_points(pitchfork(), [x], torch.linspace(-1, 1, 21)[:, None])
    assert len(found.states) == 1
    assert bool(found.stable[0])
    assert found.slow_states[:, 0].tolist() == pytest.approx([-fold], abs=1e-2)
    assert found.slow_speed[0] == pytest.approx(5e-5, rel=0.1)
    assert {row["kind"] for row in found.rows()} == {"stable", "slow point"}


def test_a_pure_memory_is_neutral_everywhere() -> None:
    found = fixed_points(lambda x, h: h + 0 * x.sum(-1, keepdim=True), torch.zeros(2), torch.eye(3))
    assert len(found.states) == 0
    assert len(found.neutral_states) >= 3


def test_inputs_states_and_traces_in_any_form() -> None:
    lstm = nn.LSTM(3, 4, 2)
    _, (h, c) = lstm(torch.ones(6, 5, 3))
    several = fixed_points(lstm, torch.tensor([[0.0, 0, 0], [1, 1, 1], [0, 0, 0]]), (h, c))
    assert {tuple(row) for row in several.inputs.tolist()} == {(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)}
    gru = nn.GRU(3, 4)
    traced = fixed_points(gru, torch.zeros(1, 1, 3), Trace(torch.rand(2, 7, 4)))
    assert len(traced.states) == len(fixed_points(gru, torch.zeros(3), gru(torch.ones(6, 5, 3))[1]).states)
    assert float(traced.distance.min()) >= 0
    lru = fixed_points(layers.LRU(3, 4), torch.ones(3), torch.zeros(1, 4, dtype=torch.complex64))
    assert lru.states.shape == (1, 8)
    assert bool(lru.stable[0])


def test_a_stranger_s_step_is_searched_in_its_own_way() -> None:
    cell = louder(StrangerCell(), 3.0)
    found = fixed_points(cell, torch.ones(3), torch.randn(40, 5, generator=torch.Generator().manual_seed(0)))
    assert len(found.states) >= 1
    after = cell.double().step(torch.ones(len(found.states), 3, dtype=torch.float64), found.states)
    torch.testing.assert_close(after, found.states, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.zeros(2), None), "inputs must be one constant input"),
        ((torch.zeros(3), torch.zeros(5, 7)), "states must have 4 numbers on the last axis"),
        ((torch.zeros(3), torch.full((5, 4), torch.nan)), "states must be finite"),
        ((torch.full((3,), torch.inf), None), "inputs must be finite"),
        ((torch.rand(100, 3), None), "at most 64 different constant inputs"),
        ((torch.zeros(3), torch.zeros(0, 4)), "at least one state"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fixed_points(nn.GRU(3, 4), *arguments)


@pytest.mark.parametrize("bounds", [(1, -1), (1,), "ab", (0, math.nan)])
def test_bad_bounds_are_refused(bounds: Any) -> None:
    with pytest.raises(Exception, match="bounds"):
        fixed_points(nn.GRU(3, 4), torch.zeros(3), bounds=bounds)


@pytest.mark.slow
def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gru = louder(nn.GRU(3, 6), 5.0)
    whole = fixed_points(gru, torch.zeros(3))
    monkeypatch.setattr("separatrix.diagnose.rest_points.portions._ENTRIES", 200)
    torch.testing.assert_close(fixed_points(gru, torch.zeros(3)).states, whole.states, rtol=0, atol=1e-8)


def test_a_step_that_gives_nothing_finite_is_refused_rather_than_searched() -> None:
    with pytest.raises(InvalidInput, match="must give finite states"):
        fixed_points(lambda x, h: h * math.nan, torch.zeros(2), torch.zeros(4, 2))


def test_a_ring_of_rest_points_is_neutral_and_each_point_told_once() -> None:
    def onto_the_circle(x: Tensor, h: Tensor) -> Tensor:
        return h / torch.linalg.vector_norm(h, dim=-1, keepdim=True) + 0 * x[..., :1]

    starts = torch.randn(15, 2, generator=seeded(0), dtype=torch.float64)
    found = fixed_points(onto_the_circle, torch.zeros(1, dtype=torch.float64), starts)
    assert len(found.states) == 0
    assert len(found.neutral_states) == 15
    assert torch.allclose(found.neutral_states.norm(dim=-1), torch.ones(15, dtype=torch.float64))
