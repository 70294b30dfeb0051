"""The networks of the bench, small and plain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def mlp(widths: list[int], act: Callable[[], nn.Module] = nn.ReLU, norm: Any = None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(a, b), *([norm(b)] if norm else []), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


def he(model: nn.Module, gain: float = 1.0) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            module.weight.data.mul_(gain)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


class ResidualMLP(nn.Module):
    def __init__(self, width: int, depth: int, classes: int, kind: str = "norm") -> None:
        super().__init__()
        self.enter = nn.Linear(20, width)
        self.up = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.gates = nn.ParameterList(torch.zeros(()) for _ in range(depth)) if "rezero" in kind else None
        self.head = nn.Linear(width, classes)
        if "zero_last" in kind:
            for layer in self.down:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
        if "zero_head" in kind:
            nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for i, (norm, up, down) in enumerate(zip(self.norms, self.up, self.down, strict=True)):
            branch = down(F.relu(up(norm(x))))
            x = x + (branch if self.gates is None else self.gates[i] * branch)
        return self.head(x)


class StandardConv(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        mean, std = self.weight.mean((1, 2, 3), keepdim=True), self.weight.std((1, 2, 3), keepdim=True)
        return F.conv2d(x, (self.weight - mean) / (std * math.sqrt(self.weight[0].numel())), self.bias, padding=1)


class ConvNet(nn.Module):
    def __init__(self, kind: str, width: int, depth: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for _ in range(depth):
            conv: nn.Module = (StandardConv if kind == "standard" else nn.Conv2d)(channels, width, 3, padding=1)
            layers.append(conv)
            if kind == "bn":
                layers.append(nn.BatchNorm2d(width))
            if kind == "standard":
                layers.append(nn.GroupNorm(4, width))
            layers.append(nn.ReLU())
            if kind == "bottleneck":
                layers += [nn.Conv2d(width, width // 4, 1), nn.BatchNorm2d(width // 4), nn.Conv2d(width // 4, width, 1)]
                layers += [nn.BatchNorm2d(width), nn.ReLU()]
            if kind == "separable":
                layers += [nn.Conv2d(width, width, 3, padding=1, groups=width), nn.Conv2d(width, width, 1)]
                layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean((2, 3)))


class ResidualConv(nn.Module):
    def __init__(self, width: int, depth: int, classes: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            last = nn.BatchNorm2d(width)
            nn.init.zeros_(last.weight)
            self.blocks.append(
                nn.Sequential(
                    nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                    nn.Conv2d(width, width, 3, padding=1, bias=False), last,
                )
            )  # fmt: skip
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Recurrent(nn.Module):
    def __init__(self, kind: str, width: int, layers: int, classes: int, *, batch_first: bool = True) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(8, width, layers, batch_first=batch_first)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class CellLoop(nn.Module):
    def __init__(self, width: int, classes: int, cut: int = 0) -> None:
        super().__init__()
        self.cell, self.head, self.width, self.cut = nn.RNNCell(8, width), nn.Linear(width, classes), width, cut
        nn.init.orthogonal_(self.cell.weight_hh)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), self.width)
        for t in range(x.shape[1]):
            if self.cut and t and t % self.cut == 0:
                h = h.detach()
            h = self.cell(x[:, t], h)
        return self.head(h)


class StateSpace(nn.Module):
    """A diagonal recurrence with decays in an interval."""

    def __init__(self, width: int, classes: int, low: float, high: float) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(8, width), nn.Linear(width, width)
        self.decay = nn.Parameter(torch.empty(width).uniform_(low, high))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        u, h = self.enter(x), 0.0
        for t in range(u.shape[1]):
            h = self.decay * h + u[:, t]
        return self.head(F.relu(self.leave(h)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, kind: str = "plain", axis: int = -1) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.heads, self.kind, self.axis = heads, kind, axis

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        n, length, width = x.shape
        q, k, v = (f(x).view(n, length, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.kind == "fused":
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else ~mask)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(mask, -math.inf if self.axis == -1 else -1e9)
            y = scores.softmax(self.axis) @ v
        return self.o(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, kind: str, order: str, axis: int = -1) -> None:
        super().__init__()
        self.attention = Attention(width, heads, kind, axis)
        self.ffn = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.order = order
        if order != "bare":
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.order == "bare":
            return self.ffn(self.attention(x, mask))
        if self.order == "post":
            x = self.n1(x + self.attention(x, mask))
            return self.n2(x + self.ffn(x))
        x = x + self.attention(self.n1(x), mask)
        return x + self.ffn(self.n2(x))


class Former(nn.Module):
    """A small transformer on tokens; per token (language) or pooled (classes)."""

    def __init__(
        self, width: int, depth: int, *, order: str = "pre", causal: bool = False, tied: bool = False,
        kind: str = "plain", classes: int = 0, std: float | None = 0.02, axis: int = -1, heads: int = 4,
    ) -> None:  # fmt: skip
        super().__init__()
        self.table = nn.Embedding(40, width)
        self.places = nn.Parameter(0.02 * torch.randn(64, width))
        self.blocks = nn.ModuleList(Block(width, heads, kind, order, axis) for _ in range(depth))
        self.last = nn.LayerNorm(width) if order != "bare" else nn.Identity()
        self.head = nn.Linear(width, classes or 40, bias=False)
        self.causal, self.classes, self.masks = causal, classes, [causal] * depth
        if std is not None:
            for module in self.modules():
                if isinstance(module, nn.Linear | nn.Embedding):
                    nn.init.normal_(module.weight, std=std)
        if tied:
            self.head.weight = self.table.weight

    def mask(self, length: int, layer: int) -> Tensor | None:
        return torch.ones(length, length, dtype=torch.bool).triu(1) if self.masks[layer] else None

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x) + self.places[: x.shape[1]]
        for i, block in enumerate(self.blocks):
            h = block(h, self.mask(x.shape[1], i))
        h = self.last(h)
        return self.head(h.mean(1) if self.classes else h)


class TorchFormer(nn.Module):
    def __init__(self, width: int, depth: int, *, norm_first: bool, classes: int = 0) -> None:
        super().__init__()
        self.table, self.classes = nn.Embedding(40, width), classes
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=norm_first, dropout=0.1)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes or 40)

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(self.table(x))
        return self.head(h.mean(1) if self.classes else h)


class SharedDepth(nn.Module):
    def __init__(self, width: int, times: int, classes: int) -> None:
        super().__init__()
        self.enter, self.layer, self.norm = nn.Linear(20, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.head, self.times = nn.Linear(width, classes), times

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for _ in range(self.times):
            x = x + F.relu(self.layer(self.norm(x)))
        return self.head(x)


class Equilibrium(nn.Module):
    def __init__(self, width: int, gain: float, classes: int, steps: int = 40) -> None:
        super().__init__()
        self.enter, self.layer, self.head = nn.Linear(20, width), nn.Linear(width, width), nn.Linear(width, classes)
        nn.init.orthogonal_(self.layer.weight, gain)
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(self.steps):
                z = torch.tanh(self.layer(z) + u)
        return self.head(torch.tanh(self.layer(z) + u))


class Experts(nn.Module):
    def __init__(self, width: int, count: int, classes: int) -> None:
        super().__init__()
        self.router = nn.Linear(20, count)
        self.experts = nn.ModuleList(mlp([20, width, classes]) for _ in range(count))
        self.router.bias.data[-1] = -100.0  # this one is never chosen

    def forward(self, x: Tensor) -> Tensor:
        weight, best = self.router(x).softmax(-1).max(-1)
        y = x.new_zeros(len(x), self.experts[0][-1].out_features)
        for i, expert in enumerate(self.experts):
            chosen = best == i
            if chosen.any():
                y = y.index_put((chosen.nonzero()[:, 0],), weight[chosen, None] * expert(x[chosen]))
        return y


class Lora(nn.Module):
    def __init__(self, a: int, b: int, rank: int, *, both_zero: bool = False) -> None:
        super().__init__()
        self.base = nn.Linear(a, b)
        self.base.requires_grad_(False)
        self.a = nn.Parameter(torch.zeros(rank, a) if both_zero else torch.randn(rank, a) / a**0.5)
        self.b = nn.Parameter(torch.zeros(b, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.a.T @ self.b.T


class Functional(nn.Module):
    """No module owns a weight: everything is a function of parameters in a list."""

    def __init__(self, widths: list[int], *, linear_at: int = -1) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(a, b) * math.sqrt(2 / a) for a, b in itertools.pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths[1:])
        self.linear_at = linear_at

    def forward(self, x: Tensor) -> Tensor:
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ w + b
            if i < len(self.weights) - 1 and i != self.linear_at:
                x = x.clamp(min=0)
        return x


class TwoHeads(nn.Module):
    """Nested outputs, two inputs by name."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(20, width), nn.Linear(6, width)
        self.logits, self.value = nn.Linear(width, classes), nn.Linear(width, 1)

    def forward(self, a: Tensor, b: Tensor) -> dict[str, Any]:
        h = F.relu(self.left(a) + self.right(b))
        return {"aux": {"value": self.value(h)}, "heads": ({"logits": self.logits(h)}, None)}


class Autoencoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 5))
        self.up = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 20))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.down(x)
        return self.up(z), z


def train(model: nn.Module, x: Tensor, y: Tensor, steps: int, lr: float = 3e-3) -> nn.Module:
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        f = model(x)
        F.cross_entropy(f.flatten(0, -2), y.flatten()).backward()
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return model
