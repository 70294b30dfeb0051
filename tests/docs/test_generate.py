"""The pages that follow from the code. The folder from which the site is built is looked at beside the reference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import generate
from separatrix.core import FORMULAS, formula
from separatrix.lab import Claim, Experiment, Judgement, Params, Summary, Verdict
from separatrix.sources import Document, Erratum
from sitegen import navigation, pages, records, rooms

DOCS = Path(generate.__file__).parent
ERRATUM = Erratum("kerg2022-eq1", "Eq. (1)", "a|b <i>", "a*b", "0.1 against 0.2")


@pytest.fixture
def one_document(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    document = Document("kerg2022", "Kerg", "A thesis", 2022, "Somewhere", (ERRATUM,))
    monkeypatch.setattr(records, "documents", lambda: {"kerg2022": document})
    records.import_everything()  # what a test imports would register now and be lost afterwards
    before = dict(FORMULAS)
    yield
    FORMULAS.clear()
    FORMULAS.update(before)


def experiment(version: int = 1) -> Experiment:
    claim = Claim(
        id="a-claim",
        statement="more | is <b>more</b>",
        measures="size",
        test="exact",
        judge=lambda summary: Judgement(Verdict.CONFIRMED, ""),
        counterfeit=len,
    )
    scales = {"smoke": Params(), "laptop": Params(), "paper": Params()}
    return Experiment(
        name="made-up",
        title="t",
        document="kerg2022",
        place="Table 5",
        version=version,
        scales=scales,
        expand=lambda settings: [],
        run=lambda cell: {},
        summarise=lambda results: Summary(),
        claims=(claim,),
    )


def publish(folder: Path, verdict: str) -> None:
    body = {
        "experiment": "made-up",
        "title": "t",
        "document": "kerg2022",
        "place": "Table 5",
        "version": 1,
        "scale": "laptop",
        "params": {},
        "summary": {},
        "claims": {"a-claim": {"statement": "s", "verdict": verdict, "evidence": "3 of 4", "rows": []}},
        "provenance": {},
    }
    (folder / "made-up.json").write_text(json.dumps(body))


@pytest.mark.usefixtures("one_document")
def test_ledger_takes_verdicts_from_published_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "catalogue", lambda: {"made-up": experiment()})
    assert "1 not run at this scale" in records.ledger_page(tmp_path)
    publish(tmp_path, "refined")
    page = records.ledger_page(tmp_path)
    assert "1 refined" in page
    assert "3 of 4" in page
    assert "older version" not in page


@pytest.mark.usefixtures("one_document")
def test_ledger_marks_results_of_an_older_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "catalogue", lambda: {"made-up": experiment(version=2)})
    publish(tmp_path, "confirmed")
    assert "made by an older version of the experiment" in records.ledger_page(tmp_path)


@pytest.mark.usefixtures("one_document")
def test_text_in_tables_is_never_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "catalogue", lambda: {"made-up": experiment()})
    row = next(line for line in records.ledger_page(tmp_path).splitlines() if "a-claim" in line)
    assert row.count("|") == 6
    assert "<b>" not in row


@pytest.mark.usefixtures("one_document")
def test_experiments_are_listed_below_their_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "catalogue", lambda: {"made-up": experiment()})
    assert "## A thesis\n\n| name | what it shows | place | claims |" in records.experiments_page()
    assert "| `made-up` | t | Table 5 | 1 |" in records.experiments_page()


@pytest.mark.usefixtures("one_document")
def test_equations_name_function_erratum_and_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def register() -> None:
        FORMULAS.clear()

        @formula("kerg2022", "Eq. (1)", erratum=ERRATUM.key)
        def made_up_moment() -> None:
            """A moment of ``sub`` over :math:`N|x`."""

    monkeypatch.setattr(records, "import_everything", register)
    (tmp_path / "test_x.py").write_text(
        '@checks(made_up_moment, by="sampling")\ndef test_a(): ...\n'
        '@checks(theory.made_up_moment, by="a limit")\ndef test_b(): ...\n'
    )
    page = records.equations_page(tmp_path)
    for needed in (
        "Eq. (1)",
        "made_up_moment",
        'A moment of <code>sub</code> over <span class="arithmatex">&#92;(N&#124;x&#92;)</span>.',
        "errata.md#kerg2022-eq1",
        "a limit; sampling",
    ):
        assert needed in page


def test_methods_of_one_name_keep_their_class_and_their_own_checks() -> None:
    rows = {
        name: next(line for line in records.equations_page().splitlines() if f"`theory.{name}`" in line)
        for name in ("Semicircle.stieltjes", "FreeSum.stieltjes")
    }
    assert (
        "free_probability.md#separatrix.theory.free_probability.Semicircle.stieltjes)" in rows["Semicircle.stieltjes"]
    )
    assert "sampled matrices" in rows["FreeSum.stieltjes"]
    assert "sampled matrices" not in rows["Semicircle.stieltjes"]


def test_the_qualified_names_of_formulas_tell_them_apart() -> None:
    records.import_everything()
    names = [records.qualified(name) for name in FORMULAS if name.startswith("separatrix.")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.usefixtures("one_document")
def test_errata_show_printed_and_correct() -> None:
    page = records.errata_page()
    assert "{ #kerg2022-eq1 }" in page
    assert "<code>a&#124;b &lt;i></code>" in page
    assert "0.1 against 0.2" in page


def test_the_readme_shows_the_verdicts_of_the_published_results() -> None:
    table = records.ledger_summary()
    assert table in (DOCS.parent / "README.md").read_text(), f"the README's table should be\n{table}"


def test_a_generated_page_is_one_line_and_may_wait_for_its_module() -> None:
    made = pages.GeneratedPage("T", "t.md", "platform:python_implementation")
    assert made.exists
    assert made.text()
    assert not pages.GeneratedPage("T", "t.md", "separatrix.sources.no_such_page:page").exists


def test_navigation_finds_new_pages_and_leaves_out_what_is_not_generated(tmp_path: Path) -> None:
    written = ("index.md", "architecture.md", "how-to/b.md", "how-to/a.md", "tutorial/z.md", "tutorial/index.md")
    made = ("ledger.md", "reference/index.md", "reference/core.md", "reference/nn/index.md", "reference/nn/cells.md")
    for name in (*written, *made):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("# T")
    entries = navigation.navigation(tmp_path)
    assert entries == [
        {"Home": "index.md"},
        {"Architecture": "architecture.md"},
        {"Tutorial": ["tutorial/index.md", "tutorial/z.md"]},
        {"How to": ["how-to/a.md", "how-to/b.md"]},
        {"Made from the code": [{"Ledger": "ledger.md"}]},
        {
            "Reference": [
                {"overview": "reference/index.md"},
                {"core": "reference/core.md"},
                {"nn": [{"overview": "reference/nn/index.md"}, {"cells": "reference/nn/cells.md"}]},
            ]
        },
    ]
    assert json.loads(navigation.to_yaml(entries).removeprefix("nav: ")) == entries


def test_the_index_of_decisions_lists_every_page(tmp_path: Path) -> None:
    generate.copy_written(tmp_path)
    text = (tmp_path / "decisions" / "index.md").read_text()
    for path in (DOCS / "decisions").glob("0*.md"):
        assert f"]({path.name})" in text


def test_every_page_is_within_reach_of_the_home_page(tmp_path: Path) -> None:
    generate.copy_written(tmp_path)
    home = (tmp_path / "index.md").read_text()
    for folder in ("tutorial", "how-to", "explanation"):
        for path in (DOCS / folder).glob("*.md"):
            assert f"({folder}/{path.name})" in home, f"docs/index.md does not lead to {folder}/{path.name}"
    for place in (*(page.path for page in pages.present()), "reference/index.md"):
        assert f"({place})" in home, f"docs/index.md does not lead to {place}"


def test_rooms_are_all_in_the_order_of_the_reference() -> None:
    assert {room.path for room in rooms.rooms()} <= set(rooms.ORDER.split())
