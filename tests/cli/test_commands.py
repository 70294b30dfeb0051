from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import separatrix
from command_line import OWN, Answer, run_apart
from separatrix.cli.app import app
from separatrix.cli.words import COMMANDS
from separatrix.experiments import catalogue
from separatrix.lab import Store
from separatrix.sources import documents
from short_experiments import BUGGY, MISJUDGED, SHORT, run_inline

Cli = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a complete smoke run."""
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    return tmp_path / "store"


def test_list_shows_every_experiment(cli: Cli) -> None:
    assert [row["name"] for row in json.loads(cli("list", "--json").out)] == list(catalogue())
    assert cli("list").code == 0
    assert "unknown document 'altafini'" in cli("list", "--document", "altafini").err


def test_claims_shows_each_verdict(cli: Cli, folder: Path) -> None:
    answer = cli("claims", OWN, "--store", folder)
    assert "1 confirmed; 1 refuted; 1 not run at this scale" in answer.out
    entries = json.loads(cli("claims", OWN, "--store", folder, "--json").out)
    assert [entry["verdict"] for entry in entries] == ["confirmed", "refuted", "not run at this scale"]
    assert json.loads(cli("claims", OWN, "--document", "kerg2022", "--store", folder, "--json").out) == []


@pytest.mark.parametrize("command", ["claims", "show", "report", "publish", "resume"])
def test_a_store_with_a_typo_is_an_error_and_none_is_made(command: str, cli: Cli, tmp_path: Path) -> None:
    answer = cli(command, OWN, "--store", tmp_path / "typo")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"separatrix: there is no store in {tmp_path / 'typo'}; ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["run", "claims", "show", "report", "publish", "resume"])
def test_a_store_without_a_name_is_refused(
    command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cli(command, OWN, "--store", "")
    assert (answer.code, answer.out) == (2, "")
    assert "a store needs the name of a folder of its own" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_without_a_store_claims_are_those_published_and_nothing_is_to_be_resumed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert "3 not run at this scale" in cli("claims", OWN).out
    assert "nothing to resume" in cli("resume", OWN).out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["claims", "show", "report", "publish"])
def test_a_store_that_cannot_be_is_an_error(command: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = cli(command, OWN, "--store", tmp_path / "file" / "store")
    assert (answer.code, answer.out) == (2, "")
    assert f"{tmp_path / 'file'} is no folder" in answer.err


def test_an_experiment_without_cells_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    answer = cli("run", "short_experiments:empty", "--store", tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert "expand of experiment 'empty' yields no cell" in answer.err


def test_a_cell_that_returns_a_number_is_not_stored(cli: Cli, tmp_path: Path) -> None:
    answer = cli("run", "short_experiments:number", "--store", tmp_path, "-j", 1, "-q")
    assert answer.code == 1
    assert "run of experiment 'number' must return a dictionary; got 3." in answer.err
    with Store(tmp_path) as store:
        assert store.keys() == set()


def test_a_bug_of_an_experiment_is_one_sentence_naming_it(cli: Cli, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run_inline(store, (BUGGY, BUGGY.params("smoke"), "smoke"))
    answer = cli("claims", "short_experiments:buggy", "--store", tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("separatrix: experiment buggy: its summary failed")


@pytest.mark.parametrize("command", ["run", "claims", "show", "report"])
def test_a_rule_that_fails_has_a_line_of_its_own_and_a_code(command: str, cli: Cli, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run_inline(store, (MISJUDGED, MISJUDGED.params("smoke"), "smoke"))
    more = ("-o", str(tmp_path / "pages")) if command == "report" else ()
    answer = cli(command, "short_experiments:misjudged", "--store", tmp_path, *more)
    assert answer.code == 1
    assert "its claim misjudged-word failed on complete records" in answer.err
    assert "Traceback" not in answer.err
    if command != "report":
        assert "confirmed  misjudged-zero" in answer.out
        assert "undecided  misjudged-word" in answer.out


def test_show_gives_parameters_claims_and_tables(cli: Cli, folder: Path) -> None:
    answer = cli("show", OWN, "--store", folder)
    for part in ("means of noise", "n_cells", "the mean is 1", "refuted", "-0.01060"):
        assert part in answer.out
    assert json.loads(cli("show", OWN, "--store", folder, "--json").out)["run"]["n_done"] == 4


def test_show_says_how_to_run_what_was_not_run(cli: Cli, folder: Path) -> None:
    answer = cli("show", OWN, "--scale", "paper", "--store", folder)
    assert f"separatrix run {OWN} --scale paper" in answer.out


def test_publish_writes_files_and_names_what_it_left_out(cli: Cli, folder: Path, tmp_path: Path) -> None:
    words = ("publish", OWN, "short_experiments:buggy", "--scale", "smoke", "--store", folder, "-o", tmp_path)
    answer = cli(*words)
    assert answer.out.strip() == str(tmp_path / "short.json")
    assert "left out, not run at scale smoke: buggy" in answer.err
    assert json.loads(cli(*words, "--json").out)["left_out"] == ["buggy"]


def test_publish_without_a_run_says_what_to_run(cli: Cli, folder: Path) -> None:
    answer = cli("publish", OWN, "--store", folder)
    assert answer.code == 2
    assert "no experiment has a complete run at scale laptop" in answer.err


def test_report_hands_runs_and_ledger_to_the_writer(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {}

    def write_report(output: Path, runs: list, ledger: list, *, title: str, published: bool) -> Path:
        given.update(output=output, runs=runs, ledger=ledger, published=published)
        return output / "index.html"

    writer = ModuleType("separatrix.report.pages.html")
    writer.write_report = write_report  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "separatrix.report.pages.html", writer)
    answer = cli("report", OWN, "--store", folder, "--output", tmp_path / "html")
    assert answer.out.strip() == str(tmp_path / "html" / "index.html")
    assert [run.experiment.name for run in given["runs"]] == ["short"]
    assert len(given["ledger"]) == 3
    assert given["published"] is False
    with Store(tmp_path / "none"):
        pass
    missing = cli("report", OWN, "--store", tmp_path / "none")
    assert (missing.code, "begin with: separatrix run" in missing.err) == (2, True)


def test_errata_lists_every_erratum_of_a_document(cli: Cli) -> None:
    known = [erratum.key for document in documents().values() for erratum in document.errata]
    assert [row["key"] for row in json.loads(cli("errata", "--json").out)] == known
    assert cli("errata", "--document", "kerg2022").code == 0
    assert "Did you mean 'kerg2022'" in cli("errata", "--document", "kerg").err


def test_cite_prints_citation_and_bibtex_of_a_document(cli: Cli) -> None:
    answer = cli("cite", "agarwala2022")
    assert "Agarwala, Atish and Schoenholz" in answer.out
    assert "@misc{agarwala2022," in answer.out
    assert json.loads(cli("cite", "agarwala2022", "--json").out)["place"] is None


def test_cite_finds_experiments_and_closed_forms(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix.core import FORMULAS, Formula

    monkeypatch.setitem(FORMULAS, "theory.x.moment", Formula("theory.x.moment", "kerg2022", "Eq. (1)", "kerg-eq1", ""))
    for name in ("moment", "theory.x.moment"):
        answer = cli("cite", name)
        assert "Place: Eq. (1)" in answer.out
        assert "Erratum: kerg-eq1" in answer.out
    for experiment in list(catalogue().values())[:1]:
        assert experiment.place in cli("cite", experiment.name).out


def test_cite_of_an_unknown_name_gets_the_nearest(cli: Cli) -> None:
    answer = cli("cite", "altafini2024")
    assert answer.code == 2
    assert "Did you mean 'altafini2025'" in answer.err


def test_version_is_the_packages_own(cli: Cli) -> None:
    assert cli("--version").out.strip() == separatrix.__version__
    assert json.loads(cli("version", "--json").out)["separatrix"] == separatrix.__version__
    assert cli("version").out.startswith(f"separatrix {separatrix.__version__}\n")


def test_the_package_runs_as_a_module() -> None:
    assert run_apart("--version").out.strip() == separatrix.__version__


def test_an_unknown_command_is_a_usage_error(cli: Cli) -> None:
    answer = cli("runn")
    assert (answer.code, "Did you mean 'run'" in answer.err) == (2, True)


@pytest.mark.parametrize("words", [[name] for name in COMMANDS] + [["store", "export"], ["advise", "deq"]])
def test_the_help_of_a_flag_names_no_type(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0
    assert "--help" in shown.output
    assert "<bool>" not in shown.output
