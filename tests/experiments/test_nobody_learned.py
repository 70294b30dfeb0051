"""Where nobody learned anything no claim about accuracies is confirmed: every published table, all of it at chance.

Networks that guess are alike, none is better than chance, and all of them fail: "as good as", "no difference" and "does
poorly" would be true of them for no reason of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from separatrix.experiments import catalogue
from separatrix.lab import Summary, Verdict, read_publication
from separatrix.lab.experiment.reading import judge_what_was_measured

RESULTS = Path(__file__).parents[2] / "results"
POSITIVE = (Verdict.CONFIRMED, Verdict.MISPRINT, Verdict.CONDITIONAL)
ACCURACIES = ("accuracy", "chosen", "greatest", "train", "training", "at chosen step", "best on curve", "right_if_kept",
              "unbounded", "unbounded_accuracy")  # fmt: skip
SCORES = ("Accuracy on", "Scores on test data", "Share of right answers", "Bits per character and accuracy")
"""Beginnings of the titles of tables whose means and intervals are accuracies, except of characters."""
GAPS = ("nnRNN minus another model", "Differences of two models")
ENDS = ("mean", "low", "high", "median", "least")
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]


def is_about_characters(row: Mapping[str, Any]) -> bool:
    """Whether its numbers are bits."""
    return row.get("task") == "characters" or "accuracy_gap" in row


def guessing(title: str, row: Mapping[str, Any], chance: float) -> dict[str, Any]:
    """A row of networks that are right by chance alone."""
    changed = {name: chance for name in ACCURACIES if isinstance(row.get(name), float)}
    changed |= {name: 0.0 for name in ("accuracy_gap", "accuracy_low", "accuracy_high") if name in row}
    if title.startswith(SCORES) and not is_about_characters(row):
        changed |= {name: chance for name in ENDS if name in row}
    if title.startswith(GAPS) and not is_about_characters(row):
        changed |= dict.fromkeys(("gap", "low", "high"), 0.0)
    return {**row, **changed}


def guessed(real: Summary, chance: float) -> Summary:
    """A run in which nobody learned."""
    values: dict[str, Any] = {
        "tables": {title: [guessing(title, row, chance) for row in rows] for title, rows in real.tables.items()}
    }
    for name in type(real).model_fields:
        rows = getattr(real, name)
        if name != "tables" and isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            values[name] = [guessing(name, row, chance) for row in rows]
    return real.model_copy(update=values)


def read(name: str) -> Summary:
    experiment = catalogue()[name]
    return experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("chance", [0.5, 0.125])
@pytest.mark.parametrize("name", PUBLISHED)
def test_nothing_is_confirmed_of_networks_that_guess(name: str, chance: float) -> None:
    real = read(name)
    summary, flattering = guessed(real, chance), []
    for claim in catalogue()[name].claims:
        judged = judge_what_was_measured(claim, summary)
        if judged.verdict in POSITIVE and judged != judge_what_was_measured(claim, real):
            flattering.append(claim.id)
    assert flattering == []


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("kerg5-encoders", "kerg2022-ch5-encoders-equal"),  # no difference
        ("kerg5-fig6", "kerg2022-ch5-fig6-random-corelnet"),  # does poorly
        ("kergC-fig5", "kerg2022-C-fig5-nhid-basic"),  # is as good as
        ("kerg3-fig2", "kerg2022-ch3-fig2-pixels-lesser"),  # is better than
        ("kerg3-fig2", "kerg2022-ch3-fig2-pixels-match"),
        ("cache-eviction", "separatrix-cache-oracle"),
    ],
)
def test_of_networks_that_guess_neither_good_nor_bad_news_is_told(name: str, key: str) -> None:
    claim = next(claim for claim in catalogue()[name].claims if claim.id == key)
    judged = judge_what_was_measured(claim, guessed(read(name), 0.5))
    assert judged.verdict is Verdict.UNDECIDED
    assert all("learned" in row.quantity for row in judged.rows if row.agrees is None)
