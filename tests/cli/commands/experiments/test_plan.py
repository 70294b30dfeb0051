from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import OWN, Answer
from separatrix.experiments import catalogue
from separatrix.lab import FirstStep, Record, Store, planning, shipped_publications
from short_experiments import SHORT, run_inline

Cli = Callable[..., Answer]


def test_a_plan_is_shown_before_the_run(cli: Cli, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for cell in SHORT.cells(SHORT.params("smoke")):
            store.write(Record(cell, {"mean": 0.0, "number": 1}, {"seconds": 2.0 + 0.1 * cell.args["number"]}))
    answer = cli("plan", OWN, "--store", tmp_path, "--jobs", 2)
    assert "short (paper): 8 cells, 4 of them done" in answer.out
    assert "on one core, from 4 records of the store" in answer.out
    assert "on 2 workers: about" in answer.out
    found = json.loads(cli("plan", OWN, "--store", tmp_path, "--json").out)
    assert found["seconds"]["low"] < found["seconds"]["typical"] < found["seconds"]["high"]


def test_a_plan_that_cannot_tell_says_so_and_what_to_do(cli: Cli, tmp_path: Path) -> None:
    with Store(tmp_path) as store:  # cells of a millisecond
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    answer = cli("plan", OWN, "--store", tmp_path, "--set", "n_cells=5000")
    assert "computing: cannot tell from 4 records of the store, whose cells are too short or too unlike" in answer.out
    assert "the same command with --measure 60s" in answer.out
    assert "longest cell" not in answer.out
    assert "about" not in answer.out
    assert "(" not in answer.out.partition("cannot tell")[2]  # no range that nobody could stand for
    found = json.loads(cli("plan", OWN, "--store", tmp_path, "--set", "n_cells=5000", "--json").out)
    assert found["cannot_tell"] is True
    assert found["sentence"] in answer.out
    assert found["seconds"] is found["longest"] is found["memory"] is found["wall_seconds"] is None
    assert found["guesses_not_to_be_relied_on"]["wall_seconds"] > 0
    assert found["n_cells"] == 5000


@pytest.mark.parametrize("jobs", [0, -1, 10_001])
def test_a_plan_takes_no_number_of_workers_that_a_run_would_refuse(cli: Cli, tmp_path: Path, jobs: int) -> None:
    told = [cli(word, OWN, "--store", tmp_path, "--jobs", jobs) for word in ("plan", "run")]
    for answer in told:
        assert answer.code == 2
        assert f"--jobs must be an integer of at least 1 and at most 10000; got {jobs}." in " ".join(answer.err.split())


@pytest.mark.parametrize(("high", "words"), [(90.0, True), (9.0, False)])
def test_a_rough_plan_says_what_would_make_it_better(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, high: float, words: bool
) -> None:
    with Store(tmp_path) as store:
        for cell in SHORT.cells(SHORT.params("smoke")):
            store.write(Record(cell, {"mean": 0.0, "number": 1}, {"seconds": 2.0}))
    monkeypatch.setattr(planning, "_estimate", lambda draws: planning.Estimate(1.0, 3.0, high))
    answer = cli("plan", OWN, "--store", tmp_path)
    assert ("this is rough; measure cells that are nearer in size" in answer.out) is words


@pytest.mark.usefixtures("no_workers")
def test_a_plan_measures_for_a_while_if_it_is_asked_to(cli: Cli, tmp_path: Path) -> None:
    answer = cli("plan", OWN, "--store", tmp_path, "--scale", "paper", "--measure", "60s")
    assert "measured 3 cells on the way to scale paper" in answer.err
    assert "short (paper): 8 cells" in answer.out
    assert "records of the store" in answer.out


@pytest.mark.slow
def test_the_largest_cell_is_begun_before_hours_are_spent(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("plan", OWN, "--scale", "paper", "--first-step")
    found = json.loads(cli(*words, "--json").out)
    assert (found["outcome"], found["args"]["number"]) == ("finished", 7)
    assert found["memory"] > 0
    failed = FirstStep("fault", 0.1, 1e6, "ValueError: the cell was told to fail")
    monkeypatch.setattr(sys.modules["separatrix.lab.engines.first_step"], "first_step", lambda cell: failed)
    answer = cli(*words)
    assert answer.code == 1
    assert "fault" in answer.out


def test_a_published_run_serves_where_nothing_was_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    name = next(name for name, found in shipped_publications(catalogue()).items() if found.records)
    assert "from the published run at scale laptop" in cli("plan", name).out
    assert "was ever measured" in cli("plan", OWN).err
