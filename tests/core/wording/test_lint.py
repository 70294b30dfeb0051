from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from separatrix.core.wording import readable
from separatrix.core.wording.lint import faults_of

RESULTS = sorted((Path(__file__).parents[3] / "results").glob("*.json"))


@pytest.mark.parametrize(
    "text",
    [
        "of 1 comparisons",
        "4.26 +- 0.20",
        "off by 0.0e+00",
        "1.5e+02",
        "-0.000",
        "on same_diff",
        "1.554e-15",
        "0.604167 ± 0.116108",
        "0.60 ± 0.116",
        "0.12345678",
    ],
)
def test_a_faulty_sentence_is_told(text: str) -> None:
    assert faults_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "1 comparison",
        "0.60 ± 0.12",
        "layer 1 keeps several",
        "at v_1 and lambda_k",
        "10^-0.04",
        "v_10, 1e-9",
        "0.23125 ± 1.4e-9",
    ],
)
def test_a_good_sentence_is_left_alone(text: str) -> None:
    assert not faults_of(text)


def _published() -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in RESULTS]


def test_evidence_of_published_results_has_its_digits_and_words() -> None:
    told = []
    for name, body in _published():
        for claim, judged in body["claims"].items():
            for text in (judged["evidence"], judged.get("truth") or ""):
                told += [f"{name} {claim}: {fault}" for fault in faults_of(text)]
    assert RESULTS
    assert not told


def test_tables_of_published_results_have_their_digits_and_words() -> None:
    told = []
    for name, body in _published():
        for title, rows in body["summary"]["tables"].items():
            table = readable(rows, title=title)
            told += [f"{name}: {fault}" for text in (title, *table.columns) for fault in faults_of(text)]
            # the name of a parameter or of an option may stand in a cell, no cell is such a name alone
            cells = [fault for row in table.cells for cell in row for fault in faults_of(cell)]
            told += [f"{name}, {title}: {fault}" for fault in cells if not fault.startswith("a name of code")]
            told += [cell for row in table.cells for cell in row if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", cell)]
    assert not told
