"""Networks of vectors and images: scale, units, structure, losses, steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from separatrix.core import spawn

from .lessons import Data, Lesson, Optimiser, adam, class_loss, drawn_from, sgd

WIDTH, INPUTS, CLASSES = 48, 20, 6


def clusters(seed: int, n: int = 600, classes: int = CLASSES) -> tuple[Data, Data]:
    """Gaussian clusters, three for each class, so that no single linear map separates them."""
    generator = spawn(seed, "check-advice", "clusters")
    centres = 1.6 * torch.randn(3 * classes, INPUTS, generator=generator) / math.sqrt(2)

    def draw(count: int) -> Data:
        which = torch.randint(3 * classes, (count,), generator=generator)
        x = centres[which] + 0.6 * torch.randn(count, INPUTS, generator=generator)
        return x / 1.3, which % classes

    return draw(n), draw(n)


def rings(seed: int, n: int = 800) -> tuple[Data, Data]:
    """The class is the distance from the origin: a task that nothing linear can do."""
    generator = spawn(seed, "check-advice", "rings")

    def draw(count: int) -> Data:
        x = torch.randn(count, 6, generator=generator)
        radius = x.norm(dim=-1)
        limits = torch.tensor([1.78, 2.31, 2.86])  # quartiles of a chi variable with six degrees of freedom
        return x, (radius[:, None] > limits).sum(-1)

    return draw(n), draw(n)


def stack(*sizes: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with activations between them."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), act()]
    return nn.Sequential(*parts[:-1])


def linears(model: nn.Module) -> list[nn.Linear]:
    """The linear layers in order."""
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


def he(model: nn.Module) -> nn.Module:
    """He initialisation with zero biases, as the advice has it."""
    for layer in linears(model):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    return model


def scaled_depth(factor: float, optimiser: Optimiser) -> Callable[[int, bool], Lesson]:
    """Ten ReLU layers whose weights are He times ``factor``; mended: the factor taken out again."""

    def lesson(seed: int, mended: bool) -> Lesson:
        data = clusters(seed)
        with drawn_from(seed, "weights"):
            model = he(stack(INPUTS, *[WIDTH] * 10, CLASSES))
        for layer in linears(model)[:-1]:
            layer.weight.data.mul_(1.0 if mended else factor)
        return Lesson(model, *data, optimiser)

    return lesson


class _Residual(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.relu(layer(norm(x)))
        return self.last(x)


def default_depth(way: str) -> Callable[[int, bool], Lesson]:
    """24 layers with torch's default start; mended by He initialisation, residual blocks or LayerNorm alone."""

    def lesson(seed: int, mended: bool) -> Lesson:
        data = clusters(seed)
        with drawn_from(seed, "weights"):
            model: nn.Module = stack(INPUTS, *[WIDTH] * 24, CLASSES)
            if mended and way == "he":
                he(model)
            elif mended and way == "residual":
                model = _Residual(24)
            elif mended:
                model = _normed(24)
        return Lesson(model, *data, adam(1e-3))

    return lesson


def _normed(depth: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for k in range(depth):
        parts += [nn.Linear(INPUTS if k == 0 else WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(WIDTH, CLASSES))


def dead(seed: int, mended: bool) -> Lesson:
    """A layer whose biases silence it; mended: biases of zero."""
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
    nn.init.constant_(model[0].bias, 0.0 if mended else -15.0)  # type: ignore[arg-type]
    return Lesson(model, *clusters(seed), sgd(0.1))


def saturated(seed: int, mended: bool) -> Lesson:
    """tanh with weights ten times too large; mended: divided by ten."""
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, WIDTH, CLASSES, act=nn.Tanh)
    for layer in linears(model)[:-1]:
        layer.weight.data.mul_(1.0 if mended else 12.0)
    return Lesson(model, *clusters(seed), sgd(0.1))


def symmetric(seed: int, mended: bool) -> Lesson:
    """A layer of equal rows; mended: random rows."""
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, CLASSES)
    if not mended:
        nn.init.constant_(model[0].weight, 0.05)  # type: ignore[arg-type]
        nn.init.zeros_(model[0].bias)  # type: ignore[arg-type]
        nn.init.constant_(model[2].weight, 0.02)  # type: ignore[arg-type]
    return Lesson(model, *clusters(seed), sgd(0.1))


