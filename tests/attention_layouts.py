"""Small attention modules written by hand, one for each layout of names, each with a forward of its own.

None of them shares code with the readers: heads are cut by slices in a loop, as each layout's model does it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

D, H = 12, 3
E = D // H


def at(path: str, **modules: nn.Module) -> nn.Module:
    """A module that holds others below a path: ``at("h.0", attn=...)``."""
    place: nn.Module = nn.Module()
    top = place
    for part in filter(None, path.split(".")):
        child = nn.Module()
        place.add_module(part, child)
        place = child
    for name, module in modules.items():
        place.add_module(name, module)
    return top.double()


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with every parameter drawn, gains and biases included."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


class Handwritten(nn.Module):
    """Attention as its model computes it: ``rows`` gives the queries, keys and values of one head."""

    causal = False
    scale: float | None = None

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        raise NotImplementedError

    def leave(self, mixed: Tensor) -> Tensor:
        raise NotImplementedError

    def logits(self, x: Tensor) -> Tensor:
        """(heads, n, n) for tokens (n, d)."""
        scale = 1 / math.sqrt(E) if self.scale is None else self.scale
        return torch.stack([scale * q @ k.T for q, k, _ in (self.rows(x, head) for head in range(H))])

    def attend(self, x: Tensor) -> Tensor:
        logits = self.logits(x)
        if self.causal:
            n = len(x)
            logits = logits.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        heads = [torch.softmax(logits[head], -1) @ self.rows(x, head)[2] for head in range(H)]
        return self.leave(torch.cat(heads, dim=-1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.attend(item) for item in x])


def of_head(x: Tensor, head: int) -> Tensor:
    return x[:, head * E : (head + 1) * E]


class Conv1D(nn.Module):
    """x W + b with W (in, out), as GPT-2 keeps it."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(n_in, n_out)), nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class GPT2(Handwritten):
    causal = True

    def __init__(self, linear: Callable[[int, int], nn.Module] = Conv1D) -> None:
        super().__init__()
        self.c_attn, self.c_proj = linear(D, 3 * D), linear(D, D)

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.c_attn(x).split(D, dim=-1)
        return of_head(q, head), of_head(k, head), of_head(v, head)

    def leave(self, mixed: Tensor) -> Tensor:
        return self.c_proj(mixed)


class BigCode(GPT2):
    """One key and one value for all heads."""

    def __init__(self) -> None:
        super().__init__(nn.Linear)
        self.c_attn = nn.Linear(D, D + 2 * E)

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.c_attn(x).split((D, E, E), dim=-1)
        return of_head(q, head), k, v


class Separate(Handwritten):
    """q_proj, k_proj, v_proj and an output, keys and values shared by groups of heads."""

    def __init__(
        self, out: str = "o_proj", *, n_kv: int = H, bias: bool = False, causal: bool = True, scale: float | None = None
    ) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(D, n * E, bias=bias) for n in (H, n_kv, n_kv))
        self.add_module(out, nn.Linear(D, D, bias=bias))
        self.out, self.n_kv, self.causal, self.scale = out, n_kv, causal, scale

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        group = head * self.n_kv // H
        return of_head(self.q_proj(x), head), of_head(self.k_proj(x), group), of_head(self.v_proj(x), group)

    def leave(self, mixed: Tensor) -> Tensor:
        return self.get_submodule(self.out)(mixed)


class T5(Handwritten):
    scale = 1.0

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.causal = causal

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        return of_head(self.q(x), head), of_head(self.k(x), head), of_head(self.v(x), head)

    def leave(self, mixed: Tensor) -> Tensor:
        return self.o(mixed)


class NeoX(Handwritten):
    """Per head: its query, its key, its value."""

    causal = True

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value, self.dense = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        joint = self.query_key_value(x)[:, 3 * E * head : 3 * E * (head + 1)]
        return joint[:, :E], joint[:, E : 2 * E], joint[:, 2 * E :]

    def leave(self, mixed: Tensor) -> Tensor:
        return self.dense(mixed)


