"""The page that sets published accuracies beside the printed ones."""

from __future__ import annotations

import json
from pathlib import Path

from separatrix.experiments.kerg2022.relational.suite import ACCURACIES
from sitegen.relational import relational_page

RESULTS = Path(__file__).parent.parent.parent / "results"


def test_what_is_published_at_size_is_on_the_page() -> None:
    page = relational_page()
    given = json.loads((RESULTS / "kerg5-encoders.json").read_text(encoding="utf-8"))
    row = given["summary"]["tables"][ACCURACIES][-1]
    assert "`kerg5-encoders`, laptop" in page
    assert row["mean"] == 1.0
    assert f"| {row['model']} | {row['n']} | 100 |" in page


def test_a_game_stands_beside_its_printed_number_and_a_rehearsal_is_left_out(tmp_path: Path) -> None:
    given = json.loads((RESULTS / "kerg5-encoders.json").read_text(encoding="utf-8"))
    rows = given["summary"]["tables"][ACCURACIES]
    game = {"task": "game_between", "model": "CoRelNet", "mean": 0.944, "low": 0.9, "high": 0.98, "n": 3}
    rows[:] = [{**rows[0], **game, "asked on": family} for family in ("hexominoes", "public hexos")]
    (tmp_path / "kerg5-encoders.json").write_text(json.dumps(given), encoding="utf-8")
    lines = [line for line in relational_page(tmp_path).splitlines() if line.startswith("| between")]
    assert len(lines) == 2
    assert all("| 96.6 ± 2.2 | 3 | 94 | 90 to 98 | -1 |" in line for line in lines)
    (tmp_path / "kerg5-encoders.json").write_text(json.dumps({**given, "scale": "smoke"}), encoding="utf-8")
    assert "No run is published." in relational_page(tmp_path)