class _Gated(nn.Module):
    """A residual branch behind a gate of zero whose last layer is zero as well, unless ``free``."""

    def __init__(self, free: bool) -> None:
        super().__init__()
        self.first, self.a = nn.Linear(6, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.b, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)
        self.gate = nn.Parameter(torch.zeros(()))
        if not free:
            nn.init.zeros_(self.b.weight)
            nn.init.zeros_(self.b.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.head(x + self.gate * self.b(torch.relu(self.a(x))))


def stuck(seed: int, mended: bool) -> Lesson:
    """Gate and last layer of the only nonlinear branch are zero; mended: one factor is free."""
    with drawn_from(seed, "weights"):
        model = _Gated(free=mended)
    return Lesson(model, *rings(seed), adam(3e-3), n_steps=300)


def unscaled(optimiser: Optimiser) -> Callable[[int, bool], Lesson]:
    """Inputs between 0 and 255; mended: standardised with the training set's mean and deviation."""

    def lesson(seed: int, mended: bool) -> Lesson:
        (x, y), (u, v) = clusters(seed)
        low, high = x.amin(), x.amax()
        x, u = (255 * (part - low) / (high - low) for part in (x, u))
        if mended:
            mean, spread = x.mean(0), x.std(0)
            x, u = (x - mean) / spread, (u - mean) / spread
        with drawn_from(seed, "weights"):
            model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
        return Lesson(model, (x, y), (u, v), optimiser)

    return lesson


def double_softmax(optimiser: Optimiser) -> Callable[[int, bool], Lesson]:
    """A softmax before a loss that has one; mended: removed."""

    def lesson(seed: int, mended: bool) -> Lesson:
        with drawn_from(seed, "weights"):
            model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
        return Lesson(model if mended else nn.Sequential(model, nn.Softmax(-1)), *clusters(seed), optimiser)

    return lesson


def raw_nll(seed: int, mended: bool) -> Lesson:
    """Raw scores into a negative log-likelihood; mended: log-softmax at the end."""
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
    ended = nn.Sequential(model, nn.LogSoftmax(-1)) if mended else model
    return Lesson(ended, *clusters(seed), sgd(0.1), loss=nn.functional.nll_loss)


def loud_head(factor: float, optimiser: Optimiser, n_steps: int = 150) -> Callable[[int, bool], Lesson]:
    """A head ``factor`` times too large; mended: divided by the spread of the scores, as printed."""

    def lesson(seed: int, mended: bool) -> Lesson:
        train, test = clusters(seed)
        with drawn_from(seed, "weights"):
            model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
        head = linears(model)[-1]
        head.weight.data.mul_(factor)
        if mended:
            with torch.no_grad():
                head.weight.data.div_(max(float(model(train[0][:48]).std()), 1.0))
        return Lesson(model, train, test, optimiser, n_steps)

    return lesson


def linear_chain(seed: int, mended: bool) -> Lesson:
    """Layers without activations between them; mended: with."""
    with drawn_from(seed, "weights"):
        model = stack(6, WIDTH, WIDTH, 4, act=nn.ReLU if mended else nn.Identity)
    return Lesson(model, *rings(seed), adam(3e-3), n_steps=300)


def wild_rate(seed: int, mended: bool) -> Lesson:
    """A rate of 100; mended: divided by ten until one step lowers the loss of the first batch."""
    train, test = clusters(seed)
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, WIDTH, CLASSES)
    rate = 100.0
    while mended and not _lowers(model, train, rate):
        rate /= 10
    return Lesson(model, train, test, sgd(rate))


def rate_by_curvature(seed: int, mended: bool) -> Lesson:
    """A rate of 100; mended: one over the largest curvature that the check measures on the first samples."""
    from separatrix.diagnose import diagnose

    lesson = wild_rate(seed, False)
    if mended:
        x, y = (part[:48] for part in lesson.train)
        curvature = diagnose(lesson.model, x, loss=class_loss, target=y, seed=seed).measures["sharpness"]
        lesson.optimiser = sgd(1 / curvature)
    return lesson


