"""Does the advice of ``separatrix.check`` help? Pairs of trainings with and without the advised change.

Both arms of a pair have the same data, batches, random numbers and budget. A gain is shown if the interval of the
paired differences in test accuracy, 95 % by Student's t over the seeds, lies above zero; harm if it lies below; else no
gain is shown, and the table says so. The check itself is asked before training, in both arms.
"""

from __future__ import annotations

import math
import statistics
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
    groups,
    interval_row,
    judge,
    with_column,
    with_interval,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .advice.lessons import Lesson

TABLE = "Accuracy without and with the advised change"


class Settings(Params):
    """Which pairs (all if none is named), and how much of the training each gets."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7)
    pairs: tuple[str, ...] = ()
    share: float = 1.0


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per pair and seed: both arms."""
    from .advice.pairs import PAIRS

    for pair in settings.pairs or tuple(PAIRS):
        for seed in settings.seeds:
            yield {"pair": pair, "share": settings.share, "seed": seed}


def run(cell: Cell) -> Payload:
    """Check and train both arms."""
    from .advice.lessons import teach
    from .advice.pairs import PAIRS

    pair = PAIRS[cell.args["pair"]]
    found: dict[str, Any] = {}
    for arm, mended in (("before", False), ("after", True)):
        lesson = pair.lesson(cell.seed, mended)
        lesson.n_steps = math.ceil(lesson.n_steps * cell.args["share"])
        found[f"said_{arm}"] = _said(lesson, pair.finding)
        taught = teach(lesson, cell.seed)
        found |= {f"{name}_{arm}": value for name, value in taught.items()}
    return found


def _said(lesson: Lesson, finding: str) -> str:
    """The severity at which the check tells the finding, ``absent`` if it does not."""
    from separatrix.diagnose import diagnose

    x, y = lesson.checked or (lesson.train[0][:48], lesson.train[1][:48])
    lesson.model.train(lesson.checked_mode == "train")
    optimiser = lesson.optimiser(lesson.model)
    told = diagnose(lesson.model, x, loss=lesson.loss, target=y, optimizer=optimiser).find(finding)
    return "absent" if told is None else told.severity


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Per pair: means of both arms, the interval of their difference, in how many seeds it is better."""
    from .advice.pairs import PAIRS

    groups: dict[str, list[Payload]] = {}
    for cell, payload in results:
        groups.setdefault(cell.args["pair"], []).append(payload)
    rows = []
    for name, payloads in groups.items():
        pair = PAIRS[name]
        gains = [float(p["accuracy_after"]) - float(p["accuracy_before"]) for p in payloads]
        low, high = interval(gains)
        rows.append(
            {
                "pair": name,
                "finding": pair.finding,
                "change": pair.change,
                "optimiser": pair.optimiser,
                "promised": pair.promised,
                "before": statistics.fmean(float(p["accuracy_before"]) for p in payloads),
                "after": statistics.fmean(float(p["accuracy_after"]) for p in payloads),
                "gain": statistics.fmean(gains),
                "low": low,
                "high": high,
                "better": sum(gain > 0 for gain in gains),
                "seeds": len(payloads),
                "diverged": sum(bool(p["diverged_before"]) for p in payloads),
                "told": sum(p["said_before"] not in ("absent", "ok") for p in payloads),
                "still told": sum(_accuses(p["said_after"], pair.finding) for p in payloads),
                "result": "helps" if low > 0 else "harms" if high < 0 else "no gain shown",
            }
        )
    return Summary(tables={TABLE: rows})


def _accuses(severity: str, finding: str) -> bool:
    """Whether the mended arm is still told of it; what is a note to begin with accuses nobody."""
    return severity in ("warning", "fault") or (severity == "note" and finding != "memory")


def interval(gains: Sequence[float]) -> tuple[float, float]:
    """95 % of the mean by Student's t; everything is possible with one seed."""
    if len(gains) < 2:
        return -math.inf, math.inf
    from scipy.stats import t

    half = float(t.ppf(0.975, len(gains) - 1)) * statistics.stdev(gains) / math.sqrt(len(gains))
    return statistics.fmean(gains) - half, statistics.fmean(gains) + half


def judge_promised(summary: Summary) -> Judgement:
    """Decide ``separatrix-advice-helps``."""
    found = [row for row in summary.table(TABLE) if row["promised"]]
    rows = [_gain(row, above=0.0) for row in found]
    return judge(f"of {len(found)} changes whose advice promises accuracy {_counted(found)}.", rows)


