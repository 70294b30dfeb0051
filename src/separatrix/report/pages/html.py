"""The HTML report: the claim ledger as front page, one page per run. No network, no other files.

Pages carry their style, script and figures inside and work from ``file://``. Everything is built in a temporary
folder first; pages move to their place one by one with the front page last, so a reader never meets half a report.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import separatrix
from separatrix.core.errors import InvalidInput
from separatrix.lab.campaign import RunReport
from separatrix.lab.experiment.claim import Verdict
from separatrix.lab.ledger import LedgerEntry
from separatrix.sources.catalogue import documents

from ..figures.experiment import draw_experiment
from ..figures.style import to_page_svg
from . import views
from .wording import VERDICT_MARKS, duration, is_number, shown, slug

PAGES = "experiments"
_GENERATOR = '<meta name="generator" content="separatrix">'


def write_report(folder: Path, runs: Sequence[RunReport], ledger: Sequence[LedgerEntry], *, title: str) -> Path:
    """Write a report of runs and the claim ledger.

    Args:
        folder: where ``index.html`` and ``experiments/*.html`` go; made if absent. Other files in it stay.
        runs: what was run, complete or not; one page each.
        ledger: every claim with its verdict.
        title: heading of the front page.

    Returns:
        The path of the front page.

    Raises:
        InvalidInput: ``folder`` is a file.

    Cost: drawing dominates; a page holds its figures as SVG.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"folder must be a directory for the report; {folder} is a file.")
    names = views.page_names(runs)
    pages = {(run.experiment.name, run.scale): f"{PAGES}/{name}" for run, name in zip(runs, names, strict=True)}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".report-") as temporary:
        built = Path(temporary)
        (built / PAGES).mkdir()
        for run, name in zip(runs, names, strict=True):
            (built / PAGES / name).write_text(_run_page(run, title), encoding="utf-8")
        (built / "index.html").write_text(_front_page(runs, names, ledger, pages, title), encoding="utf-8")
        _move_into_place(built, folder, names)
    return folder / "index.html"


def _move_into_place(built: Path, folder: Path, names: Sequence[str]) -> None:
    """Move finished pages over old ones, the front page last, then drop pages of an earlier report."""
    (folder / PAGES).mkdir(exist_ok=True)
    for name in names:
        os.replace(built / PAGES / name, folder / PAGES / name)
    os.replace(built / "index.html", folder / "index.html")
    for old in (folder / PAGES).glob("*.html"):
        if old.name not in names and _GENERATOR in old.read_text(encoding="utf-8", errors="replace")[:2000]:
            old.unlink()


def _front_page(
    runs: Sequence[RunReport],
    names: Sequence[str],
    ledger: Sequence[LedgerEntry],
    pages: Mapping[tuple[str, str], str],
    title: str,
) -> str:
    return render(
        "ledger.html",
        title=title,
        groups=views.ledger_groups(ledger, pages),
        counts=views.counts([entry.judgement.verdict for entry in ledger]),
        n_claims=len(ledger),
        runs=[(run, f"{PAGES}/{name}") for run, name in zip(runs, names, strict=True)],
    )


def _run_page(run: RunReport, title: str) -> str:
    claims = views.claims_of_run(run)
    figures, drawing_error = _figures(run)
    known = documents()
    document = known.get(run.experiment.document)
    return render(
        "experiment.html",
        title=run.experiment.title,
        report_title=title,
        run=run,
        citation=document.citation() if document else "",
        claims=claims,
        counts=views.counts([view.entry.judgement.verdict for view in claims]),
        figures=figures,
        drawing_error=drawing_error,
        tables=views.tables_of(run),
        failures=views.failures_of(run),
        n_failures=len(run.failures),
        params=run.params.model_dump(),
    )


def _figures(run: RunReport) -> tuple[list[dict[str, Any]], str | None]:
    """Each figure as SVG that follows the page's theme; if drawing fails, a sentence instead of figures."""
    if run.summary is None:
        return [], None
    try:
        drawn = draw_experiment(run.experiment, run.summary)
    except Exception as error:  # one experiment's bug must not cost the reader the other pages
        return [], f"{type(error).__name__}: {error}"
    listed = [
        {"name": name, "anchor": f"figure-{slug(name)}", "svg": Markup(to_page_svg(figure, f"figure{number}"))}
        for number, (name, figure) in enumerate(drawn.items())
    ]
    return listed, None


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("separatrix.report.pages", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, duration=duration, slug=slug)
    environment.tests["numeric"] = is_number
    environment.globals.update(
        Verdict=Verdict, marks=VERDICT_MARKS, version=separatrix.__version__, generator=Markup(_GENERATOR)
    )
    for name in ("style.css", "filter.js"):
        source = environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        environment.globals[name.replace(".", "_")] = Markup(source)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        environment.globals[name.replace(".", "_") + "_digest"] = f"sha256-{digest}"
    return environment


def render(template: str, **values: Any) -> str:
    """A page from its template."""
    return _environment().get_template(template).render(**values)