def _lowers(model: nn.Module, data: Data, rate: float) -> bool:
    x, y = data[0][:48], data[1][:48]
    before = class_loss(model(x), y)
    slopes = torch.autograd.grad(before, list(model.parameters()))
    with torch.no_grad():
        state = {name: p - rate * g for (name, p), g in zip(model.named_parameters(), slopes, strict=True)}
        return bool(class_loss(torch.func.functional_call(model, state, (x,)), y) < before)


def frozen(seed: int, mended: bool) -> Lesson:
    """The layer in the middle of three does not train; mended: thawed."""
    with drawn_from(seed, "weights"):
        model = stack(INPUTS, WIDTH, WIDTH, WIDTH, CLASSES)
    for parameter in [] if mended else [*model[2].parameters()]:
        parameter.requires_grad_(False)
    return Lesson(model, *clusters(seed), sgd(0.1))


class _Cut(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.body, self.head, self.cut = stack(INPUTS, WIDTH, 12), nn.Linear(12, CLASSES), cut

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.body(x))
        return self.head(h.detach() if self.cut else h)


def cut_off(seed: int, mended: bool) -> Lesson:
    """Everything before the head is detached; mended: connected."""
    with drawn_from(seed, "weights"):
        model = _Cut(cut=not mended)
    return Lesson(model, *clusters(seed), sgd(0.1))


class _Logarithm(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.first, self.last, self.eps = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, CLASSES), eps

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.log(torch.relu(self.first(x)) + self.eps))


def logarithm(seed: int, mended: bool) -> Lesson:
    """The logarithm of a ReLU; mended: eps inside."""
    with drawn_from(seed, "weights"):
        model = _Logarithm(0.1 if mended else 0.0)
    return Lesson(model, *clusters(seed), sgd(0.05))


class _Root(nn.Module):
    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.first, self.last, self.inside = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, CLASSES), inside

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        kept = h.clamp(min=1e-3) if self.inside else h
        return self.last(torch.where(h > 0, torch.sqrt(kept), torch.zeros_like(h)))


def root(seed: int, mended: bool) -> Lesson:
    """where() over the root of negative numbers, whose gradient is 0 times NaN; mended: clamped inside the root."""
    with drawn_from(seed, "weights"):
        model = _Root(inside=mended)
    return Lesson(model, *clusters(seed), sgd(0.05))


def tiny_batch(seed: int, mended: bool) -> Lesson:
    """Batch normalisation over three samples; mended: GroupNorm."""
    train, test = clusters(seed)
    with drawn_from(seed, "weights"):
        norms = [nn.GroupNorm(6, WIDTH) if mended else nn.BatchNorm1d(WIDTH) for _ in range(2)]
        model = nn.Sequential(
            nn.Linear(INPUTS, WIDTH), norms[0], nn.ReLU(), nn.Linear(WIDTH, WIDTH), norms[1], nn.ReLU(),
            nn.Linear(WIDTH, CLASSES),
        )  # fmt: skip
    checked = (train[0][:3], train[1][:3])
    return Lesson(model, train, test, sgd(0.02), n_steps=400, batch=3, checked=checked)


def stale(seed: int, mended: bool) -> Lesson:
    """Trained on standardised inputs, used on inputs of another scale; mended: statistics estimated again on them."""
    train, (u, v) = clusters(seed)
    with drawn_from(seed, "weights"):
        model = nn.Sequential(
            nn.BatchNorm1d(INPUTS), nn.Linear(INPUTS, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, CLASSES),
        )  # fmt: skip
        lesson = Lesson(model, train, (u, v), sgd(0.1))
        optimiser = lesson.optimiser(model)
        for step in range(100):
            rows = torch.arange(64 * step, 64 * step + 64) % len(train[0])
            optimiser.zero_grad()
            class_loss(model(train[0][rows]), train[1][rows]).backward()
            optimiser.step()
        shifted = (6 * train[0] + 9, train[1])
        with torch.no_grad():
            for step in range(60 if mended else 0):
                model(shifted[0][torch.arange(64 * step, 64 * step + 64) % len(shifted[0])])
    return Lesson(model, shifted, (6 * u + 9, v), sgd(0.1), n_steps=0, checked_mode="eval")
