"""kerg2022, appendix D.1: gradients over time, and states that stop listening, after a hundred steps of adding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Summary,
    in_turn,
    interval_row,
    judge,
    with_interval,
)

from .models import glorot_core

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

WORTH_TELLING = 0.1
"""In factors of ten: a change by less than a fifth is no saturation."""
TABLE = "Unitary network minus LSTM, 95 % interval over seeds"


class Settings(Params):
    """A uRNN and an LSTM of one size, trained a little on the adding task."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    length: int = 200
    n_hidden: int = 128
    n_steps: int = 100  # "after 100 iterations"
    batch_size: int = 50
    lr: float = 1e-3


class Measured(Summary):
    """By model, mean logarithms over seeds against the step of the sequence."""

    curves: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per model and seed."""
    for model in ("urnn", "lstm"):
        for seed in settings.seeds:
            yield {**settings.model_dump(exclude={"seeds"}), "model": model, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train, then follow gradients and the effect of a new input along sequences that were not trained on."""
    import torch

    from separatrix import tasks
    from separatrix.training import TrainingSettings, train

    args = cell.args
    task = tasks.Adding(args["length"])
    model = _model(args["model"], args["n_hidden"], spawn(cell.seed, "kergD-saturation", "weights"))
    batches = tasks.StreamedBatches(task, args["batch_size"], cell.seed)
    settings = TrainingSettings(n_steps=args["n_steps"], lr=args["lr"], optimiser="rmsprop", beta2=0.9, clip_norm=10.0)
    run = train(model, batches, lambda m, batch: task.loss(m(batch.inputs), batch), settings)
    test = tasks.StreamedBatches(task, args["batch_size"], cell.seed, "test")(0)
    gradients = _gradient_norms(model, test.inputs, lambda outputs: task.loss(outputs, test))
    with torch.no_grad():
        listening = _listening(model, test.inputs, spawn(cell.seed, "kergD-saturation", "other inputs"))
    return {
        "loss": float(run.history.last("loss")),
        "gradients": gradients.log10().tolist(),
        "listening": listening.log10().tolist(),
    }


def _model(name: str, n_hidden: int, generator: Any) -> nn.Module:
    from separatrix import nn

    core: Any = nn.URNN(2, n_hidden, generator=generator) if name == "urnn" else None
    if core is None:
        core = glorot_core("LSTM", 2, n_hidden, generator)
    return nn.SequenceModel(core, 1, "last", generator=generator)


def _advance(model: Any, x: Tensor, state: Any) -> tuple[Tensor, Any]:
    """Outputs and state after one step; for an LSTM the state is the pair (h, c)."""
    output, state = model.core(x.unsqueeze(1), state)
    return output[:, -1], state


def _gradient_norms(model: Any, x: Tensor, loss: Any) -> Tensor:
    """Norm of the gradient by the state after every step, mean over sequences."""
    import torch

    states, state, outputs = [], None, None
    for step in x.unbind(1):
        outputs, state = _advance(model, step, state)
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            part.retain_grad()
        states.append(parts)
    value = loss(model.head(outputs)) * len(x)
    value.backward()
    norms = []
    for parts in states[:-1]:  # the read-out takes the last output, not the state it stands for
        squares = [part.grad.abs().square().sum(-1) for part in parts if part.grad is not None]
        norms.append(torch.stack(squares).sum(0).sqrt().mean())
    model.zero_grad()
    return torch.stack(norms).clamp_min(1e-30)


def _listening(model: Any, x: Tensor, generator: Any) -> Tensor:
    """How far apart two inputs at a step leave the state, mean over sequences."""
    import torch

    moved, state = [], None
    for step in x.unbind(1):
        other = torch.rand(step.shape, generator=generator)
        _, elsewhere = _advance(model, torch.stack([other[:, 0], 1 - step[:, 1]], -1), state)
        _, state = _advance(model, step, state)
        ends = (state[0], elsewhere[0]) if isinstance(state, tuple) else (state, elsewhere)
        moved.append((ends[0] - ends[1]).abs().square().sum(-1).sqrt().mean())
    return torch.stack(moved).clamp_min(1e-30)


