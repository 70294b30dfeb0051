"""Equilibrium layers against torchdeq 0.1.0 at equal gradient error: CPU time of a forward and a backward pass.

Both libraries get the same cell and the same inputs, in float32, on one thread: six dense cells z -> tanh(W z + b) + x,
a transformer block on 128 tokens of width 256, and a convolution at two scales of 32 x 32 images. The loss is linear in
the equilibrium, with random weights: |z|^2 would be degenerate behind a layer norm. The true gradient with respect to x
comes from a copy of the cell in float64, solved to 1e-10. For each library and method the loosest tolerance is
searched, the same for both passes, at which the gradient of every sample is off by at most 1e-3 of its size; errors,
and evaluations forward and back, stand beside the times. Ours runs as it stands, with its estimate of the error and its
certificate, and once more without both, stopped by the residual as theirs is, which tells what they cost; theirs with
its hook-based implicit gradient, the faster of the two it offers. Ours looks for slow directions at a few of its
solves (the first, the second, the fourth and so on): medians and counts are those of the others.

Usage: python benchmarks/deq.py [--quick]; writes benchmarks/results/deq.json. Some minutes.
"""

from __future__ import annotations

import bisect
import copy
import dataclasses
import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from rows import Row, compared, interleaved, main, mean_row, missing, worst_row
from torch import Tensor, nn

from separatrix.core import use_backend
from separatrix.core.arithmetic.backend import Backend, has_numba
from separatrix.dynamics import Anderson, Broyden
from separatrix.nn import DEQ, Implicit, TanhCell, TransformerCell

TARGET = 1e-3
TOLERANCES = [1e-2 * 2 ** (-k / 2) for k in range(27)]
MAX_STEPS = 100
RESIDUAL = "anderson stopped by its residual"
OURS: dict[str, Callable[..., Any]] = {
    "anderson": Anderson, "broyden": Broyden, RESIDUAL: functools.partial(Anderson, stop="residual"),
}  # fmt: skip
CONTESTANTS: tuple[tuple[str, Backend, float | None], ...] = (
    ("anderson", "numba", 0.5), ("anderson", "torch", 0.58), ("broyden", "numba", 0.25), ("broyden", "torch", 0.25),
    (RESIDUAL, "numba", None), (RESIDUAL, "torch", None),
)  # fmt: skip
"""Method, arithmetic, and the goal of the geometric mean over the dense cases."""
GOAL_DENSE, GOAL_LARGE = 0.8, 1.0

Step = Callable[[Tensor], Tensor]
"""From the input to the output of a layer, with gradients."""


