"""The comparison of the README, made from what ``./run bench`` wrote.

    python docs/sitegen/comparison.py

puts it between the two marks; ``./run bench`` does so by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
BENCH = PROJECT / "benchmarks" / "results" / "bench.json"
BEGIN, END = "<!-- comparison, made by ./run bench -->", "<!-- end of comparison -->"


def comparison_table(bench: Path = BENCH) -> str:
    """Rows that are meant for the README, with what the goal says."""
    parts: Mapping[str, Any] = json.loads(bench.read_text(encoding="utf-8"))["parts"]
    lines = ["| job | peer | ours over theirs | spread | goal | |", "| --- | --- | --- | --- | --- | --- |"]
    for part in parts.values():
        lines += [_line(row) for row in part["rows"] if row["readme"]]
    return "\n".join([*lines, "", _where(parts)])


def _where(parts: Mapping[str, Any]) -> str:
    """On what and when the parts were measured: they need not come from one run."""
    places: dict[str, list[str]] = {}
    for name, part in parts.items():
        known = part.get("environment", {})
        place = f"{known['processor']}, {known['day']}" if known.get("processor") else "a run that names no processor"
        places.setdefault(place, []).append(name)
    return "Measured on: " + "; ".join(f"{place} ({', '.join(names)})" for place, names in places.items()) + "."


def _line(row: Mapping[str, Any]) -> str:
    spread = f"{_number(row['least'])} to {_number(row['most'])}" if row["least"] is not None else ""
    verdict = {True: "holds", False: "**missed**", None: ""}[row["holds"]]
    measured = _number(row["ratio"]) or row["note"]
    cells = (row["job"], row["peer"], measured, spread, _number(row["goal"]), verdict)
    return "| " + " | ".join(cell.replace("|", "&#124;") for cell in cells) + " |"


def _number(value: float | None) -> str:
    """Two digits that tell something."""
    return "" if value is None else f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def put_into(readme: Path = PROJECT / "README.md", bench: Path = BENCH) -> None:
    """Replace what stands between the marks."""
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n{comparison_table(bench)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    put_into()
