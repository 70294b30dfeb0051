from __future__ import annotations

import html.parser
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.core import InvalidInput
from separatrix.lab.campaign import RunReport
from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, Verdict, judge
from separatrix.lab.experiment.definition import Experiment, Params, Payload
from separatrix.lab.experiment.summary import Summary
from separatrix.lab.ledger import LedgerEntry
from separatrix.report import single_axes, theme, write_report
from separatrix.report.figures.house import style
from separatrix.sources import Erratum

HOSTILE = "<script>alert('x')</script> & \"quotes\""
ERRATUM = Erratum("altafini2025-eq9", "Eq. (9)", "1/v <b>", "2/v", "sampled 2.01 at v = 1")


class Wide(Params):
    widths: tuple[int, ...] = (4, 8)
    label: str = HOSTILE


class Measured(Summary):
    last: float


def expand(params: Wide) -> list[dict[str, Any]]:
    return [{"width": width, "seed": seed} for width in params.widths for seed in params.seeds]


def run_cell(cell: Cell) -> Payload:
    return {"value": cell.args["width"] / 4}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    rows = [{"width": cell.args["width"], "value": payload["value"]} for cell, payload in results]
    tables = {f"Values {HOSTILE}": [*rows, {"width": 16, "note": HOSTILE}]}
    return Measured(last=rows[-1]["value"], tables=tables)


def draw(summary: Measured) -> Mapping[str, Figure]:
    figure, ax = single_axes()
    ax.plot([0, 1], [0, summary.last], label="line <b>")
    ax.set_title(HOSTILE)
    ax.legend()
    return {"lines": figure, f"again {HOSTILE}": figure}


def judge_value(summary: Measured) -> Judgement:
    return judge(f"value 2 {HOSTILE}", [Row(f"value {HOSTILE}", summary.last, 2.0, 1e-9, spread=0.125)])


def claim(id: str, **changes: Any) -> Claim:
    facts: dict[str, Any] = {
        "place": "Eq. (9)",
        "statement": f"doubling {HOSTILE}",
        "measures": "the value",
        "test": "1e-9 absolute",
        "judge": judge_value,
        "counterfeit": len,
    }
    return Claim(id=id, **{**facts, **changes})


def experiment(**changes: Any) -> Experiment:
    facts: dict[str, Any] = {
        "title": f"A made-up figure {HOSTILE}",
        "document": "altafini2025",
        "place": "Figure 9",
        "version": 3,
        "scales": {"smoke": Wide(), "laptop": Wide(), "paper": Wide()},
        "expand": expand,
        "run": run_cell,
        "summarise": summarise,
        "summary": Measured,
        "claims": (claim("a-claim", erratum=ERRATUM.key), claim("b-claim", scale="paper")),
    }
    return Experiment(**{"name": "made-up", **facts, **changes})


def report_of(subject: Experiment, scale: str = "smoke", **changes: Any) -> RunReport:
    params = subject.params(scale)
    cells = subject.cells(params)
    summary = subject.summarise([(cell, subject.run(cell)) for cell in cells])
    facts: dict[str, Any] = {
        "n_done": len(cells),
        "summary": summary,
        "judgements": {subject.claims[0].id: subject.claims[0].judge(summary)} if subject.claims else {},
        "seconds": 75.0,
        "provenance": {
            "package_versions": ["0.1.0"],
            "data": {},
            "seeds": [0],
            "machines": [{"platform": "Plan 9", "torch": "2.13.0"}],
            "seconds": 75.0,
        },
        "command": f"separatrix run {subject.name} --scale {scale}",
        "failures": {},
    }
    return RunReport(subject, scale, params, tuple(cells), **{**facts, **changes})


def entry(
    id: str = "a-claim", verdict: Verdict = Verdict.CONFIRMED, scale: str = "smoke", name: str = "made-up", **said: Any
) -> LedgerEntry:
    """An entry of a claim, judged by a run of the named experiment at a scale."""
    subject = experiment(name=name, claims=(claim(id, **said),))
    judgement = Judgement(verdict, HOSTILE, (Row("value", 2.0, 2.0),))
    return LedgerEntry(subject.claims[0], judgement, subject, report_of(subject, scale))


