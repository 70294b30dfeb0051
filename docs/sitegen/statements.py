"""The page of statements: every numbered item of each document, and what became of it."""

from __future__ import annotations

from separatrix.experiments import catalogue
from separatrix.lab.ledger import LedgerEntry, ledger, shipped_publications
from separatrix.sources.catalogue import documents
from separatrix.sources.document import Item

from .markup import cell, table


def statements_page() -> str:
    """Each item with the verdicts on its claims, or the reason why it has none."""
    experiments = catalogue()
    entries = {
        entry.claim.id: entry
        for entry in ledger(experiments.values(), None, published=shipped_publications(experiments))
    }
    lines = ["# Statements of the documents", "", "Every numbered item, what it says in our words, and what judges it."]
    for document in documents().values():
        if not document.items:
            continue
        judged = sum(bool(item.claims) for item in document.items)
        lines += ["", f"## {document.title}", "", f"{len(document.items)} items, {judged} of them with claims.", ""]
        rows = [(cell(item.name), cell(item.place), cell(item.says), _fate(item, entries)) for item in document.items]
        lines += table(("item", "place", "says", "claims and verdicts, or why none"), rows)
    return "\n".join(lines) + "\n"


def _fate(item: Item, entries: dict[str, LedgerEntry]) -> str:
    if not item.claims:
        return cell(item.reason)
    named = (f"`{name}`: {entries[name].judgement.verdict.label}" for name in item.claims)
    return "<br>".join([*named, *([cell(item.reason)] if item.reason else [])])
