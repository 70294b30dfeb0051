"""Fixed points of a trained network, side by side with FixedPointFinder (Golub and Sussillo 2018).

Two networks of 16 units, tanh and GRU, learn to remember three bits (the flip-flop task: a pulse sets a bit, which
must be held). Their fixed points without input are searched from the same states: visited ones with Gaussian noise of
standard deviation 0.5, as in the tool's own example, with the example's settings (Adam, rate 1, at most 10000
iterations, float32) and with a gentler rate of 0.1.

What is there to be found is decided by a third route: SciPy's hybrid method on the plain map in double precision, from
1500 starts and from everything that either tool reported. "Found" are points of that reference within 1e-3 of a
reported point, "missed" the others, "spurious" the reported points without one within 1e-2, "repeated" those beyond
the first for one reference point, "spurious at rest" the spurious ones that move by less than 1e-4 in a step, which a
user who looks at residuals would keep. Seconds are CPU time on one thread.

Usage: python benchmarks/fixed_points.py [--peer FOLDER] [--starts 1024]. FOLDER holds a checkout of
mattgolub/fixed-point-finder; with it benchmarks/results/fixed_points.json is written, without it ours alone is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import json
import pathlib
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
import scipy.optimize
import torch
from torch import Tensor, nn

from separatrix.core import spawn
from separatrix.diagnose import fixed_points

BITS, UNITS, STEPS, BATCH, ITERATIONS = 3, 16, 48, 96, 1500
NEAR, SPURIOUS = 1e-3, 1e-2


def flip_flops(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pulses (batch, time, bits) of +-1 with probability 0.2, and the last pulse of each bit."""
    shape = (BATCH, STEPS, BITS)
    pulses = torch.where(torch.rand(shape, generator=generator) < 0.2, 1.0, 0.0)
    pulses = pulses * (torch.randint(0, 2, shape, generator=generator) * 2 - 1)
    pulses[:, 0] = torch.randint(0, 2, (BATCH, BITS), generator=generator) * 2.0 - 1
    held = [pulses[:, 0]]
    for step in range(1, STEPS):
        held.append(torch.where(pulses[:, step] == 0, held[-1], pulses[:, step]))
    return pulses, torch.stack(held, dim=1)


def train(make: type[nn.RNNBase], seed: int) -> tuple[Any, Tensor, float]:
    """A trained network, visited states (n, units), and its last loss."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        core, out = make(BITS, UNITS, batch_first=True), nn.Linear(UNITS, BITS)
    generator = spawn(seed, "flip-flop")
    optimiser = torch.optim.Adam([*core.parameters(), *out.parameters()], lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, ITERATIONS)
    loss = torch.zeros(())
    for _ in range(ITERATIONS):
        pulses, held = flip_flops(generator)
        loss = (out(core(pulses)[0]) - held).square().mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(core.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    pulses, _ = flip_flops(generator)
    return core, core(pulses)[0].detach().flatten(0, 1), float(loss.detach())


def noisy(visited: Tensor, count: int) -> Tensor:
    """Starts of both tools."""
    generator = spawn(0, "noisy starts")
    rows = visited[torch.randint(len(visited), (count,), generator=generator)]
    return rows + 0.5 * torch.randn(rows.shape, generator=generator)


def ours(core: nn.RNNBase, starts: Tensor) -> numpy.ndarray:
    return fixed_points(core, torch.zeros(BITS), starts, n_starts=len(starts)).states.numpy()


def theirs(core: nn.RNNBase, starts: Tensor, folder: str, rate: float) -> numpy.ndarray:
    """The other tool as its example uses it."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    finder = importlib.import_module("FixedPointFinderTorch").FixedPointFinderTorch
    settings = {"max_iters": 10000, "lr_init": rate, "outlier_distance_scale": 10.0, "verbose": False}
    own, held = starts.numpy().copy(), numpy.zeros([1, BITS], dtype="float32")  # it works in place
    with contextlib.redirect_stdout(io.StringIO()):
        unique, _ = finder(core, **settings).find_fixed_points(own, held)
    found: numpy.ndarray = unique.xstar
    return found


