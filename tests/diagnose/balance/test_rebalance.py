from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from helpers import seeded
from separatrix.core import InvalidInput, NotConverged, OutsideTheory
from separatrix.diagnose import balance_profile, find_pairs, set_balance
from separatrix.experiments.ours.conservation_blocks import BLOCKS, reference_block


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def unchanged(model: nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.sampled(6)
@pytest.mark.parametrize("balance", [0.7, *(pytest.param(other, marks=pytest.mark.slow) for other in (0.0, -0.7))])
@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in ("tanh", "GELU", "SiLU", "linear")])
def test_outputs_stay_and_every_settable_pair_gets_its_balance(
    name: str, balance: float, generator: torch.Generator
) -> None:
    block = reference_block(name, generator=generator)
    model = block.model.eval()
    before = model(block.inputs).detach()
    report = set_balance(model, balance, example_inputs=block.inputs, on_refusal="leave")
    gap = (model(block.inputs) - before).detach().abs().max() / before.abs().max()
    assert float(gap) < 1e-13  # rounding in float64
    assert report.output_change < 1e-13
    for pair in balance_profile(model).pairs:
        if pair.pair.settable:
            assert pair.balance == pytest.approx(balance, abs=1e-10)
            assert pair.spread < 1e-10


@pytest.mark.parametrize("name", ["tanh", "GELU", "SiLU", "SwiGLU"])
def test_what_is_not_homogeneous_is_refused_and_the_model_is_unchanged(name: str, generator: torch.Generator) -> None:
    model = reference_block(name, generator=generator).model
    before = state(model)
    with pytest.raises(InvalidInput, match=r"is not homogeneous\. The model is unchanged"):
        set_balance(model, 0.5)
    assert unchanged(model, before)


def test_one_refused_pair_refuses_all() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2))
    before = state(model)
    with pytest.raises(InvalidInput, match=r"'2 -> 4'.*gelu"):
        set_balance(model, 0.0)
    assert unchanged(model, before)
    report = set_balance(model, 0.0, on_refusal="leave")
    assert [layer.layer for layer in report.left] == ["2 -> 4"]
    assert abs(report.balance["0 -> 2"][1]) < 1e-6


def test_shared_weights_are_refused() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    with pytest.raises(InvalidInput, match="is shared with"):
        set_balance(model, 0.0)


def test_a_balance_that_does_not_exist_is_refused_with_the_inequality(generator: torch.Generator) -> None:
    model = reference_block("linear", generator=generator).model  # 6 hidden units, 3 outputs, 4 inputs and a bias
    before = state(model)
    with pytest.raises(OutsideTheory, match=r"n_hidden <= n_out \(6 hidden units, 3 outputs\)"):
        set_balance(model, 1.0)
    assert unchanged(model, before)


def test_dead_neurons_are_left_and_reported() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    with torch.no_grad():
        model[0].weight[1] = 0
        model[0].bias[1] = 0
        model[2].weight[:, 3] = 0
    report = set_balance(model, 1.5)
    assert report.dead_units == {"0 -> 2": (1, 3)}
    alive = balance_profile(model).pairs[0].quantity[[0, 2]]
    assert torch.allclose(alive, torch.full_like(alive, 1.5))


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Identity])
def test_pairs_that_share_layers_all_get_their_balance(activation: type[nn.Module]) -> None:
    layers = [part for _ in range(3) for part in (nn.Linear(4, 4), activation())]
    model = nn.Sequential(*layers, nn.Linear(4, 4)).double()
    x = torch.randn(6, 4, generator=seeded(1), dtype=torch.float64)
    report = set_balance(model, {"0 -> 2": 0.3, "4 -> 6": -0.2}, example_inputs=x)
    assert report.sweeps == 1  # these two pairs share no layer
    report = set_balance(model, 0.3, example_inputs=x)
    assert report.sweeps > 1
    assert report.output_change < 1e-12
    assert all(abs(pair.balance - 0.3) + pair.spread < 1e-9 for pair in balance_profile(model).pairs)


def test_sweeps_that_run_out_leave_the_model_alone() -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5)).double()
    before = state(model)
    with pytest.raises(NotConverged, match=r"after 1 sweeps\. The model is unchanged"):
        set_balance(model, 3.0, max_sweeps=1)
    assert unchanged(model, before)


def test_float32_weights_keep_their_type_and_the_function() -> None:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    x = torch.randn(5, 3, generator=seeded(1))
    report = set_balance(model, 2.0, example_inputs=x)
    assert model[0].weight.dtype is torch.float32
    assert report.output_change < 1e-6  # rounding in float32
    assert report.total_movement > 0


class Disguised(nn.Module):
    """Named like attention, but with something between values and output that hides from the names."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(4, 4) for _ in range(4))
        self.num_heads = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.o_proj(torch.cumsum(self.v_proj(x), -1)) + self.q_proj(x) + self.k_proj(x)


def test_a_pair_that_is_not_what_its_names_suggest_is_refused() -> None:
    model = Disguised()
    before = state(model)
    with pytest.raises(InvalidInput, match=r"does not have the symmetry.*The model is unchanged"):
        set_balance(model, 0.0, example_inputs=torch.ones(3, 4))
    assert unchanged(model, before)


@pytest.mark.parametrize(
    ("balance", "message"),
    [
        (float("nan"), "finite number"),
        (float("inf"), "finite number"),
        ({"0 -> 9": 1.0}, "unknown layer pair"),
    ],
)
def test_bad_balances_are_refused(balance: object, message: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with pytest.raises(InvalidInput, match=message):
        set_balance(model, balance)  # type: ignore[arg-type]


def test_a_model_without_pairs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no layer pair whose balance can be set"):
        set_balance(nn.Linear(3, 2), 0.0)


class MiniLM(nn.Module):
    """One attention block with BERT's names, run without masks."""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.self, self.output = nn.Module(), nn.Module()
        self.self.query, self.self.key, self.self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.self.num_attention_heads = n_heads
        self.output.dense, self.output.LayerNorm = nn.Linear(dim, dim), nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        part = self.self
        q, k, v = (
            layer(x).unflatten(-1, (part.num_attention_heads, -1)).transpose(1, 2)
            for layer in (part.query, part.key, part.value)
        )
        attention = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.output.LayerNorm(x + self.output.dense((attention @ v).transpose(1, 2).flatten(2)))


@pytest.mark.needs_data
def test_trained_attention_is_rebalanced_without_changing_it(data_dir: Path) -> None:
    from safetensors.torch import load_file

    weights = load_file(data_dir / "weights" / "minilm_l6_attention.safetensors")
    prefix = "encoder.layer.3.attention."
    block = MiniLM(384, 12)
    block.load_state_dict({key.removeprefix(prefix): w for key, w in weights.items() if key.startswith(prefix)})
    block = block.double()
    assert len(find_pairs(block).pairs) == 24
    x = torch.randn(2, 16, 384, generator=seeded(0), dtype=torch.float64)
    original = copy.deepcopy(block)
    for balance in (0.0, -1.0):
        report = set_balance(block, balance, example_inputs=x)
        assert report.output_change < 1e-12
        assert 0 < report.total_movement < 1
        assert torch.allclose(block(x), original(x), atol=1e-11)
        assert all(abs(pair.balance - balance) + pair.spread < 1e-9 for pair in balance_profile(block).pairs)
