from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose import Law, find_pairs
from separatrix.experiments.ours.conservation_blocks import BLOCKS, reference_block


def laws(model: nn.Module, **options: object) -> dict[str, Law]:
    return {pair.name: pair.law for pair in find_pairs(model, **options).pairs}  # type: ignore[arg-type]


def reasons(model: nn.Module, **options: object) -> dict[str, str]:
    return {layer.layer: layer.reason for layer in find_pairs(model, **options).skipped}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_of_the_table_gets_its_law_with_and_without_data(name: str, generator: torch.Generator) -> None:
    block = reference_block(name, generator=generator)
    for inputs in (None, block.inputs):
        found = laws(block.model, example_inputs=inputs)
        assert {pair: found[pair] for pair in block.laws} == block.laws


class Functional(nn.Module):
    """Activations as functions and methods, a view by hand, a gate by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc, self.gate, self.out = (
            nn.Conv2d(1, 3, 3),
            nn.Linear(48, 5),
            nn.Linear(48, 5),
            nn.Linear(5, 2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.conv(x))
        x = x.view(x.size(0), -1) * 0.5
        return self.out(self.fc(x).relu() * torch.sigmoid(self.gate(x)))


def test_functions_methods_views_and_gates_are_followed() -> None:
    x = torch.randn(2, 1, 6, 6, generator=seeded(0))
    for inputs in (None, x):
        search = find_pairs(Functional(), example_inputs=inputs)
        found = {pair.name: pair for pair in search.pairs}
        assert found["fc -> out"].law is Law.DIAGONAL
        assert found["gate -> out"].law is Law.NOTHING
        assert "more than one place" in {layer.layer: layer.reason for layer in search.skipped}["conv"]


def test_a_recurrent_layer_is_named_with_its_reason_instead_of_an_empty_result() -> None:
    assert "time step" in reasons(nn.LSTM(3, 4))["LSTM"]


def test_a_shared_weight_has_no_law() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    pair = find_pairs(model).pairs[0]
    assert pair.law is Law.NOTHING
    assert "is shared with" in pair.reason


def test_a_layer_that_is_called_twice_has_no_law() -> None:
    layer = nn.Linear(4, 4)
    pairs = find_pairs(nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(4, 2))).pairs
    assert pairs
    assert all(pair.law is Law.NOTHING for pair in pairs)


def test_a_parametrised_weight_has_no_law() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ReLU(), nn.Linear(4, 2))
    assert all(pair.law is Law.NOTHING for pair in find_pairs(model).pairs)


class Branching(nn.Module):
    """Python that depends on values: torch.fx gives up on the whole, not on its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if float(x.sum()) > 0:
            x = -x
        return self.head(self.body(x))


def test_a_model_that_cannot_be_traced_is_taken_apart_and_a_call_sees_the_rest() -> None:
    assert laws(Branching()) == {"body.0 -> body.2": Law.DIAGONAL}
    assert "example_inputs" in reasons(Branching())["head"]
    watched = laws(Branching(), example_inputs=torch.ones(2, 3))
    assert watched == {"body.0 -> body.2": Law.DIAGONAL, "body.2 -> head": Law.FULL}


def test_flattening_and_pooling_over_units_are_not_taken_for_positions() -> None:
    tokens_last = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Flatten(), nn.Linear(20, 2))
    assert "one by one" in reasons(tokens_last)["0"]
    pooled = nn.Sequential(nn.Linear(3, 4), nn.AvgPool1d(3, stride=1, padding=1), nn.Linear(4, 2))
    assert "pools over units" in reasons(pooled)["0"]


def test_a_part_that_cannot_be_traced_does_not_hide_its_neighbours() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3), Branching(), nn.Linear(2, 5), nn.Linear(5, 2))
    found = laws(model)
    assert found == {"0 -> 2": Law.DIAGONAL, "4 -> 5": Law.FULL, "3.body.0 -> 3.body.2": Law.DIAGONAL}


class Conv1D(nn.Module):
    """GPT-2's layer: a weight of shape (in, out)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(n_in, n_out)), nn.Parameter(torch.zeros(n_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias


class FusedAttention(nn.Module):
    """Attention with one matrix for queries, keys and values, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj, self.n_head = Conv1D(8, 24), Conv1D(8, 8), 2


class BertLike(nn.Module):
    """Query, key and value in one module, the output beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.self, self.output = nn.Module(), nn.Module()
        self.self.query, self.self.key, self.self.value = (nn.Linear(8, 8) for _ in range(3))
        self.self.num_attention_heads = 2
        self.output.dense = nn.Linear(8, 8)


def test_attention_is_recognised_by_the_names_of_its_parts() -> None:
    assert set(laws(FusedAttention()).values()) == {Law.FULL}
    assert len(laws(FusedAttention())) == 4
    assert set(laws(BertLike())) == {f"self head {head} {pair}" for head in range(2) for pair in ("K -> Q", "V -> O")}


def test_attention_without_a_number_of_heads_is_named() -> None:
    model = BertLike()
    del model.self.num_attention_heads
    assert "number of heads" in reasons(model)["self"]


def test_rotary_pairing_can_be_given(generator: torch.Generator) -> None:
    model = reference_block("attention, rotary", generator=generator).model
    assert laws(model, rotary="none")["attention head 0 K -> Q"] is Law.FULL
    pair = find_pairs(model, rotary="interleaved").pairs[0]
    assert (pair.law, pair.rotation) == (Law.ROTATION_PAIRS, "interleaved")


def test_explicit_pairs_take_the_law_of_what_lies_between() -> None:
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    for between, law in (("relu", Law.DIAGONAL), ("linear", Law.FULL), ("gelu", Law.NOTHING)):
        assert find_pairs(model, [("0", between, "3")]).pairs[0].law is law


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("0", "relu", "two")], "unknown layer 'two'"),
        ([("0", "relu", "1")], "is a ReLU, not a layer"),
        ([("0", "2")], "explicit pair is"),
        ([("2", "relu", "0")], "do not form a pair"),
        ([("0", "mystery", "2")], "not known"),
        ("all", "unknown pairs 'all'"),
    ],
)
def test_bad_pairs_are_refused(pairs: object, message: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with pytest.raises(InvalidInput, match=message):
        find_pairs(model, pairs)  # type: ignore[arg-type]


def test_bad_models_and_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rotary pairing 'halves'"):
        find_pairs(nn.Linear(2, 2), rotary="halves")


def test_watching_a_call_changes_neither_buffers_nor_modes(generator: torch.Generator) -> None:
    block = reference_block("batch norm", generator=generator)
    before = {name: value.clone() for name, value in block.model.state_dict().items()}
    find_pairs(block.model, example_inputs=block.inputs)
    assert block.model.training
    assert all(torch.equal(value, before[name]) for name, value in block.model.state_dict().items())


def test_parameters_side_by_side_in_one_buffer_are_not_shared() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    start = 0
    for parameter in model.parameters():
        parameter.data = flat[start : start + parameter.numel()].view_as(parameter)
        start += parameter.numel()
    assert laws(model) == {"0 -> 2": Law.DIAGONAL}