class Falcon(NeoX):
    """All queries of a group of heads, then its key, then its value; one group is the multi-query kind."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(D, D + 2 * groups * E, bias=False)
        self.dense = nn.Linear(D, D, bias=False)
        self.groups = groups

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        per = H // self.groups
        joint = self.query_key_value(x).reshape(len(x), self.groups, per + 2, E)
        group, place = divmod(head, per)
        return joint[:, group, place], joint[:, group, per], joint[:, group, per + 1]


class Fused(Handwritten):
    """All queries, all keys, all values in the rows of one matrix, under names of choice."""

    def __init__(self, joint: str, out: str, *, n_kv: int = H, bias: bool = True, causal: bool = False) -> None:
        super().__init__()
        self.add_module(joint, nn.Linear(D, (H + 2 * n_kv) * E, bias=bias))
        self.add_module(out, nn.Linear(D, D, bias=bias))
        self.names, self.n_kv, self.causal = (joint, out), n_kv, causal

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.get_submodule(self.names[0])(x).split((D, self.n_kv * E, self.n_kv * E), dim=-1)
        group = head * self.n_kv // H
        return of_head(q, head), of_head(k, group), of_head(v, group)

    def leave(self, mixed: Tensor) -> Tensor:
        return self.get_submodule(self.names[1])(mixed)


class Dotted(Handwritten):
    """BERT, ViT and DistilBERT: projections one level down, under names of choice."""

    def __init__(self, inner: str, query: tuple[str, str, str], outer: str, out: str) -> None:
        super().__init__()
        for place, names in ((inner, query), (outer, (out,))):
            holder = self if not place else nn.Module()
            for name in names:
                holder.add_module(name, nn.Linear(D, D))
            if place:
                self.add_module(place, holder)
        self.parts = [f"{inner}.{name}".lstrip(".") for name in query], f"{outer}.{out}".lstrip(".")

    def rows(self, x: Tensor, head: int) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (of_head(self.get_submodule(name)(x), head) for name in self.parts[0])
        return q, k, v

    def leave(self, mixed: Tensor) -> Tensor:
        return self.get_submodule(self.parts[1])(mixed)


class RMSNorm(nn.Module):
    """Division by the root mean square, times the gain, which Gemma keeps less one."""

    def __init__(self, added: float = 0.0) -> None:
        super().__init__()
        self.weight, self.added = nn.Parameter(torch.zeros(D)), added

    def forward(self, x: Tensor) -> Tensor:
        return (self.added + self.weight) * x / x.square().mean(-1, keepdim=True).sqrt()


def layer_norm(*, bias: bool = True) -> nn.LayerNorm:
    return nn.LayerNorm(D, eps=0.0, bias=bias)


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, where its attention and the norm before it stand, and what a reader must be told."""

    model: nn.Module
    attention: str
    norm: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=lambda: {"n_heads": H})
    note: str = ""

    @property
    def own(self) -> Handwritten:
        found = self.model.get_submodule(self.attention)
        assert isinstance(found, Handwritten)
        return found

    def before(self, stream: Tensor) -> Tensor:
        """What attention is given of the residual stream."""
        return stream if self.norm is None else self.model.get_submodule(self.norm)(stream)


def _case(path: str, attention: str, norm: str | None = None, **options: Any) -> Any:
    def build(own: Handwritten, ahead: nn.Module | None = None, note: str = "", **others: nn.Module) -> Case:
        members = {attention.split(".")[0]: at(".".join(attention.split(".")[1:-1]), **{attention.split(".")[-1]: own})}
        members = {attention: own} if "." not in attention else members
        members |= {} if ahead is None or norm is None else {norm: ahead}
        model = filled(at(path, **members, **others))
        names = {} if "n_heads" in options else {"n_heads": H}
        found = f"{path}.{attention}".lstrip(".")
        return Case(model, found, None if norm is None else f"{path}.{norm}".lstrip("."), {**names, **options}, note)

    return build


