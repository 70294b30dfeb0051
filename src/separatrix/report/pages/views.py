"""What the pages of a report show, as plain values: from runs and ledger entries to what the templates print."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, final

from separatrix.core.errors import InvalidInput
from separatrix.core.wording import readable
from separatrix.lab.campaign import RunReport
from separatrix.lab.experiment.claim import Claim, Judgement, Verdict
from separatrix.lab.ledger import LedgerEntry
from separatrix.sources.catalogue import documents, find_erratum
from separatrix.sources.document import Erratum

from .wording import names_in_words, slug

MAX_FAILURES = 20
"""Failed cells listed on a page; the rest are counted."""


@final
@dataclasses.dataclass(frozen=True)
class ClaimView:
    """A ledger entry as a page shows it: under an anchor, with its erratum, linked to the page of its run."""

    entry: LedgerEntry
    page: str | None = None

    @property
    def anchor(self) -> str:
        """Where the claim stands on a page."""
        return f"claim-{slug(self.entry.claim.id)}"

    @property
    def erratum(self) -> Erratum | None:
        """The erratum that the claim names; none if the sources do not list it, as may be for a user's own."""
        key = self.entry.claim.erratum
        if key is None:
            return None
        try:
            return find_erratum(key)
        except InvalidInput:
            return None


@final
@dataclasses.dataclass(frozen=True)
class TableView:
    """A table of a summary as people read it: columns in the order they first appear."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


@final
@dataclasses.dataclass(frozen=True)
class Group:
    """The claims of one document."""

    title: str
    citation: str
    anchor: str
    claims: tuple[ClaimView, ...]


def page_names(runs: Sequence[RunReport]) -> list[str]:
    """A file name for each run; repeated runs of one scale are numbered."""
    names: list[str] = []
    for run in runs:
        base = slug(f"{run.experiment.name}-{run.scale}")
        taken = sum(name == f"{base}.html" or name.startswith(f"{base}.") for name in names)
        names.append(f"{base}.html" if not taken else f"{base}.{taken + 1}.html")
    return names


def claims_of_run(run: RunReport) -> tuple[ClaimView, ...]:
    """Every claim of a run's experiment; those without a judgement say why."""
    return tuple(ClaimView(_entry_of_run(run, claim)) for claim in run.experiment.claims)


def _entry_of_run(run: RunReport, claim: Claim) -> LedgerEntry:
    judgement = run.judgement_of(claim) or Judgement(Verdict.NOT_RUN, _why_not_judged(run, claim))
    return LedgerEntry(claim, judgement, run.experiment, run)


def _why_not_judged(run: RunReport, claim: Claim) -> str:
    if not run.complete:
        return f"{run.n_done} of {len(run.cells)} cells are done."
    if run.summary is None:
        return "The run has no summary."
    return f"A verdict needs the scale {claim.scale}."


def ledger_groups(ledger: Sequence[LedgerEntry], pages: Mapping[tuple[str, str], str]) -> list[Group]:
    """Ledger entries by document, the source documents first, then our own, then any other."""
    known = documents()
    order = [*known, "separatrix"]
    order += sorted({entry.claim.document for entry in ledger} - set(order))
    groups = []
    for key in order:
        claims = tuple(ClaimView(entry, _page_of(entry, pages)) for entry in ledger if entry.claim.document == key)
        if claims:
            document = known.get(key)
            title = document.title if document else "Statements of this project" if key == "separatrix" else key
            groups.append(Group(title, document.citation() if document else "", f"document-{slug(key)}", claims))
    return groups


def _page_of(entry: LedgerEntry, pages: Mapping[tuple[str, str], str]) -> str | None:
    """The page of the run that was judged, or else any page of its experiment."""
    name = entry.experiment.name
    others = (page for (experiment, _), page in pages.items() if experiment == name)
    return pages.get((name, entry.scale or "")) or next(others, None)


def counts(verdicts: Sequence[Verdict]) -> dict[Verdict, int]:
    """How often each verdict occurs, in the order of the enumeration, zeros included."""
    return {verdict: verdicts.count(verdict) for verdict in Verdict}


def tables_of(run: RunReport) -> list[TableView]:
    """The tables of a run's summary."""
    given = run.summary.tables if run.summary is not None else {}
    return [_table(title, rows) for title, rows in given.items() if rows]


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> TableView:
    found = readable(rows, title=str(title), words=names_in_words)
    return TableView(str(title), found.columns, found.cells, found.numeric)


def failures_of(run: RunReport) -> list[dict[str, Any]]:
    """The first failed cells of a run: arguments, seed and error."""
    listed, shown = [], dict(list(run.failures.items())[:MAX_FAILURES])
    cells = {cell.key: cell for cell in run.cells if cell.key in shown} if shown else {}
    for key, error in shown.items():
        cell = cells.get(key)
        listed.append({"what": {**cell.args, "seed": cell.seed} if cell else key, "error": error})
    return listed
