from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import OWN, Answer

Cli = Callable[..., Answer]


@pytest.mark.usefixtures("no_workers")
def test_a_sweep_is_a_table_and_a_heat_map_and_continues(cli: Cli, tmp_path: Path) -> None:
    words = ("sweep", OWN, "--grid", "n_cells=1,2", "--grid", "expected=0.5,0.25", "-j", 1, "--store", tmp_path / "s")
    answer = cli(*words, "--output", tmp_path / "map.svg")
    assert answer.code == 0, answer.err
    assert answer.out.count("0.25") == 2
    assert (tmp_path / "map.svg").read_text().startswith("<?xml")
    again = json.loads(cli(*words, "--json").out)
    assert [row["n"] for row in again["rows"]] == [1, 1, 2, 2]


def test_a_budget_stops_a_sweep_and_the_same_command_goes_on(cli: Cli, tmp_path: Path) -> None:
    # cells that wait: those without a pause may all be done before the run hears that its time is over
    grid = ("--grid", "n_cells=1,2,3", "--grid", "pause=0.3")
    words = ("sweep", OWN, *grid, "-j", 1, "--store", tmp_path, "--json")
    answer = cli(*words, "--budget", "0.000001s")
    assert answer.code == 0
    assert len(json.loads(answer.out)["rows"]) < 3
    assert "the same command continues" in answer.err
    assert len(json.loads(cli(*words).out)["rows"]) == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "at least one parameter"),
        (("--grid", "n_cells"), "--grid takes key=value"),
        (("--grid", "n_cells=1..x"), "a span is low..high"),
        (("--grid", "n_cells=5..1", "--random", "2"), "from a smaller to a larger"),
        (("--grid", "n_cells=1..5"), "only random points"),
        (("--grid", "n_cels=1,2"), "Did you mean 'n_cells'"),
        (("--grid", "n_cells=1", "--output", "a.png"), "needs two parameters"),
        (("--grid", "n_cells=1", "--grid", "pause=0", "--output", "a.doc"), "must end with .png"),
        (("--grid", "n_cells=1", "--budget", "soon"), "--budget takes a time"),
        (("--grid", "n_cells=1", "--random", "-1"), "n_random must be"),
    ],
)
def test_wrong_words_are_one_sentence_before_the_work(
    words: tuple[str, ...], sentence: str, cli: Cli, tmp_path: Path
) -> None:
    answer = cli("sweep", OWN, *words, "--store", tmp_path / "s")
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "s").exists()
