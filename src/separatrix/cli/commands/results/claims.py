"""``separatrix claims``: the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ...lookup import find_experiments, reading
from ...options import AsJson, DocumentKey, Names, StoreFolder
from ...printing import counted, print_json, print_table, print_verdict, say, tell

if TYPE_CHECKING:
    from separatrix.lab.ledger import LedgerEntry


def claims(
    names: Names = None,
    document: DocumentKey = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only how many of each verdict.")] = False,
    history: Annotated[bool, typer.Option("--history", help="How published verdicts changed, and why.")] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show every claim with its verdict, from your records or, where you have none, as published."""
    from separatrix.lab.ledger import ledger, shipped_publications
    from separatrix.sources.catalogue import find_document

    if document is not None and document != "separatrix":
        find_document(document)
    experiments = find_experiments(names)
    published = shipped_publications({experiment.name: experiment for experiment in experiments})
    with reading(store) as opened:
        entries = [
            entry
            for entry in ledger(experiments, opened, published=published)
            if document in (None, entry.claim.document)
        ]
    if as_json:
        print_json([entry.to_dict() | ({"history": _history(entry)} if history else {}) for entry in entries])
        _leave(entries)
        return
    if not summary:
        for entry in entries:
            print_verdict(entry.claim, entry.judgement, [*_notes(entry), *(_told(entry) if history else ())])
    _print_summary(entries)
    if not any(entry.is_own for entry in entries) and any(entry.published for entry in entries):
        tell("These verdicts are published ones. For your own: separatrix run NAME")
    _leave(entries)


def _leave(entries: Sequence[LedgerEntry]) -> None:
    """With 1 if the rule of a claim failed, which is a bug of its experiment."""
    failed = [entry for entry in entries if entry.failed]
    for entry in failed:
        say(entry.judgement.evidence)
    if failed:
        raise typer.Exit(1)


def _notes(entry: LedgerEntry) -> Iterator[str]:
    """Where a verdict comes from, and what speaks against trusting it blindly."""
    if entry.is_own:
        yield f"yours, at scale {entry.scale}, {entry.date}; {entry.standing}"
        if entry.published is not None:
            yield f"published: {entry.published.claims[entry.claim.id]['verdict']}, at scale {entry.published.scale}"
    elif entry.published is not None:
        yield f"published, at scale {entry.scale}, {entry.date}; {entry.standing}"


def _history(entry: LedgerEntry) -> list[dict[str, str]]:
    """The changes of one claim in its published file, oldest first."""
    if entry.published is None:
        return []
    return [
        {"date": event["date"], "because": event["because"], **event["changes"][entry.claim.id]}
        for event in entry.published.history
        if entry.claim.id in event["changes"]
    ]


def _told(entry: LedgerEntry) -> Iterator[str]:
    for event in _history(entry):
        yield (
            f"{event['date']}: {event['from']} -> {event['to']} (rule {event['rule']}, run {event['run']}), "
            f"because {event['because']}"
        )


def _print_summary(entries: Sequence[LedgerEntry]) -> None:
    """How many of each verdict, per document and in all."""
    verdicts: dict[str, Counter[str]] = {}
    for entry in entries:
        verdicts.setdefault(entry.claim.document, Counter())[entry.judgement.verdict.label] += 1
    rows = [(document, sum(counts.values()), counted(counts)) for document, counts in sorted(verdicts.items())]
    print_table(("document", "claims", "verdicts"), rows)
