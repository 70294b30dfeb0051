"""The HTML report: pictures and the claim ledger as front page, one page per run. No network, no other files.

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
from separatrix.core.wording import cell
from separatrix.lab.campaign import RunReport
from separatrix.lab.experiment.claim import Verdict
from separatrix.lab.ledger import LedgerEntry
from separatrix.sources.catalogue import documents

from . import views
from .gallery import DrawnFigures, GalleryView, drawn_figures, gallery_of
from .wording import VERDICT_MARKS, compared, duration, is_number, shown, slug

PAGES = "experiments"
_GENERATOR = '<meta name="generator" content="separatrix">'


def write_report(
    folder: Path, runs: Sequence[RunReport], ledger: Sequence[LedgerEntry], *, title: str, published: bool = False
) -> Path:
    """Write a report of runs and the claim ledger.

    Args:
        folder: where ``index.html`` and ``experiments/*.html`` go; made if absent. Other files in it stay.
        runs: what was run, complete or not; one page each.
        ledger: every claim with its verdict.
        title: heading of the front page.
        published: whether the runs are published ones, which the front page then says.

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
        gallery: list[GalleryView] = []
        for run, name in zip(runs, names, strict=True):
            drawn = drawn_figures(run)
            gallery += gallery_of(run, f"{PAGES}/{name}", drawn)
            (built / PAGES / name).write_text(_run_page(run, title, drawn), encoding="utf-8")
        front = _front_page(runs, names, ledger, pages, title, gallery, published)
        (built / "index.html").write_text(front, encoding="utf-8")
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
    gallery: Sequence[GalleryView],
    published: bool,
) -> str:
    return render(
        "ledger.html",
        title=title,
        gallery=gallery,
        documents=list(dict.fromkeys(view.document for view in gallery)),
        published=published,
        groups=views.ledger_groups(ledger, pages),
        counts=views.counts([entry.judgement.verdict for entry in ledger]),
        n_claims=len(ledger),
        runs=[(run, f"{PAGES}/{name}") for run, name in zip(runs, names, strict=True)],
    )


def _run_page(run: RunReport, title: str, drawn: DrawnFigures) -> str:
    claims = views.claims_of_run(run)
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
        figures=drawn.figures,
        drawing_error=drawn.error,
        tables=views.tables_of(run),
        failures=views.failures_of(run),
        n_failures=len(run.failures),
        params=run.params.model_dump(),
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("separatrix.report.pages", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, compared=compared, told=cell, duration=duration, slug=slug)
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
