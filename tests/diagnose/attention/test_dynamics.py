from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_models import bert_state, draw
from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.diagnose import attention_dynamics

D, H = 8, 2


class TwoLayers(nn.Module):
    """A model that answers like one of Hugging Face: a call with tokens returns its hidden states."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(D, H, 16, batch_first=True, dropout=0.1, dtype=torch.float64)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters()):
                parameter.copy_(0.5 * draw(*parameter.shape, seed=i))

    def forward(self, tokens: Tensor, output_hidden_states: bool) -> Any:
        states = [tokens]
        for layer in self.encoder.layers:
            states.append(layer(states[-1]))
        return types.SimpleNamespace(hidden_states=tuple(states))


def tokenizer(text: str, return_tensors: str) -> dict[str, Tensor]:
    assert return_tensors == "pt"
    return {"tokens": draw(1, len(text), D, seed=len(text))}


def diagnose(source: Any, *texts: Any, **options: Any) -> Any:
    settings = {"n_starts": 1, "n_tokens": 4, "rank": 2, "t_max": 1, "control": False}
    return attention_dynamics(source, *texts, generator=spawn(0, "test"), **(settings | options))


def test_without_texts_the_tokens_are_reported_as_not_measured() -> None:
    found = diagnose(bert_state(D), n_heads=H)
    assert found.not_measured == ("tokens and alignment not measured: no texts",)
    assert "not measured: no texts" in found.verdicts[0]
    assert set(found.tables()) == {"Spectra", "Heads", "Frozen layers"}


@pytest.mark.slow
def test_texts_run_through_the_model_and_a_redrawn_copy() -> None:
    model = TwoLayers().eval()
    before = [parameter.clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    found = diagnose(model, ["seven7!", "nine chars"], tokenizer=tokenizer, control=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert [layer.geometry.cosine.n_texts for layer in found.layers] == [2, 2]
    assert len(found.control) == 2
    assert found.output is not None
    assert not found.not_measured
    assert [end.start for end in found.layers[0].ends] == ["random tokens", "text 1"]
    tables = found.tables()
    assert len(tables["Alignment"]) == 2 * 2 * 3
    assert len(tables["Tokens"]) == 2 + 1 + 2
    assert "times chance energy" in found.verdicts[0]
    assert "iterated" in found.verdicts[0]


def test_given_hidden_states_give_the_same_tokens_as_the_model() -> None:
    model = TwoLayers().eval()
    with torch.no_grad():
        states = model(**tokenizer("eleven char", "pt"), output_hidden_states=True).hidden_states
    through = diagnose(model, ["eleven char"], tokenizer=tokenizer, n_starts=0)
    given = diagnose(model, hidden_states=[[state[0]] for state in states], n_starts=0)
    assert str(given.tables()["Tokens"]) == str(through.tables()["Tokens"])


def test_measured_length_sets_the_temperature() -> None:
    states = [[3 * draw(6, D, seed=1)]]
    found = diagnose(bert_state(D), n_heads=H, hidden_states=states, token_norm="measured")
    plain = diagnose(bert_state(D), n_heads=H, hidden_states=states, token_norm=found.layers[0].geometry.length.mean)
    assert str(found.layers[0].ends) == str(plain.layers[0].ends)


def test_same_generator_gives_the_same_result() -> None:
    first, second = (diagnose(bert_state(D), n_heads=H, control=True) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_bad_requests_are_refused_with_what_to_do() -> None:
    model = TwoLayers().eval()
    with pytest.raises(InvalidInput, match="pass hidden_states"):
        diagnose(bert_state(D), ["text"], n_heads=H)
    with pytest.raises(InvalidInput, match="not both"):
        diagnose(model, ["text"], tokenizer=tokenizer, hidden_states=[])
    with pytest.raises(InvalidInput, match=r"call model.eval\(\)"):
        diagnose(TwoLayers().train(), ["text"], tokenizer=tokenizer)
    with pytest.raises(InvalidInput, match="at least one text"):
        diagnose(model, [], tokenizer=tokenizer)
    with pytest.raises(InvalidInput, match="one entry per attention layer"):
        diagnose(model, hidden_states=[[draw(4, D, seed=0)]])
    with pytest.raises(ShapeError, match=r"hidden_states\[1\]\[0\] must have shape \(tokens, 8\)"):
        diagnose(model, hidden_states=[[draw(4, D, seed=0)], [draw(4, 3, seed=0)]])
    with pytest.raises(InvalidInput, match="needs texts or hidden_states"):
        diagnose(model, token_norm="measured")
    with pytest.raises(InvalidInput, match="unknown token_norm"):
        diagnose(model, token_norm="mesured")
