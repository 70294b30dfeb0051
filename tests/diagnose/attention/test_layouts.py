"""Every layout against a small module written by hand: logits per head, values per head, and the whole output."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attention_layouts import CASES, D, E, H, RMSNorm, Separate, at, filled, layer_norm
from separatrix.core import InvalidInput
from separatrix.diagnose import AttentionLayer, attention_layers

N = 5


def only(source: Any, **options: Any) -> AttentionLayer:
    (layer,) = attention_layers(source, **options).layers
    return layer


def stream(generator: torch.Generator) -> Tensor:
    return 2.0 * torch.randn(N, D, generator=generator, dtype=torch.float64) + 0.5


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("as_module", [False, True], ids=["tensors", "module"])
def test_a_layout_is_read_as_its_own_forward_computes(name: str, as_module: bool, generator: torch.Generator) -> None:
    case = CASES[name]()
    layer = only(case.model if as_module else case.model.state_dict(), **case.options)
    x = stream(generator)
    tokens, own = layer.read(x), case.own
    assert layer.causal == own.causal
    assert case.note in layer.note
    # logits: M_h and the bias of the queries; a bias of the keys adds a constant to each row
    expected = own.logits(case.before(x)).detach()
    logits = torch.einsum("id,hde,je->hij", tokens, layer.couplings, tokens)
    if layer.query_bias is not None:
        logits = (
            logits + layer.logit_scale * torch.einsum("he,hed,jd->hj", layer.query_bias, layer.key, tokens)[:, None]
        )
    assert torch.allclose(logits - logits[..., :1], expected - expected[..., :1], atol=1e-10)
    # values: what one token alone adds, head by head
    for head in range(H):
        mixed = torch.zeros(N, D, dtype=torch.float64)
        mixed[:, head * E : (head + 1) * E] = own.rows(case.before(x), head)[2].detach()
        nothing = own.leave(torch.zeros(N, D, dtype=torch.float64)).detach()
        added = own.leave(mixed).detach() - nothing
        bias = 0.0 if layer.value_bias is None else layer.output[head] @ layer.value_bias[head]
        assert torch.allclose(tokens @ layer.values[head].mT + bias, added, atol=1e-10)
    whole = own(case.before(x).unsqueeze(0))[0].detach()
    assert torch.allclose(layer.update(tokens), whole, atol=1e-9)


def test_gemma_adds_one_to_its_gains_and_scales_by_its_own_number(tmp_path: Path, generator: torch.Generator) -> None:
    model = filled(at("model.layers.0", self_attn=Separate(scale=7.0**-0.5), input_layernorm=RMSNorm(1.0)))
    config = {"model_type": "gemma", "num_attention_heads": H, "query_pre_attn_scalar": 7.0}
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    x = stream(generator)
    block = model.get_submodule("model.layers.0")
    expected = block.self_attn(block.input_layernorm(x).unsqueeze(0))[0].detach()
    layer = only(tmp_path / "model.safetensors")
    assert torch.allclose(layer.update(layer.read(x)), expected, atol=1e-10)
    model.config = config  # the module shows its norm by itself, and its settings the scale
    layer = only(model)
    assert torch.allclose(layer.update(layer.read(x)), expected, atol=1e-10)
    bare = only(model.state_dict(), n_heads=H)
    assert "Gemma adds one" in bare.note


def cross(name: str, inner: str) -> dict[str, Tensor]:
    return {f"{name}.{inner}": torch.eye(D), f"{name}.k_proj.weight": torch.eye(D)}


UNREADABLE: dict[str, tuple[dict[str, Tensor], dict[str, Any], str]] = {
    "BART across sequences": (cross("model.decoder.layers.0.encoder_attn", "q_proj.weight"), {}, "another sequence"),
    "BERT across sequences": (
        cross("bert.encoder.layer.0.crossattention", "self.query.weight"), {}, "another sequence",
    ),
    "T5 across sequences": (cross("decoder.block.0.layer.1.EncDecAttention", "q.weight"), {}, "another sequence"),
    "torch across sequences": (cross("decoder.layers.0.multihead_attn", "in_proj_weight"), {}, "another sequence"),
    "normalised queries": ({"q_norm.weight": torch.ones(E)}, {}, "queries or keys are normalised (q_norm.weight)"),
    "normalised keys": ({"k_layernorm.weight": torch.ones(E)}, {}, "queries or keys are normalised"),
    "a sink": ({"sinks": torch.ones(H)}, {}, "tensors that its layout does not have: sinks"),
    "an adapter": ({"q_proj.lora_A.weight": torch.ones(2, D)}, {}, "layout does not have: q_proj.lora_A.weight"),
    "a table of biases": ({"relative_position_bias_table": torch.ones(3, H)}, {}, "a bias by position"),
    "soft-capped logits": ({}, {"attn_logit_softcapping": 50.0}, "logits are capped"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_is_not_read_is_named_with_its_reason(what: str, tmp_path: Path) -> None:
    added, config, reason = UNREADABLE[what]
    block = "model.layers.0.self_attn"
    state = dict(filled(at(block.rpartition(".")[0], self_attn=Separate())).state_dict())
    apart = any(("." in name and "attn" in name) or "attention" in name.lower() for name in added)
    state |= {name if apart else f"{block}.{name}": tensor.double() for name, tensor in added.items()}
    save_file(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": H, **config}))
    if apart:  # the attention of the tokens to themselves is still read
        found = attention_layers(tmp_path / "model.safetensors")
        assert [layer.name for layer in found.layers] == [block]
        assert list(found.skipped.values()) == [f"it attends to {reason}, so its tokens are not one flow"]
        return
    with pytest.raises(InvalidInput) as refused:
        attention_layers(tmp_path / "model.safetensors")
    assert f"{block}: " in str(refused.value)
    assert reason in str(refused.value)


def test_names_of_gemma_2_are_refused_unless_its_settings_are_known(tmp_path: Path) -> None:
    norms = {"input_layernorm": RMSNorm(), "pre_feedforward_layernorm": RMSNorm()}
    state = filled(at("model.layers.0", self_attn=Separate(), **norms)).state_dict()
    with pytest.raises(InvalidInput, match="caps its logits"):
        attention_layers(state, n_heads=H)
    save_file(state, tmp_path / "model.safetensors")
    settings = {"num_attention_heads": H, "model_type": "gemma2", "attn_logit_softcapping": None}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert only(tmp_path / "model.safetensors").causal


def test_a_layer_whose_mask_no_name_tells_must_be_told() -> None:
    case = CASES["timm ViT"]()
    with pytest.raises(InvalidInput, match="pass causal="):
        attention_layers(case.model.state_dict(), n_heads=H)
    seen = dict(case.model.state_dict()) | {"patch_embed.proj.weight": torch.zeros(D, 3, 2, 2)}
    assert not only(seen, n_heads=H).causal
    assert not only(case.model, n_heads=H).causal  # its forward tells


class Blind(Separate):
    """Names of Llama, and a forward that says nothing of tokens alone."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:  # type: ignore[override]
        raise ValueError("positions are needed")


