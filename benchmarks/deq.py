"""Equilibrium layers against torchdeq 0.1.0 and a plain unrolled network: CPU time, evaluations, memory.

Both libraries get the same cell z -> tanh(W z + b) + x and the same inputs, in float32, on one thread. "Equal
residual" is meant literally: for each library and method the loosest tolerance is searched at which the true residual
of what the layer returns, max over the batch of |f(z) - z| / |f(z)|, is at most 1e-4, and likewise that of the adjoint
vector (which is the gradient with respect to x). Rounds are interleaved; a ratio is ours over theirs within one round,
reported as median, smallest and largest. Ours runs with all its bookkeeping; theirs with its hook-based implicit
gradient, the faster of the two it offers.

Usage: python benchmarks/deq.py [--rounds 9] [--quick]; writes benchmarks/results/deq.json. Some minutes.
"""

from __future__ import annotations

import argparse
import bisect
import dataclasses
import json
import math
import pathlib
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from separatrix.core import ConvergenceWarning
from separatrix.dynamics import Anderson, Broyden, Picard
from separatrix.nn import DEQ, Implicit, TanhCell

TARGET = 1e-4
MAX_STEPS = 100
OURS = {"picard": Picard, "anderson": Anderson, "broyden": Broyden}
THEIRS = {"picard": "fixed_point_iter", "anderson": "anderson", "broyden": "broyden"}
LIMITS = {"picard": 1.1, "anderson": 0.7, "broyden": 0.35}
TOLERANCES = [TARGET * 2 ** (k / 2) for k in range(8, -9, -1)]

Step = Callable[[Tensor], Tensor]
"""From the input to the output of a layer, with gradients."""


@dataclasses.dataclass(frozen=True)
class Case:
    width: int
    batch: int
    family: str
    scale: float

    def build(self) -> tuple[TanhCell, Tensor]:
        generator = torch.Generator().manual_seed(1)
        cell = TanhCell(self.width, ensemble=self.family, weight_var=self.scale**2, generator=generator)
        return cell, torch.randn(self.batch, self.width, generator=generator)


CASES = [
    Case(256, 64, "gaussian", 0.9),
    Case(512, 128, "haar", 1.2),
    Case(512, 128, "goe", 0.6),
    Case(512, 256, "gaussian", 0.5),
    Case(1024, 64, "gaussian", 1.2),
    Case(1024, 256, "haar", 0.9),
]


def ours(cell: TanhCell, method: str, tol: float, backward_tol: float) -> Step:
    make = OURS[method]
    return DEQ(
        cell,
        solver=make(tol=tol, max_steps=MAX_STEPS),
        backward=Implicit(solver=make(tol=backward_tol, max_steps=MAX_STEPS)),
        on_fail="return",
    )


def theirs(cell: TanhCell, method: str, tol: float, backward_tol: float) -> Step:
    import torchdeq

    layer = torchdeq.get_deq(
        f_solver=THEIRS[method],
        b_solver=THEIRS[method],
        f_max_iter=MAX_STEPS,
        b_max_iter=MAX_STEPS,
        f_tol=tol,
        b_tol=backward_tol,
        f_stop_mode="rel",
        b_stop_mode="rel",
        ift=True,
        hook_ift=True,
    )
    layer.train()
    return lambda x: layer(lambda z: cell(z, x), torch.zeros_like(x))[0][-1]


