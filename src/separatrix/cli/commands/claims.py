"""``separatrix claims``: the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ..lookup import find_experiments, reading
from ..options import AsJson, DocumentKey, Names, StoreFolder
from ..printing import counted, print_json, print_table, print_verdict

if TYPE_CHECKING:
    from separatrix.lab.ledger import LedgerEntry


def claims(
    names: Names = None,
    document: DocumentKey = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only how many of each verdict.")] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Judge every claim from the stored records and show the verdicts."""
    from separatrix.lab.ledger import ledger
    from separatrix.sources.catalogue import find_document

    if document is not None and document != "separatrix":
        find_document(document)
    with reading(store) as opened:
        entries = [
            entry for entry in ledger(find_experiments(names), opened) if document in (None, entry.claim.document)
        ]
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    if not summary:
        for entry in entries:
            print_verdict(entry.claim, entry.judgement)
    _print_summary(entries)


def _print_summary(entries: Sequence[LedgerEntry]) -> None:
    """How many of each verdict, per document and in all."""
    verdicts: dict[str, Counter[str]] = {}
    for entry in entries:
        verdicts.setdefault(entry.claim.document, Counter())[entry.judgement.verdict.label] += 1
    rows = [(document, sum(counts.values()), counted(counts)) for document, counts in sorted(verdicts.items())]
    print_table(("document", "claims", "verdicts"), rows)