def _change_over_time(curve: Sequence[float]) -> float:
    """Factors of ten between the first and the last tenth of the sequence."""
    tenth = max(1, len(curve) // 10)
    return sum(curve[-tenth:]) / tenth - sum(curve[:tenth]) / tenth


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Paired differences over seeds of what is lost along the sequence."""
    from separatrix.training import paired_difference, spread

    by_model = {name: [p for c, p in results if c.args["model"] == name] for name in ("urnn", "lstm")}
    rows = []
    if all(by_model.values()):
        for quantity in ("gradients", "listening"):
            first, second = ([_change_over_time(p[quantity]) for p in by_model[name]] for name in ("urnn", "lstm"))
            gap, own = paired_difference(first, second), spread(second)
            row = {"quantity": quantity, "urnn": sum(first) / len(first), "lstm": own.mean}
            row |= {"lstm_low": own.low, "lstm_high": own.high}
            rows.append({**row, "difference": gap.mean, "low": gap.low, "high": gap.high})
    curves = [
        {
            "model": name,
            "quantity": quantity,
            "curve": [sum(values) / len(own) for values in zip(*(p[quantity] for p in own), strict=True)],
        }
        for name, own in by_model.items()
        if own
        for quantity in ("gradients", "listening")
    ]
    return Measured(curves=curves, tables={TABLE: rows})


def judge_gradients(summary: Measured) -> Judgement:
    """Decide ``kerg2022-D1-gradients``: what is lost on the way back is what the last steps have over the first."""
    (row,) = (row for row in summary.table(TABLE) if row["quantity"] == "gradients")
    evidence = f"towards the first steps gradients fall by 10^{row['lstm']:.2f} (LSTM) and 10^{row['urnn']:.2f} (uRNN)"
    name = "factors of ten that a gradient loses, uRNN minus LSTM"
    return judge(evidence, [interval_row(name, row["difference"], (row["low"], row["high"]), below=0.0)])


def judge_saturation(summary: Measured) -> Judgement:
    """Decide ``kerg2022-D1-saturation``."""
    (row,) = (row for row in summary.table(TABLE) if row["quantity"] == "listening")
    evidence = (
        f"from the first to the last steps the effect of an input changes by 10^{row['lstm']:+.2f} (LSTM) and "
        f"10^{row['urnn']:+.2f} (uRNN)"
    )
    name = "change of an input's effect in factors of ten"
    rows = [
        interval_row(f"{name}, LSTM", row["lstm"], (row["lstm_low"], row["lstm_high"]), below=-WORTH_TELLING),
        interval_row(f"{name}, uRNN minus LSTM", row["difference"], (row["low"], row["high"]), above=0.0),
    ]
    return judge(evidence, rows)


def _moved(quantity: str, low: float, high: float, prefix: str = "") -> Any:
    return with_interval(TABLE, low, high, {"quantity": quantity}, prefix=prefix)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Both quantities against the step."""
    from separatrix.report.figures.recurrent.training import draw_over_steps

    return {
        quantity: draw_over_steps([c for c in summary.curves if c["quantity"] == quantity], label, caption=caption)
        for quantity, label, caption in (
            (
                "gradients",
                "log10 of the gradient",
                """Size of the gradient of the last output with respect to the state at each step, after training on
                the copy task. What falls to the left does not reach the beginning.""",
            ),
            (
                "listening",
                "log10 of an input's effect",
                """Effect of the input at each step on the state of that step, after training: a network that still
                listens has a level line that is not low.""",
            ),
        )
    }


EXPERIMENT = Experiment(
    name="kergD-saturation",
    title="Gradients over time and saturation after a hundred steps of adding",
    document="kerg2022",
    place="appendix D.1",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1, 2), length=40, n_hidden=24, n_steps=10, batch_size=10),
        "laptop": Settings(batch_size=20),
        "paper": Settings(seeds=tuple(range(10)), length=750, n_hidden=512),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-D1-gradients",
            statement="Gradients by the state vanish much faster along the sequence in an LSTM than in a uRNN.",
            measures="gradient norms of the last tenth of steps over those of the first, after training a little",
            test="95 % interval of the paired difference",
            judge=judge_gradients,
            counterfeit=_moved("gradients", 1.0, 2.0),
            genuine=_moved("gradients", -2.0, -1.0),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-D1-saturation",
            statement="States of an LSTM lose their ability to change along the sequence, those of a uRNN much less.",
            measures="how far two different inputs leave the state apart, last tenth of steps over first",
            test="95 % intervals: the LSTM loses a fifth at least, and the paired difference is above 0",
            judge=judge_saturation,
            counterfeit=_moved("listening", -2.0, -1.0),
            genuine=in_turn(_moved("listening", 1.0, 2.0), _moved("listening", -2.0, -1.0, "lstm_")),
            scale="laptop",
        ),
    ),
    draw=draw,
)