CASES: dict[str, Callable[[], Case]] = {
    "GPT-2": lambda: _case("transformer.h.0", "attn", "ln_1")(GPT2(), layer_norm()),
    "nanoGPT": lambda: _case("transformer.h.0", "attn", "ln_1")(GPT2(nn.Linear), layer_norm()),
    "nanoGPT without biases": lambda: _case("transformer.h.0", "attn", "ln_1")(
        GPT2(lambda n, m: nn.Linear(n, m, bias=False)), layer_norm(bias=False)
    ),
    "GPT-BigCode": lambda: _case("transformer.h.0", "attn", "ln_1")(BigCode(), layer_norm()),
    "Llama": lambda: _case("model.layers.0", "self_attn", "input_layernorm")(Separate(), RMSNorm(), "rotat"),
    "Llama, one key for all": lambda: _case("model.layers.0", "self_attn", "input_layernorm")(
        Separate(n_kv=1), RMSNorm(), "rotat"
    ),
    "Phi": lambda: _case("model.layers.0", "self_attn", "input_layernorm")(
        Separate("dense", bias=True), layer_norm(), "rotat"
    ),
    "Phi-3": lambda: _case("model.layers.0", "self_attn", "input_layernorm")(
        Fused("qkv_proj", "o_proj", n_kv=1, bias=False, causal=True), RMSNorm(), "rotat"
    ),
    "GPT-J": lambda: _case("transformer.h.0", "attn", "ln_1")(Separate("out_proj"), layer_norm(), "rotat"),
    "GPT-Neo": lambda: _case("transformer.h.0", "attn.attention", "ln_1")(
        Separate("out_proj", scale=1.0), layer_norm()
    ),
    "BART encoder": lambda: _case("model.encoder.layers.0", "self_attn")(Separate("out_proj", bias=True, causal=False)),
    "BART decoder": lambda: _case("model.decoder.layers.0", "self_attn")(Separate("out_proj", bias=True)),
    "CLIP, images": lambda: _case("vision_model.encoder.layers.0", "self_attn", "layer_norm1")(
        Separate("out_proj", bias=True, causal=False), layer_norm()
    ),
    "T5 encoder": lambda: _case("encoder.block.0.layer.0", "SelfAttention", "layer_norm")(
        T5(causal=False), RMSNorm(), "relative position bias"
    ),
    "T5 decoder": lambda: _case("decoder.block.0.layer.0", "SelfAttention", "layer_norm")(
        T5(causal=True), RMSNorm(), "relative position bias"
    ),
    "GPT-NeoX": lambda: _case("gpt_neox.layers.0", "attention", "input_layernorm")(NeoX(), layer_norm(), "rotat"),
    "BLOOM": lambda: _case("transformer.h.0", "self_attention", "input_layernorm")(NeoX(), layer_norm(), "ALiBi"),
    "Falcon, one key for all": lambda: _case("transformer.h.0", "self_attention", "input_layernorm")(
        Falcon(1), layer_norm(), "rotat"
    ),
    "Falcon, a key per head": lambda: _case("transformer.h.0", "self_attention", "ln_attn")(
        Falcon(H), layer_norm(), "rotat"
    ),
    "ViT": lambda: _case("vit.encoder.layer.0", "attention", "layernorm_before")(
        Dotted("attention", ("query", "key", "value"), "output", "dense"), layer_norm()
    ),
    "timm ViT": lambda: _case("blocks.0", "attn", "norm1", causal=False)(Fused("qkv", "proj"), layer_norm()),
    "BERT": lambda: _case("bert.encoder.layer.0", "attention")(
        Dotted("self", ("query", "key", "value"), "output", "dense")
    ),
    "DistilBERT": lambda: _case("transformer.layer.0", "attention")(
        Dotted("", ("q_lin", "k_lin", "v_lin"), "", "out_lin")
    ),
}
