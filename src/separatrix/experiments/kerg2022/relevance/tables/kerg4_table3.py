"""kerg2022, Table 3 of chapter 4, with Fig. 6 of appendix B: characters and permuted pixels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import interval_of, number
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    in_turn,
    interval_row,
    judge,
    with_column,
    with_interval,
)
from separatrix.sources.kerg2022.screening import ScreeningRow, screening_row

from ..models import arithmetic, named_backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = "Bits per character and accuracy on permuted pixels, 95 % intervals over seeds"
GAPS = "Differences of two models, seed by seed, 95 % intervals"
PAIRS = (("RelRNN", "RNN"), ("RelRNN", "orth-RNN"), ("RelRNN", "expRNN"), ("RelLSTM", "LSTM"))
MODELS = ("RNN", "orth-RNN", "expRNN", "LSTM", "RelRNN", "RelLSTM", "h-detach", "SAB")


LEARNED = 0.9
"""Accuracy on pixels below which a network is taken as not yet trained."""


LEARNED_BY_BEST = 0.6
"""Accuracy on pixels that the best network must reach, or nothing is told of the others."""


class Settings(Params):
    """Texts, images and sizes; the defaults are the document's."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tasks: tuple[str, ...] = ("characters", "pixels")
    models: tuple[str, ...] = MODELS
    pixels_table: str = "smnist"
    characters_table: str = "ptb"
    pixels_data: str = "mnist"
    pixels_hidden: int = 100
    pixels_batch: int = 100
    n_epochs: int = 200
    text: str = "ptb-char"
    text_hidden: int = 1024
    text_batch: int = 128
    context: int = 125
    text_steps: int = 0  # by epochs
    text_epochs: int = 20
    n_characters: int = 0  # all
    clip: float = 1.0


class Compiled(Settings):
    """The same by compiled loops, several times faster (extra ``fast``)."""

    backend: str = "numba"


class Measured(Summary):
    """Curves of validation on pixels."""

    curves: list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class _Sized:
    """A row of hyperparameters with the size of the network."""

    row: ScreeningRow
    n_hidden: int

    @property
    def lr(self) -> float:
        """Of the row."""
        return self.row.lr


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task, model and seed."""
    for task in settings.tasks:
        for model in settings.models:
            for seed in settings.seeds:
                common = {"task": task, "model": model, "seed": seed, "clip": settings.clip}
                common |= named_backend(settings)
                yield {**common, **(_text(settings) if task == "characters" else _pixels(settings))}


def _text(settings: Settings) -> dict[str, Any]:
    return {
        "table": settings.characters_table,
        "n_hidden": settings.text_hidden,
        "data": settings.text,
        "n_train": settings.n_characters,
        "context": settings.context,
        "batch_size": settings.text_batch,
        "n_steps": settings.text_steps,
        "n_epochs": settings.text_epochs,
        "measure_every": max(1, settings.text_steps // 4),
    }


def _pixels(settings: Settings) -> dict[str, Any]:
    return {
        "table": settings.pixels_table,
        "n_hidden": settings.pixels_hidden,
        "data": settings.pixels_data,
        "n_train": 50_000,
        "n_epochs": settings.n_epochs,
        "n_steps": 0,
        "batch_size": settings.pixels_batch,
        "measure_every": 0,
    }


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    from ...trained.sequence_runs import Recipe, run_cell
    from ..models import build_core, training_settings

    def row(cell: Cell, n_inputs: int, n_outputs: int) -> _Sized:
        return _Sized(screening_row(cell.args["table"], cell.args["model"]), cell.args["n_hidden"])

    def core(cell: Cell, sized: _Sized, n_inputs: int) -> Any:
        return build_core(sized.row, n_inputs, sized.n_hidden, spawn(cell.seed, "kerg4", "weights"))

    def settings(sized: _Sized, n_steps: int, **options: Any) -> Any:
        return training_settings(sized.row, n_steps, **options)

    with arithmetic(cell):
        payload = run_cell(cell, Recipe(row, core, settings, lambda loss, model, sized: loss)).payload
    return {key: value for key, value in payload.items() if key != "gradients"}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Scores and differences."""
    from separatrix.core import plain
    from separatrix.training import paired_difference, spread

    results = [(cell, plain(payload)) for cell, payload in results]
    groups: dict[tuple[str, str], dict[int, float]] = {}
    for cell, payload in results:
        own = groups.setdefault((cell.args["task"], cell.args["model"]), {})
        own[cell.seed] = payload["score"]
    rows = []
    for (task, model), scores in groups.items():
        found = spread(list(scores.values()))
        rows.append({"task": task, "model": model, "mean": found.mean, "low": found.low, "high": found.high})
    gaps = []
    for task in dict.fromkeys(task for task, _ in groups):
        for first, second in PAIRS:
            if (task, first) in groups and (task, second) in groups:
                pairs = [(groups[task, first][seed], groups[task, second][seed]) for seed in groups[task, first]]
                gap = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
                ends = {"gap": gap.mean, "low": gap.low, "high": gap.high}
                gaps.append({"task": task, "first": first, "second": second, **ends})
    curves = [
        {"model": cell.args["model"], **payload["curve"]} for cell, payload in results if cell.args["task"] == "pixels"
    ]
    return Measured(curves=curves, tables={SCORES: rows, GAPS: gaps})


