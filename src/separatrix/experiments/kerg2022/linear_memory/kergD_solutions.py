"""kerg2022, appendix D.2: networks that solve the copy and the adding task by construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.random import spawn
from separatrix.core.wording import several, small
from separatrix.lab import (
    Cell,
    Claim,
    Crossed,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Spanned,
    Summary,
    crossed,
    judge,
    spans,
    with_column,
)

TABLE = "Networks with weights made by hand"


class Settings(Params):
    """Delays of the copy task, lengths of the adding task, and rotations in the memory of the document's network."""

    seeds: tuple[int, ...] = (0, 1, 2)
    delays: tuple[int, ...] = (1, 50, 200)
    lengths: tuple[int, ...] = (2, 200, 1000)
    n_clocks: int = 128
    n_problems: int = 100


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per network, size and seed."""
    for seed in settings.seeds:
        common = {"seed": seed, "n_problems": settings.n_problems}
        for delay in settings.delays:
            yield {**common, "network": "clocks", "steps": delay, "n_clocks": settings.n_clocks}
            yield {**common, "network": "ring", "steps": delay, "n_clocks": 0}
        for length in settings.lengths:
            yield {**common, "network": "adding", "steps": length, "n_clocks": 0}


def run(cell: Cell) -> Payload:
    """Problems that were never seen, answered without training."""
    import torch

    from separatrix import nn, tasks

    args = cell.args
    generator = spawn(cell.seed, "kergD-solutions", args["network"], args["steps"])
    if args["network"] == "adding":
        task: Any = tasks.Adding(args["steps"])
        model: Any = nn.adding_solution()
    else:
        task = tasks.Copy(args["steps"])
        model = nn.copy_solution(args["steps"], n_clocks=args["n_clocks"] or None, generator=generator)
    batch = task.sample(args["n_problems"], generator=generator)
    with torch.no_grad():
        outputs = model(batch.inputs.to(torch.float64))
        loss, accuracy = float(task.loss(outputs, batch)), float(task.accuracy(outputs, batch))
        memory = model.core.recurrent().detach()
    if args["network"] != "adding":
        memory = memory[:-11, :-11]  # without the ring of the cue
    back = torch.linalg.matrix_power(memory, args["steps"] + 10) - torch.eye(len(memory), dtype=memory.dtype)
    return {
        "loss": loss,
        "baseline": task.baseline,
        "accuracy": accuracy,
        "n_units": model.core.hidden_size,
        "return_error": float(back.abs().max()),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """One row per network."""
    rows = [
        {"network": cell.args["network"], "steps": cell.args["steps"], "seed": cell.seed, **payload}
        for cell, payload in results
    ]
    return Summary(tables={TABLE: rows})


def _judge(summary: Summary, *networks: str, back: bool = False, n_units: int | None = None) -> Judgement:
    found = [row for row in summary.table(TABLE) if row["network"] in networks]
    rows = [Row(f"loss, {row['network']}, {several(row['steps'], 'step')}", row["loss"], 0.0, 1e-9) for row in found]
    rows += [Row(f"accuracy, {row['network']}, {several(row['steps'], 'step')}", row["accuracy"], 1.0) for row in found]
    if back:
        rows += [Row(f"V^(T+S) - I, {several(row['steps'], 'step')}", row["return_error"], 0.0, 1e-9) for row in found]
    if n_units is not None:
        rows += [Row(f"units, {several(row['steps'], 'step')}", row["n_units"], n_units) for row in found]
    sizes = sorted({row["n_units"] for row in found})
    units = ", ".join(map(str, sizes[:-1])) + (" and " if sizes[1:] else "") + several(sizes[-1], "unit")
    return judge(f"losses up to {small(max(row['loss'] for row in found))} with {units}", rows)


def judge_copy(summary: Summary) -> Judgement:
    """Decide ``kerg2022-D2-copy``."""
    return _judge(summary, "clocks", back=True)


def judge_ring(summary: Summary) -> Judgement:
    """Decide ``separatrix-D2-ring``."""
    return _judge(summary, "ring", n_units=91)


def judge_adding(summary: Summary) -> Judgement:
    """Decide ``kerg2022-D2-adding``."""
    return _judge(summary, "adding", back=True)


def _spoilt(network: str) -> Any:
    return with_column(TABLE, "loss", 0.05, where=lambda row: row["network"] == network)


def _all(network: str, shortest: int, longest: int) -> tuple[Crossed, Spanned]:
    """Short and long problems, each with every seed."""
    return (
        crossed(TABLE, "steps", "seed", network=network),
        spans(TABLE, "steps", shortest, longest, network=network),
    )


EXPERIMENT = Experiment(
    name="kergD-solutions",
    title="Copy and adding solved without training",
    document="kerg2022",
    place="appendix D.2",
    version=1,
    scales={
        "smoke": Settings(seeds=(0,), delays=(1, 200), lengths=(2, 50), n_problems=20),
        "laptop": Settings(),
        "paper": Settings(delays=(1, 50, 200, 500, 1000, 2000)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-D2-copy",
            statement="Rotations that return after T + S steps, driven by the rectified input, solve the copy task.",
            measures="loss and recall on new problems; distance of V^(T+S) from the identity",
            test="loss 1e-9, every symbol right, distance 1e-9",
            needs=_all("clocks", 1, 200),
            judge=judge_copy,
            counterfeit=_spoilt("clocks"),
        ),
        Claim(
            id="kerg2022-D2-adding",
            statement="One unit with V = 1 solves the adding task.",
            measures="squared error on new problems",
            test="1e-9, every sum right",
            needs=_all("adding", 2, 50),
            judge=judge_adding,
            counterfeit=_spoilt("adding"),
        ),
        Claim(
            id="separatrix-D2-ring",
            document="separatrix",
            place="our own, after appendix D.2",
            statement="91 units and a permutation matrix solve the copy task of every delay.",
            measures="loss and recall on new problems",
            test="loss 1e-9, every symbol right",
            needs=_all("ring", 1, 200),
            judge=judge_ring,
            counterfeit=_spoilt("ring"),
        ),
    ),
)
