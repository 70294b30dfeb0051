"""``separatrix list``: every experiment of the package."""

from __future__ import annotations

from ...options import AsJson, DocumentKey
from ...printing import print_json, print_table


def list_experiments(document: DocumentKey = None, as_json: AsJson = False) -> None:
    """Show every experiment: which figure, table or theorem it is, and how many claims it judges."""
    from separatrix.experiments import catalogue
    from separatrix.sources.catalogue import find_document

    if document is not None and document != "separatrix":
        find_document(document)
    rows = [
        {
            "name": experiment.name,
            "document": experiment.document,
            "place": experiment.place,
            "title": experiment.title,
            "version": experiment.version,
            "claims": len(experiment.claims),
        }
        for experiment in catalogue().values()
        if document in (None, experiment.document)
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("name", "place", "title", "claims"), [(r["name"], r["place"], r["title"], r["claims"]) for r in rows]
        )