def doubled(core: nn.RNNBase) -> nn.RNNBase:
    wide = type(core)(BITS, UNITS, batch_first=True, dtype=torch.float64)
    wide.load_state_dict(core.state_dict())
    return wide


def moves(wide: nn.RNNBase, states: numpy.ndarray) -> numpy.ndarray:
    """Change of states (n, units) in one step of the plain map, in double precision."""
    given = torch.from_numpy(states.astype(float))
    with torch.no_grad():
        after = wide(torch.zeros(len(states), 1, BITS, dtype=torch.float64), given[None])[1][0]
    change: numpy.ndarray = (after - given).numpy()
    return change


def reference(core: nn.RNNBase, starts: numpy.ndarray) -> numpy.ndarray:
    """Fixed points by SciPy on the plain map in double precision."""
    wide = doubled(core)

    def gap(state: numpy.ndarray) -> numpy.ndarray:
        return moves(wide, state[None])[0]

    points: list[numpy.ndarray] = []
    for start in starts.astype(float):
        solved = scipy.optimize.root(gap, start, tol=1e-13)
        fine = numpy.abs(gap(solved.x)).max() < 1e-10 and numpy.abs(solved.x).max() < 1
        if fine and all(numpy.abs(solved.x - point).max() > 1e-5 for point in points):
            points.append(solved.x)
    return numpy.array(points).reshape(-1, UNITS)


def score(core: nn.RNNBase, found: numpy.ndarray, truth: numpy.ndarray, seconds: float) -> dict[str, Any]:
    gaps = numpy.abs(found[:, None] - truth[None]).max(-1)
    spurious = gaps.min(1) > SPURIOUS
    resting = numpy.abs(moves(doubled(core), found)).max(-1) < 1e-4
    hit = (gaps < NEAR).any(0)
    return {
        "reported": len(found),
        "found": int(hit.sum()),
        "missed": int((~hit).sum()),
        "spurious": int(spurious.sum()),
        "spurious at rest": int((spurious & resting).sum()),
        "repeated": int((gaps < NEAR).any(1).sum() - hit.sum()),
        "beyond one": int((numpy.abs(found).max(-1) > 1 + 1e-6).sum()),
        "seconds": seconds,
    }


def compare(make: type[nn.RNNBase], n_starts: int, peer: str | None) -> dict[str, Any]:
    begun = time.process_time()
    core, visited, loss = train(make, 0)
    trained = time.process_time() - begun
    starts = noisy(visited, n_starts)
    reports, seconds = {}, {}
    tools: dict[str, Callable[[], numpy.ndarray]] = {"separatrix": functools.partial(ours, core, starts)}
    for rate in (1.0, 0.1) if peer is not None else ():
        tools[f"fixed-point-finder, rate {rate:g}"] = functools.partial(theirs, core, starts, str(peer), rate)
    for name, tool in tools.items():
        begun = time.process_time()
        reports[name] = tool()
        seconds[name] = time.process_time() - begun
    others = [noisy(visited, 1500).numpy()[::-1], *reports.values()]
    truth = reference(core, numpy.concatenate(others))
    rows = {name: score(core, found, truth, seconds[name]) for name, found in reports.items()}
    print(f"{make.__name__}: loss {loss:.4f} after {trained:.0f} s; {len(truth)} fixed points by SciPy", flush=True)
    for name, row in rows.items():
        print(f"  {name}: " + ", ".join(f"{key} {value:.3g}" for key, value in row.items()), flush=True)
    return {"network": make.__name__, "loss": loss, "training_seconds": trained, "reference": len(truth), **rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peer", help="folder of a checkout of mattgolub/fixed-point-finder")
    parser.add_argument("--starts", type=int, default=1024)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [compare(make, options.starts, options.peer) for make in (nn.RNN, nn.GRU)]
    if options.peer is None:
        print("no --peer given: nothing is written")
        return
    facts = {"torch": torch.__version__, "python": platform.python_version(), "threads": 1}
    record = {"environment": facts, "starts": options.starts, "rows": rows}
    path = pathlib.Path(__file__).parent / "results" / "fixed_points.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
