"""Networks of sequences and of iterated maps: memory, growth, cuts, axes, rest points."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from separatrix.core import spawn

from .lessons import Data, Lesson, adam, drawn_from
from .vectors import CLASSES, INPUTS, clusters

HIDDEN, FEATURES, LENGTH, KINDS = 32, 6, 24, 4


def early_signal(seed: int, n: int = 800, length: int = LENGTH) -> tuple[Data, Data]:
    """Which of four patterns was shown in the first six steps, with noise in all: needs memory of 18 steps."""
    generator = spawn(seed, "check-advice", "early signal")
    patterns = torch.randn(KINDS, 6, FEATURES, generator=generator)

    def draw(count: int) -> Data:
        y = torch.randint(KINDS, (count,), generator=generator)
        x = 0.5 * torch.randn(count, length, FEATURES, generator=generator)
        x[:, :6] += patterns[y]
        return x, y

    return draw(n), draw(n)


class _Recurrent(nn.Module):
    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.core, self.head = core, nn.Linear(HIDDEN, KINDS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.core(x)[0][:, -1])


def forget_bias(before: float | None) -> Callable[[int, bool], Lesson]:
    """An LSTM with this forget bias, or torch's default; mended: +2."""

    def lesson(seed: int, mended: bool) -> Lesson:
        with drawn_from(seed, "weights"):
            core = nn.LSTM(FEATURES, HIDDEN, batch_first=True)
            model = _Recurrent(core)
        value = 2.0 if mended else before
        if value is not None:
            _fill(core, "bias_hh_l0", value)
            _fill(core, "bias_ih_l0", 0.0)
        return Lesson(model, *early_signal(seed), adam(3e-3))

    return lesson


def _fill(core: nn.LSTM, name: str, value: float) -> None:
    """Set the part of a bias that belongs to the forget gate."""
    core.get_parameter(name).data[HIDDEN : 2 * HIDDEN] = value


def recurrent_scale(factor: float) -> Callable[[int, bool], Lesson]:
    """A tanh RNN whose recurrent matrix is orthogonal times ``factor``; mended: orthogonal."""

    def lesson(seed: int, mended: bool) -> Lesson:
        with drawn_from(seed, "weights"):
            core = nn.RNN(FEATURES, HIDDEN, batch_first=True)
            model = _Recurrent(core)
            nn.init.orthogonal_(core.get_parameter("weight_hh_l0"), 1.0 if mended else factor)
        return Lesson(model, *early_signal(seed), adam(1e-3))

    return lesson


class _Diagonal(nn.Module):
    """h_t = a h_{t-1} + B x_t with a kept inside the given interval at the start."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(HIDDEN).uniform_(low, high))
        self.enter, self.head = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, KINDS)

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        h = torch.zeros_like(u[:, 0])
        for step in range(u.shape[1]):
            h = self.a * h + u[:, step]
        return self.head(h)


def diagonal(length: int) -> Callable[[int, bool], Lesson]:
    """A diagonal state-space layer whose multipliers lie above one; mended: between .8 and .99."""

    def lesson(seed: int, mended: bool) -> Lesson:
        with drawn_from(seed, "weights"):
            model = _Diagonal(0.8, 0.99) if mended else _Diagonal(1.05, 1.25)
        return Lesson(model, *early_signal(seed, length=length), adam(3e-3))

    return lesson


class _Loop(nn.Module):
    """A tanh cell in a loop over time that may be detached every few steps."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.cell, self.head, self.every = nn.RNNCell(FEATURES, HIDDEN), nn.Linear(HIDDEN, KINDS), every
        nn.init.orthogonal_(self.cell.weight_hh)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), HIDDEN)
        for step in range(x.shape[1]):
            if self.every and step and step % self.every == 0:
                h = h.detach()
            h = self.cell(x[:, step], h)
        return self.head(h)


def cut_in_time(seed: int, mended: bool) -> Lesson:
    """The state is detached every three steps; mended: it is not."""
    with drawn_from(seed, "weights"):
        model = _Loop(every=0 if mended else 3)
    return Lesson(model, *early_signal(seed), adam(1e-3))


def forgotten_batch_first(seed: int, mended: bool) -> Lesson:
    """A GRU that runs along the samples; mended: ``batch_first=True``."""
    with drawn_from(seed, "weights"):
        model = _Recurrent(nn.GRU(FEATURES, HIDDEN, batch_first=mended))
    return Lesson(model, *early_signal(seed), adam(3e-3))


class _Rest(nn.Module):
    """z = tanh(W z + u) iterated without a graph, then one step with it."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.enter, self.inner = nn.Linear(INPUTS, HIDDEN), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.head = nn.Linear(HIDDEN, CLASSES)
        nn.init.orthogonal_(self.inner.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(40):
                z = torch.tanh(self.inner(z) + u)
        return self.head(torch.tanh(self.inner(z) + u))


def no_rest(seed: int, mended: bool) -> Lesson:
    """An equilibrium layer above its critical scale; mended: scaled by .7 / 3, below it."""
    with drawn_from(seed, "weights"):
        model = _Rest(0.7 if mended else 3.0)
    return Lesson(model, *clusters(seed), adam(3e-3))
