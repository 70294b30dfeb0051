"""The comparison of the README is that of the last ``./run bench``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sitegen import comparison


def bench_file(folder: Path, **changes: object) -> Path:
    row = {
        "job": "a | job", "peer": "p", "ratio": 0.5, "least": 0.041, "most": 1.26, "goal": 0.4, "rounds": 3,
        "note": "n",
        "readme": True, "facts": {}, "holds": False,
    }  # fmt: skip
    hidden = {**row, "readme": False, "job": "hidden"}
    target = folder / "bench.json"
    target.write_text(json.dumps({"environment": {}, "parts": {"a": {"rows": [{**row, **changes}, hidden]}}}))
    return target


def test_the_readme_shows_what_was_measured() -> None:
    table = comparison.comparison_table()
    readme = (comparison.PROJECT / "README.md").read_text(encoding="utf-8")
    between = re.search(f"{comparison.BEGIN}\n(.*?)\n{comparison.END}", readme, re.DOTALL)
    assert between is not None
    assert between.group(1) == table, f"python docs/sitegen/comparison.py writes\n{table}"


def test_every_row_says_whether_its_goal_holds() -> None:
    parts = json.loads(comparison.BENCH.read_text(encoding="utf-8"))["parts"]
    for part in parts.values():
        for row in part["rows"]:
            judged = row["goal"] is not None and row["ratio"] is not None
            assert row["holds"] == (row["ratio"] <= row["goal"] if judged else None)


def test_a_row_becomes_a_line(tmp_path: Path) -> None:
    lines = comparison.comparison_table(bench_file(tmp_path)).splitlines()
    assert lines[2:3] == ["| a &#124; job | p | 0.50 | 0.041 to 1.26 | 0.40 | **missed** |"]
    absent = bench_file(tmp_path, ratio=None, least=None, most=None, holds=None, note="p is not installed")
    assert comparison.comparison_table(absent).splitlines()[2:3] == [
        "| a &#124; job | p | p is not installed |  | 0.40 |  |"
    ]


def test_parts_of_different_machines_and_days_are_told_apart(tmp_path: Path) -> None:
    target = bench_file(tmp_path)
    (part,) = json.loads(target.read_text())["parts"].values()
    today, before = ({**part, "environment": {"processor": "P", "day": day}} for day in ("2026-11-19", "2026-11-18"))
    target.write_text(json.dumps({"parts": {"a": today, "b": before, "c": today, "d": part}}))
    told = "Measured on: P, 2026-11-19 (a, c); P, 2026-11-18 (b); a run that names no processor (d)."
    assert comparison.comparison_table(target).splitlines()[-1] == told


def test_the_table_is_put_between_its_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{comparison.BEGIN}\nan earlier table\n{comparison.END}\nafter\n")
    comparison.put_into(readme, bench_file(tmp_path, holds=True, ratio=0.3))
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "earlier" not in text
    assert "| 0.30 | 0.041 to 1.26 | 0.40 | holds |" in text
