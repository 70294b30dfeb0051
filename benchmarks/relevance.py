"""Attentive recurrent networks with bounded memory against loops: peak memory and CPU time against the length.

A training step is forward and backward pass of the sum of all outputs (batch 10, 128 units, nu = rho = 10, one thread).
Peak memory is how far the resident set rises above where it stood before the step, each in a process of its own. CPU
times are interleaved; ratios are to the plain loop of the same round: a Python loop over ``tanh(drive + h V')``, with
the drives of all steps at once and ``unbind``, as a user would write it. Evaluation is a forward pass without graph.
"compiled" are the loops of numba (``use_backend``), which are compiled before anything is measured.

Usage: python benchmarks/relevance.py [--rounds 5] [--quick] [--lengths 100,1000] [--models ...] [--batch 10]; writes
benchmarks/results/relevance.json (relevance_64.json for a batch of 64).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rows import Row, compared, missing
from torch import Tensor, nn

from separatrix import nn as layers
from separatrix.core import use_backend
from separatrix.core.arithmetic.backend import has_numba

N_INPUTS, N_HIDDEN, PLACES = 10, 128, 10
LENGTHS = (100, 300, 1000, 2000, 5000)
QUADRATIC_UNTIL = {"MemRNN": 1000, "MemRNN, compiled": 5000}
"""Full attention takes T^2 time: by torch a step at 2000 is 40 seconds."""
LIMITS = {"time": 6.0, "doubling": 2.2, "lstm": 1.5}
COMPILED_LIMITS = {10: 2.0, 64: 4.0}
"""Plain loops, by batch."""
COMPILED = ", compiled"


class PlainLoop(nn.Module):
    """An Elman network, or an LSTM, as a loop over time that autograd follows."""

    def __init__(self, gated: bool) -> None:
        super().__init__()
        parts = 4 if gated else 1
        self.gated = gated
        self.entering = nn.Linear(N_INPUTS, parts * N_HIDDEN)
        self.recurrent = nn.Parameter(torch.randn(parts * N_HIDDEN, N_HIDDEN) / N_HIDDEN**0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        h = carried = x.new_zeros(len(x), N_HIDDEN)
        states = []
        for drive in self.entering(x).unbind(1):
            pre = torch.addmm(drive, h, self.recurrent.mT)
            if self.gated:
                i, f, g, o = pre.chunk(4, -1)
                carried = torch.sigmoid(f) * carried + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(carried)
            else:
                h = torch.tanh(pre)
            states.append(h)
        return torch.stack(states, 1), None


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "plain loop": lambda: PlainLoop(gated=False),
    "LSTM loop": lambda: PlainLoop(gated=True),
    "nn.LSTM": lambda: nn.LSTM(N_INPUTS, N_HIDDEN, batch_first=True),
    "RelRNN": lambda: layers.RelRNN(N_INPUTS, N_HIDDEN, PLACES, PLACES),
    "RelLSTM": lambda: layers.RelLSTM(N_INPUTS, N_HIDDEN, PLACES, PLACES),
    "MemRNN": lambda: layers.MemRNN(N_INPUTS, N_HIDDEN),
}
MAKERS |= {name + COMPILED: MAKERS[name] for name in ("RelRNN", "RelLSTM", "MemRNN")}


def inputs(length: int, batch: int) -> Tensor:
    return torch.randn(batch, length, N_INPUTS, generator=torch.Generator().manual_seed(0))


def arithmetic(name: str) -> Any:
    return use_backend("numba" if name.endswith(COMPILED) else "torch")


def train_step(model: nn.Module, x: Tensor) -> None:
    model.zero_grad()
    model(x)[0].sum().backward()


def evaluate(model: nn.Module, x: Tensor) -> None:
    with torch.no_grad():
        model(x)


def _status(field: str) -> float:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return float(line.split()[1]) / 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def _peak(name: str, length: int, batch: int, kind: str, queue: Any) -> None:
    torch.set_num_threads(1)
    model = MAKERS[name]()
    act = train_step if kind == "train" else evaluate
    with arithmetic(name):
        act(model, inputs(20, batch))
        x = inputs(length, batch)
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _status("VmRSS")
        act(model, x)
    queue.put(_status("VmHWM") - before)


def peak_memory(name: str, length: int, batch: int, kind: str) -> float:
    """Megabytes by which the resident set rises, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_peak, args=(name, length, batch, kind, queue))
    process.start()
    found = queue.get(timeout=1200)
    process.join()
    return round(float(found), 1)


def cpu_time(name: str, model: nn.Module, x: Tensor, act: Callable[[nn.Module, Tensor], None]) -> float:
    with arithmetic(name):
        begun = time.process_time()
        act(model, x)
        return time.process_time() - begun


