"""kerg2022, section 5.6: identity rules of four with words left out, for a decoder that knows what is equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = "Share of right answers by word of the test, mean over seeds and 95 % interval"
LEFT_OUT = {
    "none": "identity_rules4",
    "abaa": "identity_rules4_missing_abaa",
    "abab": "identity_rules4_missing_abab",
    "both": "identity_rules4_missing",
}
CHANCE = 1 / 6


class Settings(Params):
    """Decoders that are told which objects are equal."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    n_steps: int = 2500
    n_test: int = 3000


class Measured(Summary):
    """A row per run and word."""

    runs: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per set of left-out words and seed."""
    for left_out in LEFT_OUT:
        for seed in settings.seeds:
            yield {"left_out": left_out, "n_steps": settings.n_steps, "n_test": settings.n_test, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train the decoder; accuracy by word."""
    from separatrix import tasks, training

    task = tasks.make_task(LEFT_OUT[cell.args["left_out"]], seed=cell.seed)
    answers = training.oracle_answers(task, n_steps=cell.args["n_steps"], n_test=cell.args["n_test"], seed=cell.seed)
    return {"by_word": answers.by_pattern}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per run and word, and a table of means."""
    from separatrix.training import spread

    runs = [
        {"left_out": cell.args["left_out"], "seed": cell.seed, "word": word, "accuracy": float(share)}
        for cell, payload in results
        for word, share in payload["by_word"].items()
    ]
    rows = []
    for left_out in dict.fromkeys(row["left_out"] for row in runs):
        for word in dict.fromkeys(row["word"] for row in runs):
            found = spread([r["accuracy"] for r in runs if (r["left_out"], r["word"]) == (left_out, word)])
            low, high = (found.low, found.high) if found.n > 1 else (0.0, 1.0)
            rows.append(
                {"left out": left_out, "word": word, "mean": found.mean, "low": low, "high": high, "n": found.n}
            )
    return Measured(runs=runs, tables={WORDS: rows})


def solved(left_out: str) -> Callable[[Measured], Judgement]:
    """The rule that every word of the test is answered although one was left out of training."""

    def judge_solved(summary: Measured) -> Judgement:
        """Every word of the test above .9."""
        from separatrix.training import spread

        rows, words = [], []
        for word in dict.fromkeys(row["word"] for row in summary.runs):
            found = spread(
                [row["accuracy"] for row in summary.runs if (row["left_out"], row["word"]) == (left_out, word)]
            )
            rows.append(interval_row(f"{word} without {left_out}", found.mean, (found.low, found.high), above=0.9))
            words.append(f"{word} {found.mean:.3f}")
        return judge(f"without {left_out}: {', '.join(words)}", rows)

    return judge_solved


def judge_predicted(summary: Measured) -> Judgement:
    """Without both words, position 1 is never shown alone, and the one word that needs it fails."""
    from separatrix.training import spread

    def of(word: str) -> Any:
        return spread([row["accuracy"] for row in summary.runs if (row["left_out"], row["word"]) == ("both", word)])

    lost = of("baca")
    rows = [interval_row("baca", lost.mean, (lost.low, lost.high), below=CHANCE)]
    for word in ("abca", "bcaa"):
        kept = of(word)
        rows.append(interval_row(word, kept.mean, (kept.low, kept.high), above=0.9))
    return judge(", ".join(f"{row.quantity} {row.measured:.3f}" for row in rows), rows)


def leaving_out(left_out: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row belongs to what was left out."""
    return lambda row: row["left_out"] == left_out


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Bars by word and by what was left out."""
    from separatrix.report.figures.relational.accuracies import draw_accuracies

    rows = [
        {
            "task": row["word"],
            "asked on": "unseen shapes",
            "model": "nothing left out" if row["left out"] == "none" else f"without {row['left out']}",
            "least": row["mean"],
            "greatest": row["mean"],
            **{key: row[key] for key in ("mean", "low", "high")},
        }
        for row in summary.table(WORDS)
    ]
    return {"words": draw_accuracies(rows)}


def word_claim(word: str, *, id: str, statement: str, measures: str) -> Claim:
    """The claim that leaving a word out of training keeps nobody from the words of the test."""
    return Claim(
        id=id,
        statement=statement,
        measures=measures,
        test="95 % interval over seeds above .9, every word",
        judge=solved(word),
        counterfeit=with_column("runs", "accuracy", 0.2, leaving_out(word)),
        genuine=with_column("runs", "accuracy", 0.99, leaving_out(word)),
        scale="laptop",
        erratum="kerg2022-missing-words",
    )


EXPERIMENT = Experiment(
    name="kerg5-missing",
    title="Identity rules of four with words left out, for a decoder that knows what is equal",
    document="kerg2022",
    place="section 5.6, unseen relations",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1), n_steps=3, n_test=60),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(10)), n_steps=5000, n_test=10_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        *(
            word_claim(
                word,
                id=f"kerg2022-ch5-missing-{word}",
                statement=f"Leaving out {word.upper()} alone does not keep a relational decoder from the words of the "
                "test.",
                measures="share of right answers by word, decoder that is told which objects are equal",
            )
            for word in ("abaa", "abab")
        ),
        Claim(
            id="separatrix-relational-missing",
            statement="Without both words a relational decoder fails on baca alone, whose relation is never shown.",
            measures="share of right answers by word, decoder that is told which objects are equal",
            test="95 % intervals over seeds: baca below chance, the other two above .9",
            judge=judge_predicted,
            counterfeit=with_column("runs", "accuracy", 0.95, lambda row: row["word"] == "baca"),
            genuine=with_column("runs", "accuracy", lambda row: 0.01 if row["word"] == "baca" else 0.99),
            document="separatrix",
            scale="laptop",
        ),
    ),
    draw=draw,
)
