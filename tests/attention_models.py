"""Made-up attention blocks in the layouts of known models, each with the output its own code computes."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def draw(*shape: int, seed: int) -> Tensor:
    """Numbers that are the same in every run: some tests need a layer that rests, and the seed was chosen for it."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bert_state(d: int = 8, layer: int = 0, seed: int = 0) -> dict[str, Tensor]:
    base = f"encoder.layer.{layer}.attention."
    state = {}
    for i, part in enumerate(("self.query", "self.key", "self.value", "output.dense")):
        state[f"{base}{part}.weight"] = draw(d, d, seed=seed + 2 * i) / math.sqrt(d)
        state[f"{base}{part}.bias"] = draw(d, seed=seed + 2 * i + 1)
    state[f"{base}output.LayerNorm.weight"] = 1 + 0.1 * draw(d, seed=seed + 50)
    state[f"{base}output.LayerNorm.bias"] = 0.1 * draw(d, seed=seed + 51)
    return state


def gpt2_state(d: int = 8, layer: int = 0, seed: int = 0) -> dict[str, Tensor]:
    base = f"h.{layer}."
    return {
        f"{base}ln_1.weight": 1 + 0.2 * draw(d, seed=seed),
        f"{base}ln_1.bias": 0.2 * draw(d, seed=seed + 1),
        f"{base}attn.c_attn.weight": draw(d, 3 * d, seed=seed + 2) / math.sqrt(d),
        f"{base}attn.c_attn.bias": draw(3 * d, seed=seed + 3),
        f"{base}attn.c_proj.weight": draw(d, d, seed=seed + 4) / math.sqrt(d),
        f"{base}attn.c_proj.bias": draw(d, seed=seed + 5),
    }


def llama_state(d: int = 8, n_heads: int = 4, n_kv: int = 2, seed: int = 0) -> dict[str, Tensor]:
    base, size = "model.layers.0.", d // n_heads
    return {
        f"{base}input_layernorm.weight": 1 + 0.2 * draw(d, seed=seed),
        f"{base}self_attn.q_proj.weight": draw(d, d, seed=seed + 1) / math.sqrt(d),
        f"{base}self_attn.k_proj.weight": draw(n_kv * size, d, seed=seed + 2) / math.sqrt(d),
        f"{base}self_attn.v_proj.weight": draw(n_kv * size, d, seed=seed + 3) / math.sqrt(d),
        f"{base}self_attn.o_proj.weight": draw(d, d, seed=seed + 4) / math.sqrt(d),
    }


def attend(q: Tensor, k: Tensor, v: Tensor, n_heads: int, *, causal: bool) -> Tensor:
    """Attention by torch's own fused function, (n, d) each, heads side by side."""
    apart = [x.unflatten(-1, (n_heads, -1)).transpose(0, 1).unsqueeze(0) for x in (q, k, v)]
    mixed = torch.nn.functional.scaled_dot_product_attention(*apart, is_causal=causal)
    return mixed[0].transpose(0, 1).flatten(1)
