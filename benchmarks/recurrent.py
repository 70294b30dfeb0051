"""Recurrent networks against torch's own: CPU time of a training iteration, interleaved.

Every model reads the copy task (delay 200) and is trained as a user would: forward pass, mean cross entropy over all
steps, backward pass, RMSprop. Ratios are to ``nn.RNN`` of the same size within one round, on one thread; median,
smallest and largest over the rounds. "plain loop" is the common way to an orthogonal network: a Python loop over time
around a weight under ``torch.nn.utils.parametrizations.orthogonal``, read once an iteration (reading it at every step
is a common mistake and far slower), with modReLU and the input projection of all steps at once. geotorch is measured if
it is installed, and so are our own loops compiled by numba (compilation not counted); all other rows of ours run by
torch alone.

Usage: python benchmarks/recurrent.py [--rounds 7] [--quick]; writes benchmarks/results/recurrent.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rows import Row, missing
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from separatrix import nn as layers
from separatrix.core import Backend, spawn, use_backend
from separatrix.core.arithmetic.backend import has_numba
from separatrix.tasks import Copy

SIZES = {128: 10, 512: 100, 1024: 128}
"""Hidden units, and sequences in a batch."""
DELAY = {128: 200, 512: 50, 1024: 30}
"""Shorter where an iteration would take long: the ratio is one of time per step."""
LIMITS = {"nonnormal": 1.0, "exp": 1.0, "nonnormal, numba": 0.4, "exp, numba": 0.4}
LEAST_GAIN = 3.0
COMPILED = ("exp", "nonnormal")

Iteration = Callable[[], None]


class PlainLoop(nn.Module):
    """An orthogonal network as it is usually written."""

    batch_first = True

    def __init__(self, n_inputs: int, n_hidden: int, constrain: Callable[[nn.Module], Any]) -> None:
        super().__init__()
        self.hidden_size = n_hidden
        self.entering = nn.Linear(n_inputs, n_hidden, bias=False)
        self.recurrent = nn.Linear(n_hidden, n_hidden, bias=False)
        self.bias = nn.Parameter(torch.empty(n_hidden).uniform_(-0.01, 0.01))
        constrain(self.recurrent)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        drives = self.entering(x)
        h = drives.new_zeros(x.shape[0], self.hidden_size)
        states = []
        with parametrize.cached():
            for drive in drives.unbind(1):
                h = layers.modrelu(drive + self.recurrent(h), self.bias)
                states.append(h)
        return torch.stack(states, 1), h.unsqueeze(0)


def models(n: int) -> dict[str, nn.Module]:
    made: dict[str, nn.Module] = {
        "nn.RNN": nn.RNN(10, n, batch_first=True),
        "exp": layers.ExpRNN(10, n),
        "nonnormal": layers.NonNormalRNN(10, n),
        "nonnormal complete": layers.NonNormalRNN(10, n, "complete"),
        "cayley": layers.ScoRNN(10, n),
        "householder": layers.HouseholderRNN(10, n),
        "goru": layers.GORU(10, n),
        "nn.LSTM": nn.LSTM(10, n, batch_first=True),
        "nn.GRU": nn.GRU(10, n, batch_first=True),
        "plain loop, torch orthogonal": PlainLoop(10, n, parametrizations.orthogonal),
    }
    try:
        geotorch = importlib.import_module("geotorch")
    except ImportError:
        return made
    return {**made, "plain loop, geotorch": PlainLoop(10, n, lambda layer: geotorch.orthogonal(layer, "weight"))}


def iteration(core: nn.Module, n: int) -> Iteration:
    task = Copy(DELAY[n])
    batch = task.sample(SIZES[n], generator=spawn(0, "benchmark"))
    model = layers.SequenceModel(core, task.n_outputs)
    optimiser = torch.optim.RMSprop(model.parameters(), lr=1e-5, alpha=0.99)

    def run() -> None:
        optimiser.zero_grad(set_to_none=True)
        task.loss(model(batch.inputs), batch).backward()
        optimiser.step()

    return run


def within(backend: Backend, run: Iteration) -> Iteration:
    def chosen() -> None:
        with use_backend(backend):
            run()

    return chosen


def cpu_seconds(run: Iteration) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def compare(n: int, rounds: int) -> list[dict[str, Any]]:
    made = models(n)
    runs = {name: within("torch", iteration(core, n)) for name, core in made.items()}
    if has_numba():
        runs |= {f"{name}, numba": within("numba", iteration(made[name], n)) for name in COMPILED}
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            seconds[name].append(cpu_seconds(run))
    rows = []
    for name, values in seconds.items():
        ratios = [a / b for a, b in zip(values, seconds["nn.RNN"], strict=True)]
        row = {
            "hidden": n,
            "batch": SIZES[n],
            "steps": DELAY[n] + 20,
            "model": name,
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
            "ratio_of_minima": min(values) / min(seconds["nn.RNN"]),
            "seconds": [min(values), statistics.median(values)],
        }
        rows.append(row)
        low, high = row["ratio_range"]
        print(
            f"N {n:4d} {name:>30}: {row['ratio']:.2f} ({low:.2f} to {high:.2f}), {row['seconds'][1] * 1e3:.1f} ms",
            flush=True,
        )
    return rows


def judge(rows: list[dict[str, Any]]) -> dict[str, Any]:
    small = {row["model"]: row["ratio"] for row in rows if row["hidden"] == 128}
    verdict = {name: {"ratio": small[name], "limit": limit} for name, limit in LIMITS.items() if name in small}
    for name in verdict:
        gain = small["plain loop, torch orthogonal"] / small[name]
        print(f"{name}: {gain:.1f} times as fast as the plain loop with torch's orthogonal (at least {LEAST_GAIN})")
        verdict[name] |= {"gain over plain loop": gain, "least gain": LEAST_GAIN}
    return verdict


def rows(quick: bool) -> list[Row]:
    """For ``./run bench``: the small size, where goals are set."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = compare(128, 3 if quick else 9)
    job = "training step, N = 128, batch 10, copy task"
    told = [
        Row(
            job=f"{row['model']} {job}",
            peer="nn.RNN",
            ratio=row["ratio"],
            least=row["ratio_range"][0],
            most=row["ratio_range"][1],
            goal=LIMITS.get(row["model"]),
            rounds=3 if quick else 9,
            readme=row["model"] in LIMITS,
            facts={"seconds": row["seconds"]},
        )
        for row in found
        if row["model"] != "nn.RNN"
    ]
    ours = {row["model"]: row["ratio"] for row in found}
    plain = ours["plain loop, torch orthogonal"]
    told += [
        Row(job=f"{name} {job}", peer="a plain loop, torch orthogonal", ratio=ours[name] / plain, goal=1 / LEAST_GAIN)
        for name in LIMITS
        if name in ours
    ]
    return told if has_numba() else [*told, missing(f"nonnormal, numba {job}", "nn.RNN", 0.4, what="numba")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="N = 128 only")
    default = pathlib.Path(__file__).parent / "results" / "recurrent.json"
    parser.add_argument("--output", type=pathlib.Path, default=default)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = [128] if options.quick else list(SIZES)
    rows = [row for n in sizes for row in compare(n, options.rounds)]
    numba = importlib.import_module("numba").__version__ if has_numba() else None
    facts = {"torch": torch.__version__, "numba": numba, "python": platform.python_version(), "threads": 1}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": facts, "summary": judge(rows), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
