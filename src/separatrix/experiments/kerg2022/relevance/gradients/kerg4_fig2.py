"""kerg2022, Fig. 2 of chapter 4: gradients over time after training on denoise, and memory against the length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    condition,
    judge,
    with_column,
)

from ..models import named_backend
from .gradient_runs import SLOPES, beyond, changed, gradient_curve, in_words, mean_curves, slope_rows, within

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ATTENTIVE = ("RelLSTM", "RelRNN", "MemLSTM")
GREAT = 1.0
"""Factors of ten from the last to the first step, beyond which a gradient is called exploding or vanishing."""
BYTES = "Bytes kept for the way back"
POWERS = "Power of the length with which they grow, from the two longest sequences"
MEMORY_MODELS = ("RNN, step by step", "LSTM, step by step", "RelRNN", "RelLSTM", "SAB", "MemRNN, stored", "MemRNN")


class Settings(Params):
    """Networks trained a little on denoise, and lengths at which bytes are counted."""

    seeds: tuple[int, ...] = (0, 1, 2)
    models: tuple[str, ...] = ("RNN", "LSTM", *ATTENTIVE)
    table: str = "denoise-found"
    delay: int = 1000
    n_items: int = 10
    n_hidden: int = 128
    batch_size: int = 10
    clip: float = 1.0
    n_steps: int = 20_000
    n_gradient: int = 10
    memory_steps: tuple[int, ...] = (200, 500, 1000, 2000)
    memory_batch: int = 10


class Compiled(Settings):
    """The same by compiled loops, several times faster (extra ``fast``)."""

    backend: str = "numba"


class Measured(Summary):
    """Mean curves over seeds, the last step first."""

    curves: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per network and seed, and one for each count of bytes."""
    common = settings.model_dump(exclude={"seeds", "models", "memory_steps", "memory_batch", "backend"})
    common |= named_backend(settings)
    common |= {"task": "denoise", "tail_steps": 0, "n_valid": 50, "measure_every": max(1, settings.n_steps // 4)}
    for model in settings.models:
        for seed in settings.seeds:
            yield {**common, "part": "gradient", "model": model, "seed": seed}
    for model in MEMORY_MODELS:
        for steps in settings.memory_steps:
            sizes = {"n_hidden": settings.n_hidden, "batch": settings.memory_batch}
            yield {"part": "memory", "model": model, "steps": steps, **sizes}


def run(cell: Cell) -> Payload:
    """Train and follow gradients, or count bytes."""
    return gradient_curve(cell) if cell.args["part"] == "gradient" else _bytes(cell)


def _bytes(cell: Cell) -> Payload:
    import torch

    from separatrix import nn
    from separatrix.core import spawn

    from .kept_bytes import kept_bytes

    args = cell.args
    sizes = (11, args["n_hidden"])
    generator = spawn(0, "kerg4-fig2")
    name = args["model"]
    x = torch.zeros(args["batch"], args["steps"], 11)
    if name.endswith("step by step"):
        cell_of = torch.nn.RNNCell if name.startswith("RNN") else torch.nn.LSTMCell
        step = cell_of(*sizes)

        def loop() -> Any:
            state: Any = None
            kept = []
            for one in x.unbind(1):
                state = step(one, state)
                kept.append(state)
            return kept

        return {"bytes": kept_bytes(loop)}
    makers = {
        "RelRNN": lambda: nn.RelRNN(*sizes, 10, 10, generator=generator),
        "RelLSTM": lambda: nn.RelLSTM(*sizes, 10, 10, generator=generator),
        "SAB": lambda: nn.SAB(*sizes, generator=generator),
        "MemRNN": lambda: nn.MemRNN(*sizes, generator=generator),
        "MemRNN, stored": lambda: nn.MemRNN(*sizes, memory="store", generator=generator),
    }
    core = makers[name]()
    return {"bytes": kept_bytes(lambda: core(x))}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Changes of gradients, bytes and their powers."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    trained = [(cell, payload) for cell, payload in results if cell.args["part"] == "gradient"]
    counted = [
        {"model": cell.args["model"], "steps": cell.args["steps"], "bytes": payload["bytes"]}
        for cell, payload in results
        if cell.args["part"] == "memory"
    ]
    powers = []
    for model in dict.fromkeys(row["model"] for row in counted):
        *_, first, last = [row for row in counted if row["model"] == model]
        power = math.log(last["bytes"] / first["bytes"]) / math.log(last["steps"] / first["steps"])
        powers.append({"model": model, "power": power})

    def name(args: Mapping[str, Any]) -> str:
        return str(args["model"])

    tables = {SLOPES: slope_rows(trained, name), BYTES: counted, POWERS: powers}
    return Measured(curves=mean_curves(trained, name), tables=tables)


def judge_recurrent(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-fig2-recurrent``."""
    rows = [*beyond(summary, "RNN", GREAT), *beyond(summary, "LSTM", -GREAT)]
    return judge(f"towards the first step gradients change by {in_words(summary, ('RNN', 'LSTM'))}", rows)


def judge_attentive(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-fig2-attentive``."""
    rows = [row for model in ATTENTIVE for row in within(summary, model, GREAT)]
    return judge(f"towards the first step gradients change by {in_words(summary, ATTENTIVE)}", rows)


def _power(summary: Measured, model: str) -> float:
    (row,) = (row for row in summary.table(POWERS) if row["model"] == model)
    return float(row["power"])


def judge_linear(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-fig2-linear``."""
    models = ("RelRNN", "RelLSTM", "RNN, step by step", "LSTM, step by step")
    rows = [Row(f"power of the length, {model}", _power(summary, model), 1.0, 0.1) for model in models]
    return judge(", ".join(f"{model} T^{_power(summary, model):.2f}" for model in models), rows)


def judge_quadratic(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-fig2-quadratic``."""
    plain, stored, sab = (_power(summary, model) for model in ("MemRNN", "MemRNN, stored", "SAB"))
    rows = [
        Row("power of the length, MemRNN", plain, 2.0, 0.25),
        Row("power of the length, SAB", sab, 2.0, 0.25),
    ]
    right = [
        Row("power of the length, MemRNN with stored activations", stored, 2.0, 0.25),
        Row("power of the length, SAB", sab, 2.0, 0.25),
        Row("power of the length, MemRNN with activations computed again", plain, 1.0, 0.1),
    ]
    evidence = f"MemRNN T^{stored:.2f} with stored activations, T^{plain:.2f} computed again; SAB T^{sab:.2f}"
    return judge(
        evidence, rows, condition("where activations are stored; computed again, MemRNN needs T n numbers", right)
    )


def _with_powers(**powers: float) -> Any:
    names = {"mem": "MemRNN", "stored": "MemRNN, stored", "sab": "SAB", "rel": "RelLSTM", "relrnn": "RelRNN"}
    names |= {"rnn": "RNN, step by step", "lstm": "LSTM, step by step"}
    wanted = {names[short]: value for short, value in powers.items()}
    return with_column(POWERS, "power", lambda row: wanted[row["model"]], lambda row: row["model"] in wanted)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Gradients and bytes."""
    from separatrix.report.figures.recurrent.screening import draw_gradient_norms, draw_kept_bytes

    return {
        "gradients": draw_gradient_norms({"after training on denoise": summary.curves}),
        "memory": draw_kept_bytes(summary.table(BYTES)),
    }


EXPERIMENT = Experiment(
    name="kerg4-fig2",
    title="Gradients over time and memory against the length",
    document="kerg2022",
    place="Fig. 2, section 4.7",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            delay=6,
            n_items=2,
            n_hidden=8,
            n_steps=2,
            n_gradient=3,
            memory_steps=(20, 40),
            memory_batch=2,
        ),
        "laptop": Compiled(
            delay=80,
            n_items=4,
            n_hidden=32,
            n_steps=2000,
            batch_size=16,
            memory_steps=(50, 100, 200, 400),
            memory_batch=2,
        ),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch4-fig2-recurrent",
            statement="Towards the first step gradients of an RNN explode and those of an LSTM vanish.",
            measures="log10 of the gradient norm, first tenth of the sequence minus the last before the answers",
            test="95 % interval over seeds above 1 (RNN) and below -1 (LSTM)",
            judge=judge_recurrent,
            counterfeit=changed({"RNN": 0.0, "LSTM": 0.0}),
            genuine=changed({"RNN": 3.0, "LSTM": -3.0}),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-fig2-attentive",
            statement="Gradients of attentive networks are stable.",
            measures="the same for RelLSTM, RelRNN and MemLSTM",
            test="95 % interval over seeds between -1 and 1",
            judge=judge_attentive,
            counterfeit=changed({"RelLSTM": -3.0, "RelRNN": 3.0}),
            genuine=changed({"RelLSTM": 0.1, "RelRNN": -0.1, "MemLSTM": 0.2}),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-fig2-linear",
            statement="The memory of RelLSTM grows linearly with the length, as that of RNN and LSTM does.",
            measures="bytes kept for the way back, power of the length between the two longest sequences",
            test="1 to within .1",
            judge=judge_linear,
            counterfeit=_with_powers(rel=2.0),
            genuine=_with_powers(rel=1.0, relrnn=0.99, rnn=1.0, lstm=0.98),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-fig2-quadratic",
            statement="The memory of MemRNN and of SAB grows quadratically.",
            measures="bytes kept for the way back, power of the length between the two longest sequences",
            test="2 to within .25",
            judge=judge_quadratic,
            counterfeit=_with_powers(stored=1.0, sab=1.0),
            genuine=_with_powers(mem=2.0, sab=1.95),
            scale="laptop",
        ),
    ),
    draw=draw,
)