def _gap_rows(summary: Measured, task: str, first: str, **side: float) -> Judgement:
    found = [row for row in summary.table(GAPS) if row["task"] == task and row["first"] == first]
    rows = [
        interval_row(f"{row['first']} minus {row['second']}", row["gap"], (row["low"], row["high"]), **side)
        for row in found
    ]
    return judge(
        ", ".join(f"{row['first']} minus {row['second']} {interval_of(row, 'gap', signed=True)}" for row in found), rows
    )


def judge_text_rnn(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-table3-text-RelRNN``."""
    return _gap_rows(summary, "characters", "RelRNN", below=0.0)


def judge_text_lstm(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-table3-text-RelLSTM``."""
    return _gap_rows(summary, "characters", "RelLSTM", below=0.03)


def judge_pixels_lstm(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-table3-pixels-RelLSTM``: between networks that learned, or nothing is told."""
    means = {row["model"]: row["mean"] for row in summary.table(SCORES) if row["task"] == "pixels"}
    pair = [(model, means[model]) for model in ("RelLSTM", "LSTM") if model in means]
    short = [
        Row(f"{model} learned", mean, f"at least {LEARNED}", agrees=None) for model, mean in pair if mean < LEARNED
    ]
    found = _gap_rows(summary, "pixels", "RelLSTM", above=0.0)
    words = ", ".join(f"{model} {number(mean)}" for model, mean in pair)
    return judge(f"{found.evidence} ({words})", short) if short else found


def judge_pixels_rnn(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-table3-pixels-RelRNN``: above RNN, below orth-RNN and expRNN, as printed."""
    found = {row["second"]: row for row in summary.table(GAPS) if (row["task"], row["first"]) == ("pixels", "RelRNN")}
    rows = []
    for second, side in (("RNN", {"above": 0.0}), ("orth-RNN", {"below": 0.0}), ("expRNN", {"below": 0.0})):
        if second in found:
            row = found[second]
            rows.append(interval_row(f"RelRNN minus {second}", row["gap"], (row["low"], row["high"]), **side))
    best = max((row["mean"] for row in summary.table(SCORES) if row["task"] == "pixels"), default=0.0)
    nobody = Row("somebody learned pixels", best, f"at least {LEARNED_BY_BEST:g}", agrees=None)
    return judge(
        ", ".join(f"RelRNN minus {name} {interval_of(row, 'gap', signed=True)}" for name, row in found.items()),
        [nobody] if rows and best < LEARNED_BY_BEST else rows,
    )


def _moved(task: str, first: str, low: float, seconds: Sequence[str] | None = None) -> Any:
    where = {"task": task, "first": first} | ({} if seconds is None else {"second": tuple(seconds)})
    return with_interval(GAPS, low, low + 0.01, where, middle="gap")


def _trained(models: Sequence[str]) -> Any:
    return with_column(SCORES, "mean", 0.95, lambda row: row["task"] == "pixels" and row["model"] in models)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Validation accuracy on pixels, Fig. 6 of appendix B."""
    from separatrix.report.figures.recurrent.training import draw_model_curves

    return {"pixels": draw_model_curves(summary.curves, label="validation accuracy")} if summary.curves else {}


SMALL = {"pixels_table": "copy-found", "characters_table": "copy-found", "pixels_data": "digits"}

EXPERIMENT = Experiment(
    name="kerg4-table3",
    title="Characters and permuted pixels",
    document="kerg2022",
    place="Table 3, section 4.6.2; Fig. 6 of appendix B",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            models=MODELS[:6],
            text="made-up",
            text_hidden=8,
            pixels_hidden=8,
            pixels_batch=600,
            n_epochs=1,
            context=6,
            text_batch=4,
            text_steps=2,
            n_characters=400,
            **SMALL,  # type: ignore[arg-type]
        ),
        "laptop": Compiled(
            seeds=(0, 1, 2),
            models=MODELS[:6],
            text="tiny-shakespeare",
            text_hidden=64,
            pixels_hidden=64,
            pixels_batch=50,
            n_epochs=16,
            context=50,
            text_batch=20,
            text_steps=1000,
            n_characters=50_000,
            **SMALL,  # type: ignore[arg-type]
        ),
        "paper": Settings(models=("orth-RNN", "expRNN", "LSTM", "RelRNN")),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch4-table3-text-RelRNN",
            statement="On characters RelRNN is better than RNN, orth-RNN and expRNN.",
            measures="bits per character of RelRNN minus those of the others, seed by seed",
            test="95 % intervals below 0",
            judge=judge_text_rnn,
            counterfeit=_moved("characters", "RelRNN", 0.1),
            genuine=_moved("characters", "RelRNN", -0.2),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-table3-text-RelLSTM",
            statement="On characters RelLSTM is as good as LSTM.",
            measures="bits per character of RelLSTM minus those of LSTM, seed by seed",
            test="95 % interval below .03",
            judge=judge_text_lstm,
            counterfeit=_moved("characters", "RelLSTM", 0.2),
            genuine=_moved("characters", "RelLSTM", -0.02),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-table3-pixels-RelLSTM",
            statement="On permuted pixels RelLSTM is better than LSTM.",
            measures="accuracy of RelLSTM minus that of LSTM, seed by seed",
            test=f"95 % interval above 0; a network below {LEARNED} tells nothing",
            needs=(groups(SCORES, ("task", "model"), ("pixels", "RelLSTM"), ("pixels", "LSTM")),),
            as_a_whole=(SCORES,),
            judge=judge_pixels_lstm,
            counterfeit=in_turn(_trained(("RelLSTM", "LSTM")), _moved("pixels", "RelLSTM", -0.2)),
            genuine=in_turn(_trained(("RelLSTM", "LSTM")), _moved("pixels", "RelLSTM", 0.05)),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-table3-pixels-RelRNN",
            statement="On permuted pixels RelRNN is better than RNN and behind orth-RNN and expRNN.",
            measures="accuracy of RelRNN minus that of the others, seed by seed",
            test=f"95 % intervals above 0, below 0 and below 0; below {LEARNED_BY_BEST:g} of the best nothing is told",
            judge=judge_pixels_rnn,
            counterfeit=in_turn(_trained(("RelRNN",)), _moved("pixels", "RelRNN", -0.2, ("RNN",))),
            genuine=in_turn(
                _trained(("RelRNN",)),
                _moved("pixels", "RelRNN", 0.02, ("RNN",)),
                _moved("pixels", "RelRNN", -0.1, ("orth-RNN", "expRNN")),
            ),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("mnist", "tiny-shakespeare", "ptb-char"),
)
