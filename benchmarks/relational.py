"""Relational networks: CPU time of a training step against encoding every occurrence, and of all networks.

The task is identity rules, 96 problems of nine positions a batch. "every occurrence" is the straightforward way, that
of public code: problems are drawn one by one in Python, their images are stacked, and all 864 of them are encoded. Ours
draws indices of the whole batch at once and encodes each distinct image once; "frozen" keeps the features of an
encoder that is not trained. Forward pass, cross entropy, backward pass, Adam at 5e-4, one thread, interleaved; ratios
within one round, median, least and greatest over the rounds. With 95 shapes held out a batch has 5 distinct images,
with none about 100.

Usage: python benchmarks/relational.py [--rounds 7] [--quick]; writes benchmarks/results/relational.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from separatrix import nn as layers, tasks
from separatrix.core import spawn
from separatrix.tasks import ProblemBatches
from separatrix.training.relational.pictures import PictureSource

BATCH = 96
LEAST = {95: 15.0, 0: 5.0}
"""Ratios that are claimed, by number of held-out shapes."""
Step = Callable[[int], None]


def plain_problem(draws: numpy.random.Generator, ids: numpy.ndarray) -> tuple[list[int], int]:
    """One problem of identity rules, as a loop over problems would make it."""
    a, b, c, d = draws.choice(ids, 4, replace=False)
    rows, answer = (([a, a, a, b, b], b), ([a, b, a, c, d], c), ([a, b, b, c, d], d))[draws.integers(3)]
    choices = draws.permutation([a, b, c, d])
    return [*rows, *choices], int(numpy.nonzero(choices == answer)[0][0])


def every_occurrence(holdout: int) -> Step:
    task = tasks.make_task("identity_rules", holdout=holdout)
    network = layers.CoRelNet(9, 4, generator=spawn(0, "bench"))
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)
    images, ids = task.images, task.ids("train").numpy()
    draws = numpy.random.default_rng(0)

    def step(number: int) -> None:
        problems = [plain_problem(draws, ids) for _ in range(BATCH)]
        batch = torch.stack([images[torch.tensor(row)] for row, _ in problems])
        _update(optimiser, network(batch), torch.tensor([label for _, label in problems]))

    return step


def ours(holdout: int, name: str = "CoRelNet", **options: Any) -> Step:
    task = tasks.make_task("identity_rules", holdout=holdout)
    network = layers.make_network(name, 9, 4, generator=spawn(0, "bench"), **options)
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=5e-4)
    batches, source = ProblemBatches(task, BATCH, 0), PictureSource(task, network)

    def step(number: int) -> None:
        problems = batches(number)
        logits = network(*source.given(network, "train", problems.index))
        _update(optimiser, logits, problems.label, network.penalty())

    return step


def _update(optimiser: Any, logits: Tensor, label: Tensor, more: Tensor | float = 0.0) -> None:
    optimiser.zero_grad(set_to_none=True)
    (nn.functional.cross_entropy(logits, label) + more).backward()
    optimiser.step()


def cpu_times(steps: dict[str, tuple[Step, int]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU a step, by name, one entry a round; every contestant runs in every round."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for step, _ in steps.values():
        step(0)
    for number in range(rounds):
        for name, (step, repeats) in steps.items():
            begun = time.process_time()
            for k in range(repeats):
                step(1 + number * repeats + k)
            found[name].append((time.process_time() - begun) / repeats * 1e3)
    return found


def ratios(times: dict[str, list[float]], to: str) -> dict[str, dict[str, float]]:
    table = {}
    for name, own in times.items():
        parts = [base / mine for base, mine in zip(times[to], own, strict=True)]
        table[name] = {
            "ms_per_step": round(statistics.median(own), 2),
            "times_as_fast": round(statistics.median(parts), 2),
            "least": round(min(parts), 2),
            "greatest": round(max(parts), 2),
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="two rounds, fewer networks, nothing written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = 2 if options.quick else options.rounds
    result: dict[str, Any] = {
        "what": "CPU time of a training step, identity rules, batch 96, one thread, interleaved",
        "torch": torch.__version__,
        "machine": platform.machine(),
        "rounds": rounds,
    }
    for holdout in (95, 0):
        steps = {
            "every occurrence": (every_occurrence(holdout), 2),
            "distinct images": (ours(holdout), 10),
            "frozen encoder": (ours(holdout, encoder="frozen"), 10),
        }
        result[f"holdout {holdout}"] = ratios(cpu_times(steps, rounds), "every occurrence")
    names = list(layers.RELATIONAL_NETWORKS)[: 3 if options.quick else None]
    repeats = {"CoRelNet": 10, "CoRelNet-T": 10, "Transformer": 5, "PrediNet": 5}
    steps = {name: (ours(95, name), repeats.get(name, 1)) for name in names}
    times = cpu_times(steps, rounds)
    result["networks"] = {
        name: {
            "ms_per_step": round(statistics.median(own), 2),
            "times_the_cost": round(
                statistics.median(mine / base for mine, base in zip(own, times["CoRelNet"], strict=True)), 2
            ),
        }
        for name, own in times.items()
    }
    result["claims"] = {
        f"holdout {m}: at least {least} times as fast": result[f"holdout {m}"]["distinct images"]["times_as_fast"]
        >= least
        for m, least in LEAST.items()
    }
    text = json.dumps(result, indent=2)
    print(text)
    if not options.quick:
        path = pathlib.Path(__file__).parent / "results" / "relational.json"
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