class Page(html.parser.HTMLParser):
    """What a browser would see: tags, ids, links, text outside scripts and styles; void and unclosed tags checked."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.text = ""
        self.feed(self.source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if given.get("id") else []
        self.links += [given["href"]] if tag == "a" and given.get("href") else []
        self.pictures += [str(given["src"])] if tag == "img" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"unbalanced </{tag}>"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one run with everything in it; read, never changed."""
    import separatrix.report.pages.views

    folder = tmp_path_factory.mktemp("report") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separatrix.report.pages.views, "find_erratum", {ERRATUM.key: ERRATUM}.__getitem__)
        front = write_report(folder, [report_of(experiment(draw=draw))], [entry()], title=f"Report {HOSTILE}")
    assert front == folder / "index.html"
    return folder


def run_page(folder: Path) -> Page:
    return Page(folder / "experiments" / "made-up-smoke.html")


def test_text_from_outside_is_never_markup(written: Path) -> None:
    front, page = Page(written / "index.html"), run_page(written)
    assert front.tags.count("script") == 1  # the filter
    assert page.tags.count("script") == 0
    assert "b" not in front.tags + page.tags
    assert HOSTILE in front.text
    assert page.text.count(HOSTILE) >= 6  # title, statement, evidence, row, table, caption


def test_pages_ask_for_nothing_from_outside(written: Path) -> None:
    for path in (written / "index.html", written / "experiments" / "made-up-smoke.html"):
        source = path.read_text()
        page = Page(path)
        assert not {"link", "iframe", "object"} & set(page.tags)
        assert all(address.startswith("data:image/png;base64,") for address in page.pictures)
        assert "default-src 'none'" in source
        assert not re.search(r"@import|url\((?!#)", source)
        assert all(not link.startswith(("http:", "https:", "//")) for link in page.links)


def test_ids_are_unique_and_links_lead_somewhere(written: Path) -> None:
    pages = {path: Page(path) for path in written.rglob("*.html")}
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids))
        for link in page.links:
            target, _, anchor = link.partition("#")
            where = (path.parent / target).resolve() if target else path
            assert where in pages
            assert not anchor or anchor in pages[where].ids


def test_experiment_page_shows_what_a_reader_needs_to_judge_and_repeat(written: Path) -> None:
    text = run_page(written).text
    for needed in (
        "confirmed",
        "2.00 ± 0.12",
        "1e-9",
        "1 min 15 s",
        "Plan 9",
        "2.13.0",
        "separatrix run made-up --scale smoke",
        "widths",
        "4, 8",
        "1/v <b>",
        "2/v",
        "sampled 2.01 at v = 1",
        "A verdict needs the scale paper.",
    ):
        assert needed in text


def test_every_figure_follows_the_theme_of_the_page(written: Path) -> None:
    page = run_page(written)
    assert page.tags.count("svg") == 4  # two figures, each drawn wide and narrow
    assert "line <b>" in page.text
    figures = page.source[page.source.index("<svg") :]
    for name in ("ink", "paper", "faint"):
        with theme("light"):
            light = getattr(style, name)()
        with theme("dark"):
            dark = getattr(style, name)()
        variable = {"faint": "grid"}.get(name, name)
        assert f"var(--figure-{variable}, {light})" in figures
        assert f": {light}" not in figures  # no colour of one theme is left
        assert page.source.count(f"--figure-{variable}: {light};") == 2  # on screen, and in print whatever the theme
        assert page.source.count(f"--figure-{variable}: {dark};") == 1


def test_erratum_that_no_source_lists_is_named(tmp_path: Path) -> None:
    write_report(tmp_path, [report_of(experiment())], [], title="r")
    assert "altafini2025-eq9, which the list of errata does not hold" in run_page(tmp_path).text


def test_ledger_counts_every_verdict_in_words(tmp_path: Path) -> None:
    verdicts = [Verdict.CONFIRMED, Verdict.CONFIRMED, Verdict.REFUTED]
    ledger = [entry(f"c{i}", verdict) for i, verdict in enumerate(verdicts)]
    text = " ".join(Page(write_report(tmp_path, [], ledger, title="r")).text.split())
    assert "3 claims." in text
    assert "2 ✓ confirmed" in text
    assert "1 ✗ refuted" in text
    assert "0 … not run at this scale" in text


def test_claims_are_grouped_by_document_with_ours_last(tmp_path: Path) -> None:
    ledger = [entry("ours", document="separatrix"), entry("k", document="kerg2022"), entry("a")]
    page = Page(write_report(tmp_path, [], ledger, title="r"))
    order = [name for name in page.ids if name.startswith("document-")]
    assert order == ["document-altafini2025", "document-kerg2022", "document-separatrix"]


