from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_here
from separatrix.cli.commands.networks.relational import _asked, _explained
from separatrix.lab import Store


def test_a_sample_sheet_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sheet.png"
    done = run_here(capsys, monkeypatch, "relational", "sample", "comparison", "-o", str(path), "--rows", "2")
    assert done.code == 0, done.err
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "2 problems of each part" in done.out


def test_wrong_requests_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_here(capsys, monkeypatch, "relational", "sample", "rmt", "-o", str(tmp_path / "x.png"))
    assert done.code == 2
    assert "Did you mean 'rmts'" in done.err
    with Store(tmp_path / "empty"):
        done = run_here(capsys, monkeypatch, "relational", "explain", "kerg5-fig4", "--store", str(tmp_path / "empty"))
    assert done.code == 2
    assert "no complete run" in done.err


@pytest.mark.slow
def test_a_stored_run_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store")
    done = run_here(capsys, monkeypatch, "run", "kerg5-fig4", "--scale", "smoke", "--jobs", "1", "-q", "--store", store)
    assert done.code == 0, done.err
    done = run_here(
        capsys, monkeypatch, "relational", "explain", "kerg5-fig4", "--store", store, "--oracle-steps", "3", "--json"
    )
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert {row["model"] for row in rows} >= {"CoRelNet", "random encoder CoRelNet"}
    assert all(row["chance"] == 0.5 for row in rows)
    assert all(row["told what is equal"].endswith("after 3 steps") for row in rows)


def test_held_out_shapes_are_not_mixed() -> None:
    row = {
        "task": "same_diff",
        "model": "A",
        "asked": "unseen shapes",
        "greatest": 1.0,
        "train": 1.0,
        "gradient_ratio": 0.5,
    }
    runs = [{**row, "holdout": m, "accuracy": a} for m, a in ((0, 0.9), (-1, 0.5))]
    curves = [
        {"task": "same_diff", "model": "A", "holdout": m, "patterns": {"same": a}} for m, a in ((0, 0.8), (-1, 0.2))
    ]
    found = [_explained(("same_diff", m, "A"), runs, curves, {}) for m in (0, -1)]
    assert [(one["accuracy"], one["by_pattern"], one["collapses"]) for one in found] == [
        (0.9, {"same": 0.8}, 1),
        (0.5, {"same": 0.2}, 1),
    ]


def test_a_run_is_explained_on_its_own_split() -> None:
    task = _asked("same_diff", 40, 60)
    assert (task.holdout, len(task.images)) == (40, 60)
    assert _asked("same_diff", -1, 60).holdout > 40  # as many as possible