class Cosine(Separate):
    """Names of Llama, and logits of normalised queries and keys."""

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().rows(x, head)
        return nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1), v


class TanhValues(Separate):
    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().rows(x, head)
        return q, k, v.tanh()


@pytest.mark.parametrize("kind", [Cosine, TanhValues])
def test_a_module_that_computes_something_else_than_its_names_say_is_not_read(kind: type[Separate]) -> None:
    model = filled(at("model.layers", **{"0": at("", self_attn=kind()), "1": at("", self_attn=Separate())}))
    found = attention_layers(model, n_heads=H)
    assert [layer.name for layer in found.layers] == ["model.layers.1.self_attn"]
    assert "its own forward computes something else" in found.skipped["model.layers.0.self_attn"]


@pytest.mark.parametrize("causal", [True, False])
def test_the_forward_of_a_module_decides_about_its_mask(causal: bool) -> None:
    llama = filled(at("model.layers.0", self_attn=Separate(causal=causal)))
    assert only(llama, n_heads=H).causal is causal
    assert only(llama, n_heads=H, causal=not causal).causal is not causal  # unless the user says otherwise


class Masked(Separate):
    """Hides the future only if it is told to, as decoders do whose model makes the mask."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        self.causal = attention_mask is not None
        return super().forward(x)


def test_a_mask_that_comes_from_outside_is_not_denied() -> None:
    decoder = only(filled(at("model.decoder.layers.0", self_attn=Masked("out_proj"))), n_heads=H)
    assert decoder.causal
    assert "only if it is given a mask" in decoder.note
    assert not only(filled(at("model.encoder.layers.0", self_attn=Masked("out_proj"))), n_heads=H).causal
    with pytest.raises(InvalidInput, match="neither its names nor its forward tell"):
        attention_layers(filled(at("blocks.0", self_attn=Masked("out_proj"))), n_heads=H)
    assert not only(filled(at("blocks.0", self_attn=Masked("out_proj"))), n_heads=H, causal=False).causal


def test_a_norm_without_bias_is_asked_or_not_folded() -> None:
    case = CASES["timm ViT"]()
    for norm in (RMSNorm(), layer_norm(bias=False)):
        model = filled(at("blocks.0", attn=case.own, norm1=norm))
        with pytest.raises(InvalidInput, match="do not tell whether it centres tokens"):
            attention_layers(model.state_dict(), **case.options)
        assert only(model.state_dict(), norm="keep", **case.options).reads_through is None
        seen = only(model, **case.options).reads_through
        assert seen is not None
        assert seen.centred == isinstance(norm, nn.LayerNorm)


def test_a_forward_that_cannot_be_called_is_said_to_be_unchecked() -> None:
    layer = only(filled(at("model.layers.0", self_attn=Blind())), n_heads=H)
    assert "not compared with the model's own forward" in layer.note


def test_a_model_is_left_as_it_was() -> None:
    model = filled(at("h.0", attn=CASES["nanoGPT"]().own, ln_1=layer_norm(), drop=nn.Dropout()))
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    attention_layers(model, n_heads=H)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())


def test_heads_are_found_where_a_module_or_its_settings_name_them(tmp_path: Path) -> None:
    case = CASES["nanoGPT"]()
    with pytest.raises(InvalidInput, match="n_heads must be given"):
        attention_layers(case.model)
    case.own.n_head = H  # as nanoGPT has it
    assert only(case.model).n_heads == H
    decoder = CASES["BART decoder"]()
    save_file(decoder.model.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"encoder_attention_heads": 4, "decoder_attention_heads": H}))
    assert only(tmp_path / "model.safetensors").n_heads == H
    t5 = filled(at("encoder.block.0.layer.0", SelfAttention=CASES["T5 encoder"]().own))
    state = dict(t5.state_dict())
    state["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = torch.zeros(32, H)
    assert only(state).n_heads == H


@pytest.mark.parametrize("lower", [True, False])
def test_a_buffer_for_the_mask_tells_whether_the_future_is_hidden(lower: bool) -> None:
    state = dict(CASES["nanoGPT"]().model.state_dict())
    table = torch.ones(1, 1, 7, 7)
    state["transformer.h.0.attn.bias"] = table.tril() if lower else table
    assert only(state, n_heads=H).causal is lower


def test_decoders_of_torch_are_taken_as_causal_and_say_so() -> None:
    block = nn.TransformerDecoderLayer(D, H, 8, batch_first=True, dtype=torch.float64)
    found = attention_layers(block)
    assert [layer.causal for layer in found.layers] == [True]
    assert "pass causal=False" in found.layers[0].note
    assert found.skipped == {"multihead_attn": "it attends to another sequence, so its tokens are not one flow"}
    stack = nn.TransformerDecoder(block, 2)
    named = {f"decoder.{name}": tensor for name, tensor in stack.state_dict().items()}
    read = attention_layers(named, n_heads=H)
    assert [layer.causal for layer in read.layers] == [True, True]
    assert len(read.skipped) == 2
    assert not only(block, causal=False).causal


def test_layers_of_two_kinds_in_one_model_are_all_found() -> None:
    mixed = filled(
        at("model.layers", **{"0": at("", self_attn=Separate()), "1": at("", mix=nn.MultiheadAttention(D, H))})
    )
    names = [layer.name for layer in attention_layers(mixed, n_heads=H).layers]
    assert names == ["model.layers.0.self_attn", "model.layers.1.mix"]


def test_the_scale_of_layers_that_divide_by_their_number_is_read(tmp_path: Path) -> None:
    state = {name.replace("h.0.", "h.3."): tensor for name, tensor in CASES["GPT-2"]().model.state_dict().items()}
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"n_head": H, "scale_attn_by_inverse_layer_idx": True}))
    plain = only(state, n_heads=H)
    assert only(tmp_path / "model.safetensors").logit_scale == pytest.approx(plain.logit_scale / 4)


def test_what_scales_the_output_of_attention_is_folded(generator: torch.Generator) -> None:
    case = CASES["timm ViT"]()
    gain = torch.linspace(0.1, 2.0, D, dtype=torch.float64)
    state = dict(case.model.state_dict()) | {"blocks.0.ls1.gamma": gain}
    x = stream(generator)
    layer, bare = only(state, **case.options), only(case.model.state_dict(), **case.options)
    assert torch.allclose(layer.update(layer.read(x)), gain * bare.update(bare.read(x)), atol=1e-10)
    assert dataclasses.replace(layer, output=bare.output, output_bias=bare.output_bias).causal is False


def zeros(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {f"h.0.attn.{name.replace('__', '.')}": torch.zeros(shape) for name, shape in shapes.items()}


WHOLE = zeros(c_attn__weight=(12, 4), c_proj__weight=(4, 4))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (zeros(c_attn__weight=(4,), c_proj__weight=(4, 4)), "c_attn.weight must be a matrix"),
        (zeros(c_attn__weight=(0, 0), c_proj__weight=(0, 0)), "c_attn.weight must be a matrix"),
        (zeros(c_attn__weight=(12, 4), c_attn__bias=(5,), c_proj__weight=(4, 4)), "does not fit its weight"),
        (zeros(c_attn__weight=(12, 4), c_attn__bias=(4,), c_proj__weight=(4, 4)), "c_attn has 4 entries for 12 rows"),
        (zeros(c_attn__weight=(5, 4), c_proj__weight=(4, 4)), "is too short for queries"),
        (zeros(qkv__weight=(12,), proj__weight=(4, 4)), "qkv.weight must be a matrix"),
        (zeros(in_proj_weight=(12,), out_proj__weight=(4, 4)), "in_proj_weight must hold queries"),
        (
            zeros(c_attn__weight=(12, 4), c_proj__weight=(4, 4)) | {"h.0.ln_1.weight": torch.ones(3)},
            "3 gains for tokens",
        ),
        (zeros(c_attn__weight=(12, 4), c_proj__weight=(4, 4)) | {"h.0.ln_1.weight": torch.ones(4, 4)}, "one axis"),
    ],
)
def test_tensors_of_other_shapes_are_named(state: dict[str, Tensor], reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        attention_layers(state, n_heads=2, causal=True)
    assert reason in str(refused.value)


class PatchAttention(nn.Module):
    """Attention of a ViT with the names of transformers 5, whose mask, if any, comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.is_causal, self.num_attention_heads = False, 2
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, hidden_states: torch.Tensor, **options: object) -> torch.Tensor:
        q, k, v = (part(hidden_states).unflatten(-1, (2, 4)) for part in (self.q_proj, self.k_proj, self.v_proj))
        weights = torch.einsum("...nhd,...mhd->...hnm", q, k).div(2.0).softmax(-1)
        return self.o_proj(torch.einsum("...hnm,...mhd->...nhd", weights, v).flatten(-2))


class PatchBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layernorm_before, self.attention = nn.LayerNorm(8), PatchAttention()


def test_patches_of_an_image_see_all_others() -> None:
    model = nn.ModuleDict({"layers": nn.ModuleList([PatchBlock()])})
    for found in (attention_layers(model), attention_layers(model.state_dict(), n_heads=2)):
        (layer,) = found.layers
        assert not layer.causal
        assert layer.reads_through is not None
        assert layer.reads_through.centred
        assert "rotary" not in layer.note


class PostNormAttention(nn.Module):
    """Attention of a BERT: the norm behind it is a part of its output."""

    def __init__(self) -> None:
        super().__init__()
        self.num_attention_heads = 2
        self.self = nn.ModuleDict({name: nn.Linear(8, 8) for name in ("query", "key", "value")})
        self.output = nn.ModuleDict({"dense": nn.Linear(8, 8), "LayerNorm": nn.LayerNorm(8)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (self.self[name](x).unflatten(-1, (2, 4)) for name in ("query", "key", "value"))
        weights = torch.einsum("...nhd,...mhd->...hnm", q, k).div(2.0).softmax(-1)
        mixed = torch.einsum("...hnm,...mhd->...nhd", weights, v).flatten(-2)
        return self.output["LayerNorm"](x + self.output["dense"](mixed))


def test_a_norm_that_a_probe_has_seen_does_not_count_as_unread() -> None:
    model = nn.ModuleDict({"layer": nn.ModuleList([nn.ModuleDict({"attention": PostNormAttention()})])})
    (layer,) = attention_layers(model).layers
    assert not layer.causal
    assert layer.writes_through is not None


def test_a_t5_module_is_read_but_for_its_position_bias() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(d_model=8, d_kv=4, num_heads=2, num_layers=2, d_ff=8, vocab_size=9)
    model = transformers.T5EncoderModel(config).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = attention_layers(model)
    assert [layer.name for layer in found.layers] == [f"encoder.block.{k}.layer.0.SelfAttention" for k in (0, 1)]
    assert all("relative position bias" in (layer.note or "") for layer in found.layers)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
