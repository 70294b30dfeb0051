"""kerg2022, Table 1 and Table 3 of appendix A: characters of a text, bits and accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pydantic

from separatrix.core.wording import within_interval
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Summary,
    interval_row,
    judge,
    with_interval,
)

from .comparison import NO_SCORE, at_edge, chosen_runs, finite, run_comparison, score_row
from .models import MODELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BITS = "Bits per character on test data at the rate chosen on validation data, 95 % intervals over seeds"
GAPS = "nnRNN minus another model, seed by seed, 95 % interval"
NO_BITS = 8.0
"""What a run counts as whose bits are no number: a byte a character."""
UNGATED = ("expRNN", "RNN-orth", "EURNN", "RNN")
RESIZED = ("expRNN", "EURNN", "LSTM")
"""Models whose size differs between equal units and equal parameters by more than a few per cent."""


class Settings(Params):
    """Truncated gradients over windows of two lengths; a size of 0 is that of the document."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    models: tuple[str, ...] = MODELS
    matches: tuple[Literal["units", "parameters"], ...] = ("units", "parameters")
    rates: tuple[float, ...] = (1.0,)  # times the printed rates; the best on validation data is taken
    own_rates: dict[str, tuple[float, ...]] = pydantic.Field(default_factory=dict)  # instead of these, by model
    tables: tuple[str, ...] = ("ptb-150", "ptb-300")
    contexts: tuple[int, ...] = (150, 300)  # of the tables, in order
    data: str = "ptb-char"  # a registered text, or the path of a text file
    n_hidden: int = 0
    batch_size: int = 128
    n_epochs: int = 100
    n_steps: int = 0  # instead of epochs
    n_train: int = 0  # characters; 0 for all
    clip: float = 10.0
    measure_every: int = 0  # steps; 0 for an epoch


class Measured(Summary):
    """Curves of the chosen runs."""

    curves: list[dict[str, Any]]
    text: str
    contexts: list[int]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per window, matched quantity, model, rate and seed."""
    kept = settings.model_dump(
        include={"data", "n_hidden", "batch_size", "n_epochs", "n_steps", "n_train", "clip", "measure_every"}
    )
    for table, context in zip(settings.tables, settings.contexts, strict=True):
        for match in settings.matches:
            for model in settings.models:
                if match == "parameters" and model not in RESIZED:
                    continue
                for factor in settings.own_rates.get(model, settings.rates):
                    for seed in settings.seeds:
                        own = {"table": table, "context": context, "match": match, "model": model}
                        yield {"task": "characters", "lr_factor": factor, "seed": seed, **own, **kept}


def run(cell: Cell) -> Payload:
    """Train one model on the text."""
    payload = run_comparison(cell)
    return {key: value for key, value in payload.items() if key != "gradients"}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Bits and gaps to nnRNN, by window and matched quantity."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    rows, gap_rows, curves = [], [], []
    contexts = list(dict.fromkeys(cell.args["context"] for cell, _ in results))
    for context in contexts:
        here = [(cell, payload) for cell, payload in results if cell.args["context"] == context]
        reference = chosen_runs([(c, p) for c, p in here if c.args["model"] == "nnRNN"])
        for match in dict.fromkeys(cell.args["match"] for cell, _ in here):
            same = [(c, p) for c, p in here if c.args["match"] == match]
            for (_, model), runs in chosen_runs(same).items():
                row = {"context": context, "match": match, **score_row("characters", model, runs, otherwise=NO_BITS)}
                more = {
                    "rate_at_edge": at_edge(same, runs),
                    "accuracy": score_row("characters", model, runs, "accuracy")["mean"],
                }
                rows.append({k: v for k, v in row.items() if k not in ("task", "values")} | more)
                curves += [{"context": context, "model": f"{model}, {match}", **p["curve"]} for _, p in runs]
                if model != "nnRNN" and reference:
                    (own,) = reference.values()
                    gap_rows.append({"context": context, "match": match, "model": model, **_gap(own, runs)})
    text = results[0][0].args["data"] if results else ""
    return Measured(curves=curves, text=text, contexts=contexts, tables={BITS: rows, GAPS: gap_rows})


def _gap(own: Sequence[tuple[Cell, Payload]], other: Sequence[tuple[Cell, Payload]]) -> dict[str, float]:
    from separatrix.training import paired_difference

    found: dict[str, float] = {}
    for column, prefix, otherwise in (("score", "", NO_BITS), ("accuracy", "accuracy_", NO_SCORE)):
        mine = {cell.seed: finite(payload[column], otherwise) for cell, payload in own}
        pairs = [(mine[c.seed], finite(payload[column], otherwise)) for c, payload in other if c.seed in mine]
        gap = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
        found |= {f"{prefix}gap": gap.mean, f"{prefix}low": gap.low, f"{prefix}high": gap.high}
    return found


def _gaps(summary: Measured, models: Sequence[str], match: str | None = None) -> list[Mapping[str, Any]]:
    rows = [row for row in summary.table(GAPS) if row["model"] in models]
    return [row for row in rows if match is None or row["match"] == match]


def _gap_in_words(row: Mapping[str, Any], prefix: str) -> str:
    return within_interval(row[f"{prefix}gap"], row[f"{prefix}low"], row[f"{prefix}high"], signed=True)


def _judge_gaps(
    models: Sequence[str],
    *,
    below: float | None = None,
    above: float | None = None,
    prefix: str = "",
    match: str | None = None,
) -> Callable[[Measured], Judgement]:
    def judge_gaps(summary: Measured) -> Judgement:
        found = _gaps(summary, models, match)
        rows = [
            interval_row(
                f"nnRNN minus {row['model']}, windows of {row['context']}, equal {row['match']}",
                row[f"{prefix}gap"],
                (row[f"{prefix}low"], row[f"{prefix}high"]),
                below=below,
                above=above,
            )
            for row in found
        ]
        words = (
            f"{row['model']} {_gap_in_words(row, prefix)} (windows of {row['context']}, equal {row['match']})"
            for row in found
        )
        return judge(f"nnRNN minus {', '.join(words)}", rows)

    return judge_gaps


def _moved(models: Sequence[str], low: float, high: float, prefix: str = "") -> Any:
    return with_interval(GAPS, low, high, {"model": tuple(models)}, prefix=prefix)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Validation curves, one figure per window."""
    from separatrix.report.figures.recurrent.training import draw_model_curves

    label = f"bits per character, {summary.text}"
    return {
        f"window-{context}": draw_model_curves([c for c in summary.curves if c["context"] == context], label=label)
        for context in summary.contexts
    }