def judge_unpromised(summary: Summary) -> Judgement:
    """Decide ``separatrix-advice-modest``."""
    found = [row for row in summary.table(TABLE) if not row["promised"]]
    rows = [_gain(row, below=0.0) for row in found]
    return judge(f"of {len(found)} changes without a promise {_counted(found)}.", rows)


def _gain(row: Mapping[str, Any], **side: float) -> Row:
    """A gain by its interval, and not by the word in the table; one seed tells nothing."""
    ends = (row["low"], row["high"]) if row["seeds"] > 1 else (-math.inf, math.inf)
    return interval_row(f"gain of {row['pair']}", row["gain"], ends, **side)


def _counted(found: Sequence[Mapping[str, Any]]) -> str:
    raised, lowered = sum(row["low"] > 0 for row in found), sum(row["high"] < 0 for row in found)
    return f"{raised} raise it, {lowered} lower it and {len(found) - raised - lowered} leave it open"


def judge_told(summary: Summary) -> Judgement:
    """Decide ``separatrix-advice-told``."""
    found = summary.table(TABLE)
    rows = [Row(f"told before, {row['pair']}", row["told"], row["seeds"]) for row in found]
    rows += [Row(f"still told after, {row['pair']}", row["still told"], 0) for row in found]
    told, seeds = sum(row["told"] for row in found), sum(row["seeds"] for row in found)
    still = sum(row["still told"] for row in found)
    return judge(f"told in {told} of {seeds} models before the change, still told in {still} after it.", rows)


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Gains with their intervals, one line per pair."""
    from separatrix.report.figures.results.advice import draw_gains

    return {"gains": draw_gains(summary.table(TABLE))}


FAULTS = (
    "vanishing-sgd", "vanishing-adam", "deep-he", "deep-residual", "deep-norm", "exploding-sgd", "exploding-adam",
    "dead", "saturated", "symmetric", "stuck", "unscaled-sgd", "unscaled-adam", "double-softmax-sgd",
    "double-softmax-adam", "raw-nll", "loud-head-sgd", "loud-head-adam", "linear-chain", "wild-rate",
    "rate-by-curvature", "frozen", "cut-off", "logarithm", "root", "tiny-batch", "stale", "forget-gate",
    "forget-default", "small-recurrence", "large-recurrence", "unstable-scan", "unstable-long", "cut-in-time",
    "batch-first", "no-rest", "sharp-attention", "no-residual", "wrong-axis", "leak", "broken-tie",
)  # fmt: skip
"""The planted faults by name: to read them where they are made is to import torch."""

EXPERIMENT = Experiment(
    name="check-advice",
    title="Does the advice of separatrix.check help?",
    document="separatrix",
    place="check",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1), pairs=("dead", "cut-off", "forget-gate"), share=0.3),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(24))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-advice-helps",
            statement="Each change whose advice promises accuracy raises test accuracy on a task that needs the part.",
            measures="paired differences of test accuracy over seeds",
            test="95 % interval of each mean difference above zero; refuted if one lies below, else undecided",
            judge=judge_promised,
            counterfeit=with_interval(TABLE, -0.2, -0.1, {"promised": True}, middle="gain"),
            genuine=with_interval(TABLE, 0.1, 0.2, {"promised": True}, middle="gain"),
            scale="laptop",
        ),
        Claim(
            id="separatrix-advice-modest",
            statement="Changes whose advice promises no accuracy raise none.",
            measures="paired differences of test accuracy over seeds",
            test="95 % interval of each mean difference below zero; refuted if one lies above, else undecided",
            judge=judge_unpromised,
            counterfeit=with_interval(TABLE, 0.1, 0.2, {"promised": False}, middle="gain"),
            genuine=with_interval(TABLE, -0.2, -0.1, {"promised": False}, middle="gain"),
            scale="laptop",
        ),
        Claim(
            id="separatrix-advice-told",
            statement="The check tells each planted fault before the change and no longer after it.",
            measures="severity of the finding in both arms before training",
            test="in every model",
            needs=(groups(TABLE, "pair", *FAULTS),),
            judge=judge_told,
            counterfeit=with_column(TABLE, "told", 0),
            genuine=lambda summary: with_column(TABLE, "still told", 0)(
                with_column(TABLE, "told", lambda row: row["seeds"])(summary)
            ),
            scale="laptop",
        ),
    ),
    draw=draw,
)
