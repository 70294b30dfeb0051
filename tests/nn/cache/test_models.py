"""Models that a bounded cache cannot serve are refused, each in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from separatrix import nn
from separatrix.core import InvalidInput

transformers = pytest.importorskip("transformers", reason="transformers is not installed: separatrix[hub]")

RelevanceCache, relevance_attention = nn.RelevanceCache, nn.relevance_attention

SMALL = {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def refusal(model: Any) -> str:
    with (
        pytest.raises(InvalidInput) as caught,
        relevance_attention(model, RelevanceCache(4, 3)),
    ):
        pass
    return str(caught.value)


def test_sliding_layers() -> None:
    config = transformers.Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4, max_window_layers=1)
    assert "layers of type sliding_attention" in refusal(transformers.Qwen2ForCausalLM(config).eval())
    mistral = transformers.MistralConfig(**SMALL, sliding_window=4)
    assert "sliding_attention" in refusal(transformers.MistralForCausalLM(mistral).eval())


def test_encoders() -> None:
    config = transformers.T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    assert "an encoder and a decoder" in refusal(transformers.T5ForConditionalGeneration(config).eval())


def test_training_mode_and_strangers() -> None:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))
    assert "training mode" in refusal(model.train())
    assert "model must be a model of transformers" in refusal(torch.nn.Linear(2, 2))


def test_an_attention_that_computes_something_else_is_refused_by_comparison() -> None:
    """A stranger's layer that scales its output when it is eager and not when it is replaced."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).eval()
    projection = model.model.layers[0].self_attn.o_proj
    forward = projection.forward
    projection.forward = lambda x: forward(x) * (5.0 if model.config._attn_implementation == "eager" else 1.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5.0)
    assert "differ by" in refusal(model)
