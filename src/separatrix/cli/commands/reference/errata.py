"""``separatrix errata``: misprints of the documents, each with what is right and how that was found."""

from __future__ import annotations

import dataclasses

from ...options import AsJson, DocumentKey
from ...printing import print_json, print_table


def errata(document: DocumentKey = None, as_json: AsJson = False) -> None:
    """Show what the documents print wrongly, and the correction."""
    from separatrix.sources.catalogue import documents, find_document

    chosen = [find_document(document)] if document is not None else list(documents().values())
    rows = [{"document": source.key, **dataclasses.asdict(erratum)} for source in chosen for erratum in source.errata]
    if as_json:
        print_json(rows)
    else:
        columns = ("key", "place", "printed", "correct", "evidence")
        print_table(columns, [[row[column] for column in columns] for row in rows])