def test_claim_links_to_the_run_that_judged_it(tmp_path: Path) -> None:
    runs = [report_of(experiment()), report_of(experiment(), "laptop")]
    page = Page(write_report(tmp_path, runs, [entry(scale="laptop"), entry("z", name="other")], title="r"))
    assert "experiments/made-up-laptop.html#claim-a-claim" in page.links
    assert not any("other" in link for link in page.links)


def test_two_runs_of_one_scale_get_a_page_each(tmp_path: Path) -> None:
    write_report(tmp_path, [report_of(experiment()), report_of(experiment())], [], title="r")
    names = sorted(path.name for path in (tmp_path / "experiments").iterdir())
    assert names == ["made-up-smoke.2.html", "made-up-smoke.html"]


def test_nothing_run_and_no_claims_is_said_in_words(tmp_path: Path) -> None:
    text = Page(write_report(tmp_path, [], [], title="Empty")).text
    assert "No claim has been registered." in text
    assert "No experiment has been run." in text


def test_unfinished_run_shows_failures_and_no_verdict(tmp_path: Path) -> None:
    subject = experiment()
    cells = subject.cells(subject.params())
    broken = report_of(
        subject,
        n_done=1,
        summary=None,
        judgements={},
        failures={cells[1].key: f"ValueError: {HOSTILE}", "summarise": "the summary failed"},
        provenance={},
    )
    front = write_report(tmp_path, [broken], [], title="r")
    page = run_page(tmp_path)
    text = " ".join(page.text.split())
    assert "1 of 2 cells have a record; 2 failures" in text
    assert "width 8, seed 0" in text
    assert f"ValueError: {HOSTILE}" in text
    assert "the summary failed" in text
    assert "not run at this scale" in text
    assert "svg" not in page.tags
    assert "2 failed" in Page(front).text


def test_many_failures_are_counted_not_listed(tmp_path: Path) -> None:
    failures = {f"key{i}": "boom" for i in range(25)}
    write_report(tmp_path, [report_of(experiment(), failures=failures)], [], title="r")
    assert "And 5 more." in run_page(tmp_path).text


def test_drawing_that_fails_costs_only_its_figures(tmp_path: Path) -> None:
    def broken(summary: Summary) -> Mapping[str, Figure]:
        raise KeyError(HOSTILE)

    write_report(tmp_path, [report_of(experiment(draw=broken))], [], title="r")
    page = run_page(tmp_path)
    assert "The figures could not be drawn: KeyError" in page.text
    assert "separatrix run made-up" in page.text


def test_experiment_without_claims_tables_or_figures_has_a_page(tmp_path: Path) -> None:
    bare = report_of(experiment(claims=(), draw=None), summary=Summary())
    write_report(tmp_path, [bare], [], title="r")
    page = run_page(tmp_path)
    assert not {"claims", "figures", "tables"} & set(page.ids)


def test_page_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    subject = experiment()
    object.__setattr__(subject, "name", "../../escape")
    write_report(tmp_path / "in", [report_of(subject)], [], title="r")
    assert [path.name for path in (tmp_path / "in" / "experiments").iterdir()] == ["escape-smoke.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_second_report_replaces_the_first_and_leaves_other_files(tmp_path: Path) -> None:
    write_report(tmp_path, [report_of(experiment()), report_of(experiment(), "laptop")], [entry()], title="first")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "experiments" / "mine.html").write_text("<p>mine</p>")
    write_report(tmp_path, [report_of(experiment())], [], title="second")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["experiments/made-up-smoke.html", "experiments/mine.html", "index.html", "notes.txt"]
    assert "second" in (tmp_path / "index.html").read_text()


def test_failure_while_writing_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import separatrix.report.pages.html

    write_report(tmp_path, [report_of(experiment())], [entry()], title="first")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(separatrix.report.pages.html, "_front_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(tmp_path, [report_of(experiment(), "laptop")], [], title="second")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(tmp_path / name, [report_of(experiment(draw=draw))], [entry()], title="r")
    for path in (tmp_path / "one").rglob("*.html"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_report_is_not_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidInput, match="is a file"):
        write_report(tmp_path / "taken", [], [], title="r")