EXPERIMENT = Experiment(
    name="kerg3-table1",
    title="Characters of a text: bits and accuracy at equal units and equal parameters",
    document="kerg2022",
    place="Table 1; appendix A, Table 3",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            contexts=(8, 12),
            data="made-up",
            n_hidden=10,
            batch_size=8,
            n_steps=6,
            n_train=2000,
            measure_every=3,
        ),
        "laptop": Settings(
            rates=(0.5, 2.0, 8.0, 32.0),
            own_rates={  # some printed rates are low
                "nnRNN": (2.0, 8.0, 32.0, 128.0),
                "EURNN": (2.0, 8.0, 32.0, 128.0),
                "RNN-orth": (2.0, 8.0, 32.0, 128.0),
                "RNN": (32.0, 128.0, 512.0, 2048.0),
            },
            contexts=(40, 80),
            data="tiny-shakespeare",
            n_hidden=64,
            batch_size=20,
            n_steps=150,
            n_train=50_000,
            measure_every=50,
        ),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch3-table1-best",
            place="Table 1",
            statement="Among networks without gates nnRNN needs the fewest bits per character.",
            measures="test bits of nnRNN minus those of each other network, seed by seed",
            test="95 % intervals below 0 at both windows",
            judge=_judge_gaps(UNGATED, below=0.0),
            counterfeit=_moved(UNGATED, 0.05, 0.2),
            genuine=_moved(UNGATED, -0.2, -0.05),
            scale="paper",  # of networks that are trained out; a short training is in the tables
        ),
        Claim(
            id="kerg2022-ch3-table1-lstm",
            place="section 3.6.2",
            statement="An LSTM with as many units needs fewer bits than nnRNN.",
            measures="test bits of nnRNN minus those of LSTM, seed by seed",
            test="95 % intervals above 0",
            judge=_judge_gaps(("LSTM",), above=0.0, match="units"),
            counterfeit=_moved(("LSTM",), -0.2, -0.05),
            genuine=_moved(("LSTM",), 0.05, 0.2),
            scale="paper",  # of networks that are trained out; a short training is in the tables
        ),
        Claim(
            id="kerg2022-A-table3",
            place="appendix A, Table 3",
            statement="Among networks without gates nnRNN predicts the most characters rightly.",
            measures="test accuracy of nnRNN minus that of each other network, seed by seed",
            test="95 % intervals above 0 at both windows",
            judge=_judge_gaps(UNGATED, above=0.0, prefix="accuracy_"),
            counterfeit=_moved(UNGATED, -0.1, -0.01, "accuracy_"),
            genuine=_moved(UNGATED, 0.01, 0.1, "accuracy_"),
            scale="paper",  # of networks that are trained out; a short training is in the tables
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "ptb-char"),
)