def measure(lengths: tuple[int, ...], rounds: int, chosen: tuple[str, ...], batch: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    memory: dict[str, dict[int, float]] = {}
    times: dict[str, dict[int, Any]] = {}
    models = {name: make() for name, make in MAKERS.items() if name in chosen}
    for length in lengths:
        names = [name for name in models if length <= QUADRATIC_UNTIL.get(name, length)]
        for name in names:
            memory.setdefault(name, {})[length] = peak_memory(name, length, batch, "train")
        x = inputs(length, batch)
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds + 1):
            for name in names:
                found[name].append(cpu_time(name, models[name], x, train_step))
        for name in names:
            pairs = zip(found[name][1:], found["plain loop"][1:], strict=True)  # the first round warms up
            ratios = sorted(own / loop for own, loop in pairs)
            times.setdefault(name, {})[length] = {
                "seconds": round(statistics.median(found[name][1:]), 4),
                "ratio": round(statistics.median(ratios), 2),
                "least": round(ratios[0], 2),
                "most": round(ratios[-1], 2),
            }
    longest = max(lengths)
    evaluation = {
        name: {
            "seconds": round(cpu_time(name, models[name], inputs(longest, batch), evaluate), 2),
            "megabytes": peak_memory(name, longest, batch, "evaluate"),
        }
        for name in chosen
        if name.startswith("Rel")
    }
    return {"megabytes": memory, "training": times, f"evaluation at {longest}": evaluation}


def verdicts(found: dict[str, Any], batch: int) -> dict[str, bool]:
    memory, times = found["megabytes"], found["training"]
    told = {}
    if batch in COMPILED_LIMITS and 1000 in times.get("RelRNN" + COMPILED, {}):
        limit = COMPILED_LIMITS[batch]
        ratio = times["RelRNN" + COMPILED][1000]["ratio"]
        told[f"time of RelRNN, compiled, at 1000 at most {limit:g} plain loops"] = ratio <= limit
    if batch != 10 or "RelRNN" not in times:
        return told
    if 1000 in times["RelRNN"]:
        told["time of RelRNN at 1000 at most 6 plain loops"] = times["RelRNN"][1000]["ratio"] <= LIMITS["time"]
        told["memory at 1000 at most 1.5 LSTM loops"] = (
            memory["RelRNN"][1000] <= LIMITS["lstm"] * memory["LSTM loop"][1000]
        )
    if 2000 in memory["RelRNN"]:
        told["memory at 2000 at most 2.2 times that at 1000"] = (
            memory["RelRNN"][2000] <= LIMITS["doubling"] * memory["RelRNN"][1000]
        )
    return told


def rows(quick: bool) -> list[Row]:
    """For ``./run bench``: the compiled and the plain screening network at the length where goals are set."""
    torch.set_num_threads(1)
    rounds, length = (2, 100) if quick else (5, 1000)
    found = []
    for batch, goal in COMPILED_LIMITS.items():
        names = ["plain loop", "RelRNN", *(["RelRNN" + COMPILED] if has_numba() else [])]
        models = {name: MAKERS[name]() for name in names}
        x = inputs(length, batch)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds + 1):  # the first round warms up
            for name in names:
                seconds[name].append(cpu_time(name, models[name], x, train_step))
        goals = {"RelRNN": LIMITS["time"] if batch == 10 else None, "RelRNN" + COMPILED: goal}
        job = f"training step, T = {length}, 128 units, batch {batch}"
        found += [
            compared(
                f"{name} {job}", "a plain loop", seconds[name][1:], seconds["plain loop"][1:], goal=goals[name],
                readme=name != "RelRNN",
            )
            for name in names[1:]
        ]  # fmt: skip
        if not has_numba():
            found.append(missing(f"RelRNN{COMPILED} {job}", "a plain loop", goal, what="numba"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="short sequences only, nothing is written")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--models", default=";".join(MAKERS), help="by semicolons; the plain loop must be among them")
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args()
    lengths = (100, 300) if options.quick else tuple(int(part) for part in options.lengths.split(","))
    found = measure(lengths, options.rounds, tuple(options.models.split(";")), options.batch)
    found |= {
        "verdicts": verdicts(found, options.batch),
        "batch": options.batch,
        "machine": {"processor": platform.processor() or platform.machine(), "torch": torch.__version__},
        "rounds": options.rounds,
    }
    print(json.dumps(found, indent=1))
    if not options.quick:
        target = (
            pathlib.Path(__file__).parent
            / "results"
            / ("relevance.json" if options.batch == 10 else f"relevance_{options.batch}.json")
        )
        target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
