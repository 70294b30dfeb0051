from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear

from attention_models import attend, bert_state, draw, gpt2_state, llama_state
from separatrix.core import InvalidInput, MissingData, ShapeError
from separatrix.diagnose import AttentionLayer, attention_layers
from separatrix.dynamics import random_tokens

D, H, N = 8, 4, 5


def only(source: Any, **options: Any) -> AttentionLayer:
    (layer,) = attention_layers(source, **options).layers
    return layer


def tokens_of_length(length: float, generator: torch.Generator) -> Tensor:
    return length * random_tokens(N, D, generator=generator)


def flow_output(layer: AttentionLayer, y: Tensor) -> Tensor:
    """The output of the layer at tokens y of one length, through the flow."""
    length = float(y[0].norm())
    return length * layer.flow(biases=True, token_norm=length).pull(y / length)


def test_bert_flow_is_the_attention_output_of_the_block(generator: torch.Generator) -> None:
    state = bert_state(D)
    y = tokens_of_length(2.3, generator)
    part = {name.removeprefix("encoder.layer.0.attention."): tensor for name, tensor in state.items()}
    q, k, v = (linear(y, part[f"self.{x}.weight"], part[f"self.{x}.bias"]) for x in ("query", "key", "value"))
    expected = linear(attend(q, k, v, H, causal=False), part["output.dense.weight"], part["output.dense.bias"])
    layer = only(state, n_heads=H)
    assert torch.allclose(flow_output(layer, y), expected, atol=1e-12)
    assert torch.allclose(layer.update(y), expected, atol=1e-12)


def test_gpt2_flow_moves_normalised_tokens_and_is_causal(generator: torch.Generator) -> None:
    state = gpt2_state(D)
    stream = 3 * torch.randn(N, D, generator=generator, dtype=torch.float64)
    read = layer_norm(stream, (D,), state["h.0.ln_1.weight"], state["h.0.ln_1.bias"], eps=0.0)
    q, k, v = (read @ state["h.0.attn.c_attn.weight"] + state["h.0.attn.c_attn.bias"]).chunk(3, dim=-1)
    mixed = attend(q, k, v, H, causal=True)
    expected = mixed @ state["h.0.attn.c_proj.weight"] + state["h.0.attn.c_proj.bias"]
    layer = only(state, n_heads=H)
    z = layer.read(stream)
    assert layer.causal
    assert "normalised" in layer.variable
    assert torch.allclose(z.norm(dim=-1), torch.full((N,), math.sqrt(D), dtype=torch.float64))
    assert torch.allclose(flow_output(layer, z), expected, atol=1e-11)


def test_kept_norm_leaves_the_projections_alone() -> None:
    state = gpt2_state(D)
    layer = only(state, n_heads=H, norm="keep")
    assert layer.reads_through is None
    assert torch.equal(layer.query.flatten(0, 1), state["h.0.attn.c_attn.weight"][:, :D].mT)


def test_grouped_keys_and_values_are_shared_by_their_queries(generator: torch.Generator) -> None:
    state = llama_state(D, H, 2)
    base = "model.layers.0."
    y = torch.randn(N, D, generator=generator, dtype=torch.float64)
    gain = state[f"{base}input_layernorm.weight"]
    read = torch.nn.functional.rms_norm(y, (D,), gain, eps=0.0)
    q, k, v = (read @ state[f"{base}self_attn.{x}_proj.weight"].mT for x in "qkv")
    k, v = (x.unflatten(-1, (2, -1)).repeat_interleave(2, dim=-2).flatten(1) for x in (k, v))
    expected = attend(q, k, v, H, causal=True) @ state[f"{base}self_attn.o_proj.weight"].mT
    layer = only(state, n_heads=H)
    assert torch.allclose(layer.update(layer.read(y)), expected, atol=1e-12)
    assert "rotary" in layer.note


@pytest.mark.parametrize("bias", [True, False])
def test_multihead_module_agrees_with_its_own_forward(bias: bool, generator: torch.Generator) -> None:
    module = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=torch.float64).eval()
    y = tokens_of_length(1.7, generator).unsqueeze(0)
    expected = module(y, y, y, need_weights=False)[0][0].detach()
    assert torch.allclose(flow_output(only(module), y[0]), expected, atol=1e-12)


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer_agrees_with_its_attention_sublayer(norm_first: bool, generator: torch.Generator) -> None:
    block = nn.TransformerEncoderLayer(D, H, 16, norm_first=norm_first, batch_first=True, dtype=torch.float64).eval()
    with torch.no_grad():
        block.norm1.weight.copy_(1 + 0.3 * draw(D, seed=1))
        block.norm1.bias.copy_(0.3 * draw(D, seed=2))
    block.norm1.eps = 0.0
    stream = torch.randn(N, D, generator=generator, dtype=torch.float64)
    read = block.norm1(stream) if norm_first else stream
    attended = block.self_attn(*[read.unsqueeze(0)] * 3, need_weights=False)[0][0]
    layer = only(block)
    assert torch.allclose(layer.update(layer.read(stream)), attended, atol=1e-12)
    if norm_first:
        assert layer.writes_through is None
    else:
        assert layer.writes_through is not None
        assert torch.allclose(layer.writes_through(stream + attended), block.norm1(stream + attended), atol=1e-12)


