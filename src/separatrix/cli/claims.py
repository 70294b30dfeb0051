"""``separatrix claims``: the ledger."""

from __future__ import annotations

import collections

from .lookup import find_experiments, reading
from .options import AsJson, DocumentKey, Names, StoreFolder
from .printing import print_json, print_table


def claims(
    names: Names = None, document: DocumentKey = None, store: StoreFolder = None, as_json: AsJson = False
) -> None:
    """Judge every claim from the stored records and show the verdicts."""
    from separatrix.lab.ledger import ledger
    from separatrix.sources.catalogue import find_document

    if document is not None and document != "separatrix":
        find_document(document)
    with reading(store) as opened:
        entries = [entry for entry in ledger(find_experiments(names), opened) if document in (None, entry.document)]
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    print_table(
        ("claim", "place", "statement", "verdict", "scale", "evidence"),
        [(e.id, e.place, e.statement, e.verdict.label, e.scale, e.evidence) for e in entries],
    )
    counts = collections.Counter(entry.verdict.label for entry in entries)
    print("; ".join(f"{count} {label}" for label, count in counts.most_common()) or "no claims")
