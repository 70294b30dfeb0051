"""Maps whose equilibria are known; ``judged_maps`` has the rules by which solvers are judged on them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
Formula = Callable[..., Tensor]


@dataclasses.dataclass(frozen=True)
class Draw:
    """Random numbers for a batch of maps: every row has its own."""

    stream: torch.Generator
    dim: int
    rows: int
    dtype: torch.dtype

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(self.rows, *shape, generator=self.stream, dtype=torch.float64)

    def between(self, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(self.rows, 1, generator=self.stream, dtype=torch.float64)

    def power(self, low: float, high: float) -> Tensor:
        return torch.as_tensor(10 ** self.between(low, high))

    def matrix(self, norm: Tensor | float) -> Tensor:
        entries = self.normal(self.dim, self.dim)
        scale = torch.as_tensor(norm, dtype=torch.float64).expand(self.rows, 1) / torch.linalg.matrix_norm(
            entries, ord=2
        ).unsqueeze(-1)
        return entries * scale.unsqueeze(-1)

    def rotation(self) -> Tensor:
        return torch.linalg.qr(self.normal(self.dim, self.dim))[0]

    def symmetric(self, eigenvalues: Tensor) -> Tensor:
        basis = self.rotation()
        return basis @ torch.diag_embed(eigenvalues) @ basis.mT

    def inputs(self) -> Tensor:
        return self.normal(self.dim) * self.power(-2, 2)


@dataclasses.dataclass(frozen=True)
class KnownMap:
    """A formula f(z, *parameters), where to start, and starts from which Newton finds the equilibria (or None)."""

    kind: str
    formula: Formula
    parameters: tuple[Tensor, ...]
    start: Tensor
    hints: tuple[Tensor, ...] | None

    def __call__(self, z: Tensor) -> Tensor:
        return self.formula(z, *(value.to(z.dtype) for value in self.parameters))

    def exact(self, z: Tensor) -> Tensor:
        """The formula in double precision, with the parameters that the dtype holds."""
        return self.formula(z, *(value.to(self.start.dtype).double() for value in self.parameters))

    def equilibria(self) -> list[Tensor]:
        """All known equilibria, each (rows, d)."""
        return [] if self.hints is None else [self._polished(hint.double()) for hint in self.hints]

    def jacobian(self, z: Tensor) -> Tensor:
        """(rows, d, d) at z, in double precision; rows do not depend on each other."""
        point = z.detach().requires_grad_()
        image = self.exact(point)
        units = torch.eye(z.shape[1], dtype=torch.float64).unsqueeze(1).expand(-1, *z.shape)
        (rows,) = torch.autograd.grad(image, point, units, is_grads_batched=True, allow_unused=True)
        return torch.zeros(*z.shape, z.shape[1], dtype=torch.float64) if rows is None else rows.movedim(0, 1)

    def gain(self, z: Tensor) -> Tensor:
        """|(I - J)^-1| at z, per row."""
        identity = torch.eye(z.shape[1], dtype=torch.float64)
        smallest = torch.linalg.svdvals(identity - self.jacobian(z))[:, -1]
        return 1 / smallest.clamp_min(1e-300)

    def _polished(self, z: Tensor) -> Tensor:
        identity, last = torch.eye(z.shape[1], dtype=torch.float64), torch.full(z.shape[:1], torch.inf)
        for _ in range(60):
            step = torch.linalg.solve(identity - self.jacobian(z), self.exact(z) - z)
            z, size = (z + step).detach(), step.detach().norm(dim=1)
            if bool(((size <= 1e-15 * z.norm(dim=1)) | (size >= 0.9 * last)).all()):  # the rest is rounding
                break
            last = size
        residual = (self.exact(z) - z).norm(dim=1)
        size = torch.maximum(z.norm(dim=1), self.exact(torch.zeros_like(z)).norm(dim=1))
        assert bool((residual <= 1e-11 * size + 1e-300).all()), (self.kind, residual, size)
        return z


# ---- kinds used in development


def contraction(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return _affine, (draw.matrix(draw.between(0.05, 0.9)), draw.inputs()), "zero"


def slow(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    radius = 1 - draw.power(-4.5, -1.5)
    eigenvalues = radius * torch.rand(draw.rows, draw.dim, generator=draw.stream, dtype=torch.float64)
    eigenvalues[:, :1] = radius
    return _affine, (draw.symmetric(eigenvalues), draw.inputs()), "zero"


def stretched(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    eigenvalues = torch.linspace(-0.98, 0.98, draw.dim, dtype=torch.float64).expand(draw.rows, -1)
    return _affine, (draw.symmetric(eigenvalues), draw.inputs()), "zero"


def huge(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return _affine, (draw.matrix(draw.between(0.05, 0.9)), draw.power(4, 12) * draw.inputs()), "zero"


def repelling(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    eye = torch.eye(draw.dim, dtype=torch.float64)
    return _affine, (-draw.between(1.1, 3).unsqueeze(-1) * eye, draw.inputs()), "zero"


def at_zero(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return _affine, (draw.matrix(draw.between(0.1, 0.95)), torch.zeros(draw.rows, draw.dim)), "zero"


def tanh_at_zero(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return _tanh, (draw.matrix(draw.between(0.1, 0.95)), torch.zeros(draw.rows, draw.dim)), "zero"


def tanh(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return _tanh, (draw.matrix(draw.between(0.1, 0.95)), draw.inputs()), "picard"


def period_two(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return lambda z, slope: -slope * torch.tanh(z), (draw.between(1.2, 3),), "zero"


def no_softplus(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return lambda z, x: functional.softplus(z) + x, (draw.inputs().abs() + 1e-3,), None


def no_shift(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return lambda z, x: z + x, (draw.inputs().abs() + 0.1,), None


def no_residual(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    parameters = (draw.matrix(1.0), draw.inputs().abs() + 0.1)
    return lambda z, weight, x: z + (1.5 + torch.tanh(_times(weight, z))) * x, parameters, None


def no_root(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    return lambda z, x: torch.sqrt(z.square() + x.square() + 1e-2), (draw.inputs(),), None


DEVELOPMENT: dict[str, Callable[[Draw], tuple[Formula, tuple[Tensor, ...], Any]]] = {
    kind.__name__: kind
    for kind in (
        contraction, slow, stretched, huge, repelling, at_zero, tanh_at_zero, tanh, period_two,
        no_softplus, no_shift, no_residual, no_root,
    )
}  # fmt: skip


# ---- kinds on which nothing was chosen


def residual_mlp(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """z + h (W2 tanh(W1 z + b) + x - z): a residual cell with a small step, contracting by 1 - h (1 - |W2||W1|)."""
    product = draw.between(0.1, 0.9)
    parameters = (draw.matrix(1.0), draw.matrix(product), draw.normal(draw.dim), draw.inputs(), draw.between(0.05, 1))
    return _residual_mlp, parameters, "picard"


def softplus_net(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """W softplus(V z + b) + x with |W||V| below one, so that there is one equilibrium."""
    parameters = (draw.matrix(1.0), draw.matrix(draw.between(0.1, 0.97)), draw.normal(draw.dim), draw.inputs())
    return _softplus_net, parameters, "picard"


def rational(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """M (z / (1 + z^2)) + x, whose slope is at most |M| < 1."""
    parameters = (draw.matrix(draw.between(0.1, 0.97)), draw.inputs())
    return lambda z, weight, x: _times(weight, z / (1 + z.square())) + x, parameters, "picard"


def newton_root(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """(|z| + x / |z|) / 2 with x > 0, whose only equilibrium is the positive root of x."""
    x = draw.inputs().abs() + 0.1
    return lambda z, x: (z.abs() + x / z.abs()) / 2, (x,), ("given", [x.to(draw.dtype).double().sqrt()], None)


def non_normal(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A rotation of modulus below one plus a strong feedforward part, in a rotated basis."""
    radius = 1 - draw.power(-2.5, -0.3)
    triangle = torch.triu(draw.normal(draw.dim, draw.dim), 1) * draw.between(0.5, 3).unsqueeze(-1) / draw.dim**0.5
    blocks = _rotations(draw, radius)
    basis = draw.rotation()
    return _affine, (basis @ (blocks + triangle) @ basis.mT, draw.inputs()), "zero"


