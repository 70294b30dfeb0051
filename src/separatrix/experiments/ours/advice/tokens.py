"""Networks of tokens: attention that must find something, masks, ties."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from separatrix.core import spawn

from .lessons import Data, Lesson, adam, drawn_from, share_right

WIDTH, KEYS, VALUES, SLOTS = 32, 8, 6, 5


def recall(seed: int, n: int = 1200) -> tuple[Data, Data]:
    """Pairs (key, value) as one token each, then a key alone: which value stood beside it? Needs attention."""
    generator = spawn(seed, "check-advice", "recall")

    def draw(count: int) -> Data:
        keys = torch.stack([torch.randperm(KEYS, generator=generator)[:SLOTS] for _ in range(count)])
        values = torch.randint(VALUES, (count, SLOTS), generator=generator)
        asked = torch.randint(SLOTS, (count,), generator=generator)
        rows = torch.arange(count)
        tokens = torch.cat([keys * VALUES + values, KEYS * VALUES + keys[rows, asked][:, None]], 1)
        return tokens, values[rows, asked]

    return draw(n), draw(600)


class _Reader(nn.Module):
    """Transformer blocks over tokens; the last position answers."""

    def __init__(self, n_layers: int, *, residual: bool = True, sharp: float = 1.0, axis: int = -1) -> None:
        super().__init__()
        self.table = nn.Embedding(KEYS * VALUES + KEYS, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(n_layers))
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(n_layers))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(n_layers))
        self.up = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(n_layers))
        self.down = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(n_layers))
        self.head = nn.Linear(WIDTH, VALUES)
        self.residual, self.sharp, self.axis = residual, sharp, axis

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for norm, qkv, out, up, down in zip(self.norms, self.qkv, self.out, self.up, self.down, strict=True):
            q, k, v = qkv(norm(x)).chunk(3, -1)
            scores = self.sharp * q @ k.transpose(-1, -2) / math.sqrt(WIDTH)
            y = out(scores.softmax(self.axis) @ v)
            x = x + y if self.residual else y
            y = down(torch.relu(up(x)))
            x = x + y if self.residual else y
        return self.head(x[:, -1])


def reader(n_layers: int, n_steps: int, **faults: object) -> Callable[[int, bool], Lesson]:
    """A reader with a fault; mended: without it."""

    def lesson(seed: int, mended: bool) -> Lesson:
        with drawn_from(seed, "weights"):
            model = _Reader(n_layers, **({} if mended else faults))  # type: ignore[arg-type]
        return Lesson(model, *recall(seed), adam(3e-3), n_steps)

    return lesson


VOCABULARY, SPAN = 12, 16


def walks(seed: int, n: int = 500) -> tuple[Data, Data]:
    """A token's successor is one of three, drawn: the next token cannot be known, only looked up by who sees it."""
    generator = spawn(seed, "check-advice", "walks")
    ways = torch.randint(VOCABULARY, (VOCABULARY, 3), generator=generator)

    def draw(count: int) -> Data:
        at = torch.randint(VOCABULARY, (count,), generator=generator)
        steps = [at]
        for _ in range(SPAN):
            at = ways[at, torch.randint(3, (count,), generator=generator)]
            steps.append(at)
        sequence = torch.stack(steps, 1)
        return sequence[:, :-1], sequence[:, 1:]

    return draw(n), draw(300)


class _Speaker(nn.Module):
    """Two causal blocks, of which the second may see the future."""

    def __init__(self, leak: bool, tied: bool, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(SPAN, WIDTH)
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(2))
        self.head, self.leak = nn.Linear(WIDTH, vocabulary, bias=False), leak
        nn.init.normal_(self.table.weight, std=0.3)
        nn.init.normal_(self.places.weight, std=0.3)
        with torch.no_grad():
            self.head.weight.copy_(self.table.weight)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.table(tokens) + self.places.weight[:length]
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        for layer, (qkv, up, down) in enumerate(zip(self.qkv, self.up, self.down, strict=True)):
            q, k, v = qkv(x).chunk(3, -1)
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH)
            if not (self.leak and layer == 1):
                scores = scores.masked_fill(future, -math.inf)
            x = x + scores.softmax(-1) @ v
            x = x + down(torch.relu(up(x)))
        return self.head(x)


def _as_used(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share right when, as in use, nothing follows the position that is asked."""
    return sum(share_right(model(x[:, : t + 1])[:, -1], y[:, t]) for t in range(3, SPAN)) / (SPAN - 3)


def leak(seed: int, mended: bool) -> Lesson:
    """The second block sees the future; mended: both are masked. Tested without a future to look at."""
    with drawn_from(seed, "weights"):
        model = _Speaker(leak=not mended, tied=True)
    return Lesson(model, *walks(seed), adam(3e-3), 200, batch=32, score=_as_used)


def broken_tie(seed: int, mended: bool) -> Lesson:
    """A head that holds a copy of the embeddings; mended: tied."""
    train, test = walks(seed, n=40)
    with drawn_from(seed, "weights"):
        model = _Speaker(leak=False, tied=mended)
    return Lesson(model, train, test, adam(1e-3), 200, batch=32)