def unrolled(cell: TanhCell, steps: int) -> Step:
    def run(x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(steps):
            z = cell(z, x)
        return z

    return run


def forward_backward(step: Step, x: Tensor, cell: TanhCell) -> tuple[Tensor, Tensor]:
    """One training step without the optimiser; the output and the gradient with respect to x."""
    x = x.clone().requires_grad_()
    cell.zero_grad()
    z = step(x)
    (0.5 * z.square().sum()).backward()
    assert x.grad is not None
    return z.detach(), x.grad


def output_residual(step: Step, x: Tensor, cell: TanhCell) -> float:
    """Largest relative residual of the output over the batch."""
    z = step(x).detach()
    return _largest(cell(z, x).detach(), z)


def true_residuals(step: Step, x: Tensor, cell: TanhCell) -> tuple[float, float]:
    """Largest relative residual over the batch, of the output and of the adjoint vector."""
    z, adjoint = forward_backward(step, x, cell)
    z_in = z.clone().requires_grad_()
    image = cell(z_in, x)
    pulled = torch.autograd.grad(image, z_in, adjoint)[0] + z  # the gradient of the loss is z
    return _largest(image.detach(), z), _largest(pulled, adjoint)


def _largest(image: Tensor, point: Tensor) -> float:
    return float(((image - point).norm(dim=-1) / image.norm(dim=-1)).max())


def calibrated(make: Callable[..., Step], cell: TanhCell, x: Tensor, method: str) -> tuple[Step, dict[str, float]]:
    """The loosest tolerances that reach the target in both directions, forward first."""
    tol = _loosest(lambda tol: output_residual(make(cell, method, tol, 1e-2), x, cell))
    backward_tol = _loosest(lambda b_tol: true_residuals(make(cell, method, tol, b_tol), x, cell)[1])
    step = make(cell, method, tol, backward_tol)
    forward, backward = true_residuals(step, x, cell)
    return step, {"tol": tol, "backward_tol": backward_tol, "residual": forward, "backward_residual": backward}


def _loosest(residual: Callable[[float], float]) -> float:
    first = bisect.bisect_left(TOLERANCES, True, key=lambda tol: residual(tol) <= TARGET)
    return TOLERANCES[min(first, len(TOLERANCES) - 1)]


def count_evaluations(step: Step, x: Tensor, cell: TanhCell) -> dict[str, int]:
    """Evaluations of the cell and vector-Jacobian products in one forward and backward pass."""
    counts = {"evaluations": 0, "products": 0}

    def after(module: object, inputs: object, output: Tensor) -> None:
        counts["evaluations"] += 1
        if output.requires_grad:
            output.register_hook(lambda gradient: counts.__setitem__("products", counts["products"] + 1))

    handle = cell.register_forward_hook(after)
    forward_backward(step, x, cell)
    handle.remove()
    return counts


def saved_bytes(step: Step, x: Tensor) -> int:
    """Bytes of distinct tensors that autograd keeps between the forward and the backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        z = step(x.clone().requires_grad_())
        kept_now = sum(kept.values())
    del z
    return kept_now


def time_rounds(steps: dict[str, Step], x: Tensor, cell: TanhCell, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each contestant in each round; a round runs all of them, in alternating order."""
    for step in steps.values():
        forward_backward(step, x, cell)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(rounds):
        for name in list(steps)[:: 1 if k % 2 else -1]:
            begin = time.process_time()
            forward_backward(steps[name], x, cell)
            seconds[name].append(time.process_time() - begin)
    return seconds


def compare(case: Case, rounds: int) -> list[dict[str, Any]]:
    cell, x = case.build()
    rows = []
    for method in OURS:
        our_step, our_facts = calibrated(ours, cell, x, method)
        their_step, their_facts = calibrated(theirs, cell, x, method)
        our_facts |= count_evaluations(our_step, x, cell)
        their_facts |= count_evaluations(their_step, x, cell)
        steps = {"ours": our_step, "theirs": their_step, "unrolled": unrolled(cell, our_facts["evaluations"])}
        seconds = time_rounds(steps, x, cell, rounds)
        ratios = [a / b for a, b in zip(seconds["ours"], seconds["theirs"], strict=True)]
        rows.append(
            {
                **dataclasses.asdict(case),
                "method": method,
                "ratio": statistics.median(ratios),
                "ratio_range": [min(ratios), max(ratios)],
                "ratio_of_minima": min(seconds["ours"]) / min(seconds["theirs"]),
                "limit": LIMITS[method],
                "seconds": {name: [min(values), statistics.median(values)] for name, values in seconds.items()},
                "ours": our_facts,
                "theirs": their_facts,
                "saved_bytes": {name: saved_bytes(step, x) for name, step in steps.items()},
            }
        )
        print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    reached = "" if max(row["theirs"]["residual"], row["theirs"]["backward_residual"]) <= TARGET else " (theirs stalls)"
    ours, theirs = row["ours"], row["theirs"]
    return (
        f"{row['family']:>8} {row['scale']:.1f} width {row['width']:4d} batch {row['batch']:3d} {row['method']:>8}: "
        f"ratio {row['ratio']:.2f} ({row['ratio_range'][0]:.2f} to {row['ratio_range'][1]:.2f}), "
        f"evaluations {ours['evaluations']}+{ours['products']} against {theirs['evaluations']}+{theirs['products']}, "
        f"saved {row['saved_bytes']['ours'] / 2**20:.1f} MB (unrolled {row['saved_bytes']['unrolled'] / 2**20:.1f}), "
        f"{row['seconds']['ours'][1] * 1e3:.1f} ms{reached}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="two cases, three rounds")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results" / "deq.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    cases = CASES[:2] if options.quick else CASES
    rows = [row for case in cases for row in compare(case, 3 if options.quick else options.rounds)]
    summary = {}
    for method in OURS:
        ratios = [row["ratio"] for row in rows if row["method"] == method]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        summary[method] = {"geometric_mean": mean, "largest": max(ratios), "limit": LIMITS[method]}
        print(f"{method}: geometric mean {mean:.2f}, largest {max(ratios):.2f}, limit {LIMITS[method]}")
    facts = {"torch": torch.__version__, "torchdeq": "0.1.0", "python": platform.python_version(), "threads": 1}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    record = {"environment": facts, "target": TARGET, "summary": summary, "rows": rows}
    options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