def test_bias_free_flow_differs_from_the_affine_one_by_the_biases_alone(generator: torch.Generator) -> None:
    state = bert_state(D)
    x = random_tokens(N, D, generator=generator)
    bare = {name: tensor if name.endswith("weight") else torch.zeros_like(tensor) for name, tensor in state.items()}
    free = only(state, n_heads=H).flow(token_norm=2.0).pull(x)
    assert torch.allclose(free, only(bare, n_heads=H).flow(biases=True, token_norm=2.0).pull(x), atol=1e-13)
    assert not torch.allclose(free, only(state, n_heads=H).flow(biases=True, token_norm=2.0).pull(x), atol=1e-3)


def test_coupling_and_value_are_products_of_the_projections() -> None:
    state = bert_state(D)
    layer = only(state, n_heads=H)
    wq, wk = (state[f"encoder.layer.0.attention.self.{x}.weight"] for x in ("query", "key"))
    wo, wv = (state[f"encoder.layer.0.attention.{x}.weight"] for x in ("output.dense", "self.value"))
    assert torch.allclose(layer.couplings[1], wq[2:4].mT @ wk[2:4] / math.sqrt(2))
    assert torch.allclose(layer.values[1], wo[:, 2:4] @ wv[2:4])
    assert torch.allclose(layer.value_sum, wo @ wv)


def test_layers_come_in_the_order_of_their_numbers() -> None:
    states = [bert_state(D, layer) for layer in (10, 2, 0)]
    merged = {name: tensor for state in states for name, tensor in state.items()}
    names = [layer.name for layer in attention_layers(merged, n_heads=H).layers]
    assert names == [f"encoder.layer.{i}.attention" for i in (0, 2, 10)]


def test_what_cannot_be_read_is_named_with_the_reason() -> None:
    state = bert_state(D) | bert_state(D, layer=1)
    del state["encoder.layer.1.attention.self.key.weight"]
    state["blocks.0.attn.Wqkv.weight"] = torch.zeros(3 * D, D)
    found = attention_layers(state, n_heads=H)
    assert len(found.layers) == 1
    assert found.skipped["encoder.layer.1.attention"].endswith("self.key.weight is missing")
    assert found.skipped["blocks.0.attn.Wqkv.weight"] == "names of this layout are not known"
    model = nn.ModuleList([nn.MultiheadAttention(D, H), nn.MultiheadAttention(D, H, kdim=4, vdim=4)])
    model.append(nn.MultiheadAttention(D, H, add_bias_kv=True))
    model.append(nn.MultiheadAttention(D, H, add_zero_attn=True))
    reasons = attention_layers(model).skipped
    assert "kdim" in reasons["1"]
    assert "add_bias_kv" in reasons["2"]
    assert "add_zero_attn" in reasons["3"]


def test_number_of_heads_comes_from_a_configuration_beside_the_file(tmp_path: Path) -> None:
    save_file(bert_state(D), tmp_path / "model.safetensors")
    with pytest.raises(InvalidInput, match="n_heads must be given"):
        attention_layers(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    assert only(tmp_path / "model.safetensors").n_heads == 4


def test_checkpoint_of_tensors_is_read_and_one_with_code_refused(tmp_path: Path) -> None:
    torch.save({"state_dict": bert_state(D)}, tmp_path / "plain.pt")
    assert only(tmp_path / "plain.pt", n_heads=H).dim == D
    torch.save({"model": nn.Linear(2, 2)}, tmp_path / "object.pt")
    with pytest.raises(InvalidInput, match="would execute code"):
        attention_layers(tmp_path / "object.pt", n_heads=H)
    (tmp_path / "broken.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match="not a whole safetensors file"):
        attention_layers(tmp_path / "broken.safetensors", n_heads=H)


def test_bad_input_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="there is no file"):
        attention_layers(tmp_path / "absent.safetensors")
    with pytest.raises(InvalidInput, match="none was found"):
        attention_layers(nn.Linear(3, 3))
    with pytest.raises(InvalidInput, match="n_heads must divide the 8 rows"):
        attention_layers(bert_state(D), n_heads=3)
    with pytest.raises(InvalidInput, match="unknown norm 'fold'"):
        attention_layers(bert_state(D), n_heads=H, norm="fold")  # type: ignore[arg-type]
    spoiled = bert_state(D)
    spoiled["encoder.layer.0.attention.self.key.weight"][0, 0] = torch.nan
    with pytest.raises(InvalidInput, match="must be finite"):
        attention_layers(spoiled, n_heads=H)
    with pytest.raises(ShapeError, match="must have 8 entries"):
        only(bert_state(D), n_heads=H).read(torch.zeros(3, 5, dtype=torch.float64))


@pytest.mark.needs_data
def test_minilm_has_its_known_radii_and_symmetric_shares(data_dir: Path) -> None:
    layers = attention_layers(data_dir / "weights" / "minilm_l6_attention.safetensors", n_heads=12).layers
    radii = [float(torch.linalg.eigvals(layer.value_sum).abs().max()) for layer in layers]
    assert radii == pytest.approx([1.2380, 1.9589, 1.6552, 1.9544, 1.8035, 1.5375], abs=1e-4)
    couplings = [layer.couplings.sum(dim=0) for layer in layers]
    shares = [float((m + m.mT).norm() / (2 * m.norm())) for m in couplings]
    assert shares == pytest.approx([0.8382, 0.9055, 0.8895, 0.8875, 0.8388, 0.7917], abs=1e-4)


@pytest.mark.parametrize("content", [b"name:x:0:0:none\n" * 3, b"", b"\x80\x05garbage", b"PK\x03\x04", b"\xff" * 64])
def test_a_file_that_holds_no_tensors_is_refused_in_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="is not a plain collection of tensors"):
        attention_layers(path)
