"""Kerg 2022: non-normal recurrent networks, relevancy screening, relational networks; a file for each system."""

from __future__ import annotations

from separatrix.sources.document import Document

from . import recurrence, relational, relevance, relevance_items

DOCUMENT = Document(
    key="kerg2022",
    authors="Kerg, Giancarlo",
    title="Inductive biases for efficient information transfer in artificial networks",
    year=2022,
    venue="PhD thesis, Université de Montréal",
    errata=(*recurrence.ERRATA, *relevance.ERRATA, *relational.ERRATA),
    items=(*recurrence.ITEMS, *relevance_items.ITEMS, *relational.ITEMS),
)
