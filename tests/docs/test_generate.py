from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from separatrix.core import FORMULAS, formula
from separatrix.lab import Claim, Experiment, Judgement, Params, Summary, Verdict
from separatrix.sources import Document, Erratum

DOCS = Path(__file__).parent.parent.parent / "docs"
ERRATUM = Erratum("kerg2022-eq1", "Eq. (1)", "a|b <i>", "a*b", "0.1 against 0.2")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = load("generate")
    document = Document("kerg2022", "Kerg", "A thesis", 2022, "Somewhere", (ERRATUM,))
    monkeypatch.setattr(module, "documents", lambda: {"kerg2022": document})
    before = dict(FORMULAS)
    yield module
    FORMULAS.clear()
    FORMULAS.update(before)


def experiment(version: int = 1) -> Experiment:
    claim = Claim(
        id="a-claim",
        statement="more | is <b>more</b>",
        measures="size",
        test="exact",
        judge=lambda summary: Judgement(Verdict.CONFIRMED, ""),
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


def test_ledger_takes_verdicts_from_published_results(
    generate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "catalogue", lambda: {"made-up": experiment()})
    assert "1 not run at this scale" in generate.ledger_page(tmp_path)
    publish(tmp_path, "refined")
    page = generate.ledger_page(tmp_path)
    assert "1 refined" in page
    assert "3 of 4" in page
    assert "older version" not in page


def test_ledger_marks_results_of_an_older_version(
    generate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "catalogue", lambda: {"made-up": experiment(version=2)})
    publish(tmp_path, "confirmed")
    assert "made by an older version of the experiment" in generate.ledger_page(tmp_path)


def test_text_in_tables_is_never_markup(generate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "catalogue", lambda: {"made-up": experiment()})
    row = next(line for line in generate.ledger_page(tmp_path).splitlines() if "a-claim" in line)
    assert row.count("|") == 6
    assert "<b>" not in row


def test_equations_name_function_erratum_and_checks(generate: Any, tmp_path: Path) -> None:
    FORMULAS.clear()

    @formula("kerg2022", "Eq. (1)", erratum=ERRATUM.key)
    def made_up_moment() -> None:
        """A moment of ``sub`` over :math:`N|x`."""

    (tmp_path / "test_x.py").write_text(
        '@checks(made_up_moment, by="sampling")\ndef test_a(): ...\n'
        '@checks(theory.made_up_moment, by="a limit")\ndef test_b(): ...\n'
    )
    page = generate.equations_page(tmp_path)
    for needed in (
        "Eq. (1)",
        "made_up_moment",
        "A moment of <code>sub</code> over <code>N&#124;x</code>.",
        "errata.md#kerg2022-eq1",
        "a limit; sampling",
    ):
        assert needed in page


def test_errata_show_printed_and_correct(generate: Any) -> None:
    page = generate.errata_page()
    assert "{ #kerg2022-eq1 }" in page
    assert "<code>a&#124;b &lt;i></code>" in page
    assert "0.1 against 0.2" in page


def test_reference_lists_every_public_name_once(generate: Any) -> None:
    pages = generate.reference_pages()
    assert pages["core.md"].count("::: separatrix.core.outcome.Outcome\n") == 1
    assert "`write_report`" in pages["index.md"]
    assert "- [tasks](tasks.md)" in pages["index.md"]


def test_whole_generation_writes_its_pages_and_removes_old_ones(generate: Any, tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "gone.md").write_text("old")
    generate.main(tmp_path)
    assert {path.name for path in tmp_path.glob("*.md")} == {"ledger.md", "equations.md", "errata.md"}
    assert not (tmp_path / "reference" / "gone.md").exists()
    assert (tmp_path / "reference" / "index.md").is_file()


def test_navigation_finds_new_pages_and_leaves_out_what_is_not_generated(tmp_path: Path) -> None:
    for name in ("index.md", "architecture.md", "how-to/b.md", "how-to/a.md", "tutorial/z.md", "tutorial/index.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# T")
    assert load("navigation").navigation(tmp_path) == [
        {"Home": "index.md"},
        {"Architecture": "architecture.md"},
        {"Tutorial": ["tutorial/index.md", "tutorial/z.md"]},
        {"How to": ["how-to/a.md", "how-to/b.md"]},
    ]


def test_docstrings_show_formulas_and_examples_as_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object))  # a tool of the pages alone
    text = "Mean of :math:`x`.\n\n.. math:: a + b,\n    \\qquad c\n\nExample:\n    >>> mean([1])\n    1\n"
    shown = load("docstrings").for_pages(text)
    assert shown == "Mean of `x`.\n\n```latex\na + b,\n\\qquad c\n```\n\nExamples:\n    >>> mean([1])\n    1\n"


def test_the_readme_shows_the_verdicts_of_the_published_results() -> None:
    table = load("generate").ledger_summary()
    assert table in (DOCS.parent / "README.md").read_text(), f"the README's table should be\n{table}"