def layer_norm(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """M (h - mean h) / sqrt(var h + 1) + x for h = z: normalisation with |M| below one half, so it contracts."""
    parameters = (draw.matrix(draw.between(0.05, 0.5)), draw.inputs())
    return _layer_norm, parameters, "picard"


def saddle_node(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A pair of equilibria beside a fold, one attracting: gap + (u - c)^2 with a negative gap drives one unit u."""
    gap, c = -_gap(draw), draw.between(1, 5)
    held_gap, held_c = (value.to(draw.dtype).double() for value in (gap, c))
    hints = [_beside_the_fold(draw, held_c, sign * (-held_gap).sqrt()) for sign in (-1, 1)]
    return _fold, (c, gap, draw.between(0.05, 0.3)), ("given", hints, c)


def ghost(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """The same with a positive gap, at least 30 times the rounding of the state: nothing is there, but it is slow."""
    gap, c = _gap(draw), draw.between(1, 5)
    return _fold, (c, gap, draw.between(0.05, 0.3)), ("none", [], c)


def no_mlp(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """z + s softplus(W2 tanh(W1 z + b)): a residual network that pushes every unit upwards, for ever."""
    parameters = (draw.matrix(2.0), draw.matrix(2.0), draw.normal(draw.dim), draw.between(0.01, 2))
    return _pushing_mlp, parameters, None


def no_swish(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """z sigmoid(z) + x with x beyond 0.3: silu(z) - z is at least -0.2785 for positive z and positive for negative."""
    return lambda z, x: functional.silu(z) + x, (draw.inputs().abs() + 0.3,), None


FRESH: dict[str, Callable[[Draw], tuple[Formula, tuple[Tensor, ...], Any]]] = {
    kind.__name__: kind
    for kind in (
        residual_mlp, softplus_net, rational, newton_root, non_normal, layer_norm, saddle_node, ghost, no_mlp, no_swish,
    )
}  # fmt: skip


# ---- what a stranger would try


def ghost_pair(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """Two units each beside a fold, the first with equilibria, the second without."""
    c = draw.between(1, 5)
    return _two_folds, (c, -_gap(draw), _gap(draw), draw.between(0.05, 0.3)), ("none", [], c)


def hidden_ghost(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A ghost in one direction of a state of thirty-odd, turned out of the axes; the rest contracts."""
    wide = dataclasses.replace(draw, dim=draw.dim + 30)
    c = draw.between(1, 5)
    return _turned_fold, (wide.rotation(), c, _gap(draw), draw.between(0.05, 0.3)), ("wide", [], c)


def flat_ghost(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A bottleneck of fourth order: z + s (gap + (z - c)^4)."""
    c = draw.between(1, 5)
    return lambda z, c, gap, step: z + step * (gap + (z - c) ** 4), (c, _gap(draw), draw.between(0.05, 0.3)), (
        "none", [], c,
    )  # fmt: skip


def far_ghost(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A ghost of unit width at a hundred million: far narrower than a relative tolerance resolves."""
    c = draw.between(0.5, 1) * 1e8
    width = 1e8 * torch.finfo(draw.dtype).eps ** 0.5
    parameters = (c.to(draw.dtype), draw.between(1, 10) * width, draw.between(0.05, 0.3))
    return lambda z, c, w, step: z + step * (w + (z - c).square() / w), parameters, ("none", [], c)


def jump(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """Drawn towards c from both sides, and thrown back just before it is reached."""
    c = draw.between(1, 5)
    parameters = (c, draw.between(0.1, 0.9), _gap(draw))
    return _jump, parameters, ("none", [], c)


def transient(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """Eigenvalues up to 0.6 behind a feedforward part of norm up to 100."""
    diagonal = torch.diag_embed(draw.normal(draw.dim).clamp(-1, 1) * 0.6)
    triangle = torch.triu(draw.normal(draw.dim, draw.dim), 1) * draw.power(0, 2).unsqueeze(-1) / draw.dim**0.5
    basis, eye = draw.rotation(), torch.eye(draw.dim, dtype=torch.float64)
    for _ in range(20):  # as the dtype holds them, some have no equilibrium, or a line of them: these are no truth
        weight = basis @ (diagonal + triangle) @ basis.mT
        least = torch.linalg.svdvals(eye - weight.to(draw.dtype).double())[:, -1]
        triangle = torch.where((least < 1e-9)[:, None, None], triangle / 2, triangle)
    return _affine, (weight, draw.inputs()), "zero"


def very_slow(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """0.9999 z + x in every unit, or as near to one as the dtype comes."""
    eye = torch.eye(draw.dim, dtype=torch.float64).expand(draw.rows, -1, -1)
    return _affine, ((1 - max(1e-4, torch.finfo(draw.dtype).eps)) * eye, draw.inputs()), "zero"


def far_off(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A contraction onto a point at a hundred million."""
    weight, point = draw.matrix(draw.between(0.05, 0.9)), 1e8 * draw.normal(draw.dim)
    return _affine, (weight, point - _times(weight, point)), "zero"


def tiny_gain(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A map that hardly looks at its state."""
    return lambda z, w, x: 1e-8 * torch.tanh(_times(w, z)) + x, (draw.matrix(1.0), draw.inputs()), "picard"


def forbidden(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A contraction that is not a number where the first unit exceeds its equilibrium, or zero, by a tenth of it."""
    weight, x = draw.matrix(draw.between(0.05, 0.8)), draw.inputs()
    held, eye = weight.to(draw.dtype).double(), torch.eye(draw.dim, dtype=torch.float64)
    rest = torch.linalg.solve(eye - held, x.to(draw.dtype).double().unsqueeze(-1)).squeeze(-1)
    limit = rest[:, :1].clamp_min(0) + 0.1 * rest.norm(dim=1, keepdim=True)
    return _forbidden, (weight, x, limit), "zero"


def relu_at_zero(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """relu(W z): its equilibrium, zero, lies on every kink."""
    return lambda z, w: torch.relu(_times(w, z)), (draw.matrix(draw.between(0.1, 0.95)),), "zero"


def relu_net(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """W relu(V z + b) + x with |W||V| below one."""
    parameters = (draw.matrix(1.0), draw.matrix(draw.between(0.1, 0.97)), draw.normal(draw.dim), draw.inputs())
    return lambda z, v, w, b, x: _times(w, torch.relu(_times(v, z) + b)) + x, parameters, "picard"


STRANGE: dict[str, Callable[[Draw], tuple[Formula, tuple[Tensor, ...], Any]]] = {
    kind.__name__: kind
    for kind in (
        ghost_pair, hidden_ghost, flat_ghost, far_ghost, jump, transient, very_slow, far_off, tiny_gain, forbidden,
        relu_at_zero, relu_net,
    )
}  # fmt: skip


# ---- a slow direction that nothing excites


def line_of_rest(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """All but a line of equilibria: one eigenvalue is one but for anything from rounding up, z* is of ordinary size."""
    weight, point = _with_one_slow_direction(draw, math.log10(0.5)), draw.inputs()
    return _affine, (weight, point - _times(weight, point)), "zero"


def line_through_zero(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """The same without input: from a start on the line hardly anything moves, and the equilibrium is zero."""
    return _affine, (_with_one_slow_direction(draw, math.log10(0.5)), torch.zeros(draw.rows, draw.dim)), "zero"


def line_driven(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """The same with any input, which drives the state as far along the line as rounding can tell."""
    return _affine, (_with_one_slow_direction(draw, -2.0), draw.inputs()), "zero"


def slow_mode(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """A normal map of radius 0.3 to 0.95 but for one mode, along which z* is as far from the start as it is large."""
    basis, radius = draw.rotation(), draw.between(0.3, 0.95)
    blocks = _rotations(draw, radius)
    blocks[:, -1], blocks[:, :, -1] = 0.0, 0.0  # what stood there was half of a pair, or a block by itself
    if draw.dim % 2 == 0:
        blocks[:, -2, -2] = radius.squeeze(1)
    blocks[:, -1, -1] = 1 - _slowness(draw).squeeze(1)
    point = _far_along(draw, basis[:, :, -1])
    weight = (basis @ blocks @ basis.mT).to(draw.dtype).double()
    return _affine, (weight, point - _times(weight, point)), "zero"


def slow_mode_of_many(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """The same in a random map, which is not normal: right and left vector of the mode differ."""
    weight, right, left, slowness = _random_but_for_one_mode(draw)
    weight = (weight + (1 - slowness).unsqueeze(-1) * right.unsqueeze(2) * left.unsqueeze(1)).to(draw.dtype).double()
    point = _far_along(draw, right)
    return _affine, (weight, point - _times(weight, point)), "zero"


def slow_mode_of_a_net(draw: Draw) -> tuple[Formula, tuple[Tensor, ...], Any]:
    """The same where all others pass through tanh."""
    weight, right, left, slowness = _random_but_for_one_mode(draw)
    point = _far_along(draw, right)
    return _slow_net, (weight, right, left, slowness, point), ("given", [point], None)


HIDDEN: dict[str, Callable[[Draw], tuple[Formula, tuple[Tensor, ...], Any]]] = {
    kind.__name__: kind
    for kind in (line_of_rest, line_through_zero, line_driven, slow_mode, slow_mode_of_many, slow_mode_of_a_net)
}


def _slowness(draw: Draw) -> Tensor:
    """From 1e-9, or what the dtype can tell from none, to 1e-3, or a decade above it."""
    least = math.log10(torch.finfo(draw.dtype).eps) + 0.5
    return draw.power(max(-9.0, least), max(-3.0, least + 1.0))


def _random_but_for_one_mode(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A matrix of radius 0.3 to 0.95 that does nothing to one mode, the right and left vector of it, its slowness."""
    right, aside = (functional.normalize(draw.normal(draw.dim), dim=-1) for _ in range(2))
    left = right + draw.between(0, 1) * (aside - (aside * right).sum(-1, keepdim=True) * right)
    outside = torch.eye(draw.dim, dtype=torch.float64) - right.unsqueeze(2) * left.unsqueeze(1)
    weight = draw.normal(draw.dim, draw.dim) * draw.between(0.3, 0.95).unsqueeze(-1) / draw.dim**0.5
    return outside @ weight @ outside, right, left, _slowness(draw)


def _far_along(draw: Draw, mode: Tensor) -> Tensor:
    """A point whose part along a mode is 0.3 to 3 times the rest."""
    rest = draw.inputs()
    return rest + draw.between(0.3, 3) * rest.norm(dim=1, keepdim=True) * mode


def _slow_net(z: Tensor, weight: Tensor, right: Tensor, left: Tensor, slowness: Tensor, point: Tensor) -> Tensor:
    away = z - point
    along = (left * away).sum(-1, keepdim=True)
    return z - slowness * along * right + _times(weight, torch.tanh(away - along * right)) - (away - along * right)


def _with_one_slow_direction(draw: Draw, most: float) -> Tensor:
    """Eigenvalues within 0.8 but for one, behind a feedforward part, as the dtype holds them."""
    least = math.log10(torch.finfo(draw.dtype).eps)
    eigenvalues = 0.8 * draw.normal(draw.dim).clamp(-1, 1)
    eigenvalues[:, :1] = 1 - draw.power(least + 0.5, max(most, least + 1.5))
    triangle = torch.triu(draw.normal(draw.dim, draw.dim), 1) * draw.between(0, 2).unsqueeze(-1) / draw.dim**0.5
    basis = draw.rotation()
    weight = (basis @ (torch.diag_embed(eigenvalues) + triangle) @ basis.mT).to(draw.dtype).double()
    eye = torch.eye(draw.dim, dtype=torch.float64)
    for _ in range(60):  # as the dtype holds them, some have no equilibrium, or a line of them: these are no truth
        least_size = torch.linalg.svdvals(eye - weight)[:, -1]
        if bool((least_size >= 1e-14).all()):
            break
        weight = torch.where((least_size < 1e-14)[:, None, None], (0.99 * weight).to(draw.dtype).double(), weight)
    return weight


def known_maps(kind: str, dtype: torch.dtype, dim: int, rows: int, seed: int) -> KnownMap:
    """So many maps of one kind, one in each row of a batch; half of the starts are zero."""
    draw = Draw(torch.Generator().manual_seed(seed), dim, rows, dtype)
    formula, parameters, hint = {**DEVELOPMENT, **FRESH, **STRANGE, **HIDDEN}[kind](draw)
    start = _start(draw, kind, hint)
    known = KnownMap(kind, formula, tuple(value.double() for value in parameters), start, None)
    return dataclasses.replace(known, hints=_hints(known, hint))


def batches(
    kinds: Iterable[str], dims: Iterable[int], rows: int, seed: int, dtypes: Iterable[torch.dtype] = DTYPES
) -> Iterator[KnownMap]:
    """Every kind in every precision and dimension."""
    for number, (kind, dtype, dim) in enumerate(itertools.product(kinds, DTYPES, dims)):
        if dtype in dtypes:
            yield known_maps(kind, dtype, dim, rows, seed + number)


def _start(draw: Draw, kind: str, hint: Any) -> Tensor:
    zero = (torch.arange(draw.rows) % 2 == 0).unsqueeze(1)
    start = torch.where(zero, 0.0, draw.normal(draw.dim))
    if kind == "newton_root":
        start = start.abs() + 0.5  # it is not defined at zero
    if isinstance(hint, tuple) and hint[0] == "wide":
        start = torch.zeros(draw.rows, draw.dim + 30, dtype=torch.float64)
    elif isinstance(hint, tuple) and hint[-1] is not None:  # folds: start below, from where the motion leads to them
        start = hint[-1] - (start.abs() + 0.5) * hint[-1].clamp_min(5) / 5
    return start.to(draw.dtype)


def _hints(known: KnownMap, hint: Any) -> tuple[Tensor, ...] | None:
    zero = torch.zeros(known.start.shape, dtype=torch.float64)
    if hint is None or (isinstance(hint, tuple) and hint[0] in ("none", "wide")):
        return None
    if hint == "zero":
        return (zero,)
    if hint == "picard":
        z = zero
        for _ in range(600):
            z = known.exact(z)
        return (z,)
    return tuple(hint[1])


def _affine(z: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    return _times(weight, z) + x


def _times(weight: Tensor, z: Tensor) -> Tensor:
    """Every row's matrix times its state."""
    return torch.bmm(weight, z.unsqueeze(-1)).squeeze(-1)


def _tanh(z: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(_times(weight, z)) + x


def _residual_mlp(z: Tensor, inner: Tensor, outer: Tensor, bias: Tensor, x: Tensor, step: Tensor) -> Tensor:
    return z + step * (_times(outer, torch.tanh(_times(inner, z) + bias)) + x - z)


def _softplus_net(z: Tensor, inner: Tensor, outer: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    return _times(outer, functional.softplus(_times(inner, z) + bias)) + x


def _pushing_mlp(z: Tensor, inner: Tensor, outer: Tensor, bias: Tensor, step: Tensor) -> Tensor:
    return z + step * functional.softplus(_times(outer, torch.tanh(_times(inner, z) + bias)))


def _layer_norm(z: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    centred = z - z.mean(-1, keepdim=True)
    return _times(weight, centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1)) + x


def _fold(z: Tensor, c: Tensor, gap: Tensor, step: Tensor) -> Tensor:
    """The first unit moves through the fold; the others follow it."""
    first = z[..., :1]
    through = first + step * (gap + (first - c).square())
    return torch.where(torch.arange(z.shape[-1]) == 0, through, c + 0.5 * (z - c) + 0.25 * (first - c))


def _two_folds(z: Tensor, c: Tensor, gap: Tensor, other: Tensor, step: Tensor) -> Tensor:
    """The first unit has its fold at gap, the last one at the other; a single unit has that alone."""
    unit = torch.arange(z.shape[-1])
    which = torch.where(unit == z.shape[-1] - 1, other, gap)
    folds = z + step * (which + (z - c).square())
    return torch.where((unit == 0) | (unit == z.shape[-1] - 1), folds, c + 0.5 * (z - c))


def _turned_fold(z: Tensor, basis: Tensor, c: Tensor, gap: Tensor, step: Tensor) -> Tensor:
    turned = _times(basis.mT, z)
    first = turned[..., :1] - c
    unit = torch.arange(z.shape[-1])
    return _times(basis, torch.where(unit == 0, c + first + step * (gap + first.square()), 0.5 * turned + 0.1))


def _jump(z: Tensor, c: Tensor, rate: Tensor, gap: Tensor) -> Tensor:
    return torch.where(z < c, z + rate * (c - z) + gap, z - 1 - gap)


def _forbidden(z: Tensor, weight: Tensor, x: Tensor, limit: Tensor) -> Tensor:
    return torch.where(z[..., :1] > limit, torch.nan, _affine(z, weight, x))


def _beside_the_fold(draw: Draw, c: Tensor, offset: Tensor) -> Tensor:
    point = (c + 0.5 * offset).expand(draw.rows, draw.dim).clone()
    point[:, :1] = c + offset
    return point


def _gap(draw: Draw) -> Tensor:
    """Between 30 times the rounding of a state of size ten and one."""
    return draw.power(math.log10(300 * torch.finfo(draw.dtype).eps), 0)


def _rotations(draw: Draw, radius: Tensor) -> Tensor:
    blocks = torch.zeros(draw.rows, draw.dim, draw.dim, dtype=torch.float64)
    for k in range(0, draw.dim - 1, 2):
        angle = draw.between(0, math.pi)
        cosine, sine = (radius * angle.cos()).squeeze(1), (radius * angle.sin()).squeeze(1)
        blocks[:, k, k], blocks[:, k, k + 1] = cosine, -sine
        blocks[:, k + 1, k], blocks[:, k + 1, k + 1] = sine, cosine
    if draw.dim % 2:
        blocks[:, -1, -1] = (radius * draw.between(-1, 1)).squeeze(1)
    return blocks