class TwoScales(nn.Module):
    """A convolution at two resolutions that feed each other; the state is one row per sample."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.shapes = ((channels, 32, 32), (2 * channels, 16, 16))
        self.sizes = [a * b * c for a, b, c in self.shapes]
        self.fine = nn.Conv2d(channels, channels, 3, padding=1)
        self.coarse = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.up = nn.Conv2d(2 * channels, channels, 1)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        fine, coarse = (part.view(-1, *shape) for part, shape in zip(z.split(self.sizes, 1), self.shapes, strict=True))
        from_coarse = nn.functional.interpolate(self.up(coarse), scale_factor=2.0)
        new = (torch.tanh(self.fine(fine) + from_coarse), torch.tanh(self.coarse(coarse) + self.down(fine)))
        return torch.cat([part.flatten(1) for part in new], 1) + x


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    cell: nn.Module
    x: Tensor
    dense: bool

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(2)
        object.__setattr__(self, "weights", torch.randn(self.x.shape, generator=generator))

    def gradient(self, step: Step) -> Tensor:
        """Of the loss with respect to the input, through one training step without the optimiser."""
        x = self.x.clone().requires_grad_()
        self.cell.zero_grad()
        (step(x) * self.weights).sum().backward()  # type: ignore[attr-defined]
        assert x.grad is not None
        return x.grad

    def true_gradient(self) -> Tensor:
        cell = copy.deepcopy(self.cell).double()
        precise = Anderson(tol=1e-10, max_steps=3000)
        x = self.x.double().requires_grad_()
        z = DEQ(cell, solver=precise, backward=Implicit(solver=precise), on_fail="raise")(x)
        (gradient,) = torch.autograd.grad((z * self.weights.double()).sum(), x)  # type: ignore[attr-defined]
        return gradient


def cases(quick: bool) -> Iterator[Case]:
    dense = (
        (256, 64, "gaussian", 0.9), (512, 128, "haar", 1.2), (512, 128, "goe", 0.6), (512, 256, "gaussian", 0.5),
        (1024, 64, "gaussian", 1.2), (1024, 256, "haar", 0.9),
    )  # fmt: skip
    for width, batch, family, scale in dense[:1] if quick else dense:
        generator = torch.Generator().manual_seed(1)
        cell = TanhCell(width, ensemble=family, weight_var=scale**2, generator=generator)
        x = torch.randn(batch, width, generator=generator)
        yield Case(f"{family} {scale:g}, width {width}, batch {batch}", cell, x, True)
    if quick:
        return
    generator = torch.Generator().manual_seed(1)
    block = TransformerCell(256, 4, generator=generator)
    tokens = torch.randn(8, 128, 256, generator=generator)
    yield Case("transformer step, 128 tokens of width 256, batch 8", block, tokens, False)
    torch.manual_seed(1)
    convolution = TwoScales()
    x = torch.randn(8, sum(convolution.sizes), generator=generator)
    yield Case("convolution at two scales, 32 x 32, batch 8", convolution, x, False)


def ours(case: Case, method: str, tol: float) -> Step:
    if method == RESIDUAL:  # absolute: in units of a state whose entries are one
        tol *= case.x[0].numel() ** 0.5
    solver = OURS[method](tol=tol, max_steps=MAX_STEPS)
    return DEQ(case.cell, solver=solver, backward=Implicit(solver=solver), on_fail="return")


def theirs(case: Case, method: str, tol: float) -> Step:
    import torchdeq

    method = method.partition(" ")[0]
    layer = torchdeq.get_deq(
        f_solver=method,
        b_solver=method,
        f_max_iter=MAX_STEPS,
        b_max_iter=MAX_STEPS,
        f_tol=tol,
        b_tol=tol,
        f_stop_mode="rel",
        b_stop_mode="rel",
        ift=True,
        hook_ift=True,
    )
    layer.train()
    return lambda x: layer(lambda z: case.cell(z, x), torch.zeros_like(x))[0][-1]


def error(case: Case, step: Step, truth: Tensor) -> float:
    """Largest relative error of a sample's gradient."""
    off = (case.gradient(step) - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    return float(off.nan_to_num(torch.inf).max())


def calibrated(make: Callable[[Case, str, float], Step], case: Case, method: str, truth: Tensor) -> tuple[Step, float]:
    """The loosest tolerance that reaches the target, as a step, and its error."""
    first = bisect.bisect_left(TOLERANCES, True, key=lambda tol: error(case, make(case, method, tol), truth) <= TARGET)
    step = make(case, method, TOLERANCES[min(first, len(TOLERANCES) - 1)])
    return step, error(case, step, truth)


def evaluations(case: Case, step: Step) -> str:
    """Evaluations of the cell and vector-Jacobian products of a step."""
    counts = [0, 0]

    def after(module: object, inputs: object, output: Tensor) -> None:
        counts[0] += 1
        if output.requires_grad:
            output.register_hook(lambda gradient: counts.__setitem__(1, counts[1] + 1))

    handle = case.cell.register_forward_hook(after)
    case.gradient(step)
    handle.remove()
    return f"{counts[0]}+{counts[1]}"


def compare(case: Case, rounds: int) -> Iterator[tuple[str, Row]]:
    truth = case.true_gradient().float()
    for method in OURS:
        chosen = [(backend, goal) for name, backend, goal in CONTESTANTS if name == method]
        with use_backend("torch"):
            own, own_error = calibrated(ours, case, method, truth)
            other, other_error = calibrated(theirs, case, method, truth)
            case.gradient(own)  # the second solve of a layer looks for slow directions, the third does not
            counts = [evaluations(case, step) for step in (own, other)]
        tasks = {"theirs": lambda other=other: case.gradient(other)}
        tasks |= {backend: within(backend, case, own) for backend, _ in chosen if backend == "torch" or has_numba()}
        seconds = interleaved(tasks, rounds)
        reached = "" if other_error <= TARGET else " (theirs stalls)"
        note = f"gradient off by {own_error:.0e}, theirs {other_error:.0e}{reached}; {counts[0]} against {counts[1]}"
        for backend, _ in chosen:
            job = f"equilibrium layer, {method} ({backend}), {case.name}"
            limit = (GOAL_DENSE if case.dense else GOAL_LARGE) if method == "anderson" else None
            if backend not in seconds:
                yield f"{method} {backend}", missing(job, "torchdeq", limit, what="numba")
                continue
            # against a peer that does not reach the target nothing is at equal error, and no goal holds
            peer, limit = ("torchdeq, which stalls", None) if reached else ("torchdeq", limit)
            row = compared(job, peer, seconds[backend], seconds["theirs"], goal=limit, note=note)
            yield f"{method} {backend}", dataclasses.replace(row, facts={**row.facts, "dense": case.dense})


def within(backend: Backend, case: Case, step: Step) -> Callable[[], None]:
    def run() -> None:
        with use_backend(backend):
            case.gradient(step)

    return run


def rows(quick: bool) -> list[Row]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    job = "equilibrium layer"
    if importlib.util.find_spec("torchdeq") is None:
        return [
            missing(f"{job}, {method} ({kind})", "torchdeq", goal, readme=True) for method, kind, goal in CONTESTANTS
        ]
    found: dict[str, list[Row]] = {}
    for case in cases(quick):
        for name, row in compare(case, 3 if quick else 7):
            found.setdefault(name, []).append(row)
    summary = []
    for method, backend, goal in CONTESTANTS:
        parts = found[f"{method} {backend}"]
        dense = [row for row in parts if row.facts.get("dense")]
        label = f"{job}, {method} ({backend}), forward and backward"
        summary.append(mean_row(f"{label}, dense, mean", "torchdeq", dense, goal=goal, readme=True))
        if method == "anderson":
            summary.append(worst_row(f"{label}, dense, worst", "torchdeq", dense, goal=GOAL_DENSE))
        summary += [dataclasses.replace(row, readme=True) for row in parts if not row.facts.get("dense")]
    return summary + [row for name in found for row in found[name] if row.facts.get("dense")]


if __name__ == "__main__":
    main(rows, __file__, __doc__)
