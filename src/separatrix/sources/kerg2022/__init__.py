"""Kerg 2022: non-normal recurrent networks, relevancy screening, relational networks; a file for each system."""

from __future__ import annotations

from separatrix.sources.document import Document

from . import algebras, foundations, recurrence, relational, relevance, relevance_items

DOCUMENT = Document(
    key="kerg2022",
    authors="Kerg, Giancarlo",
    title="Inductive biases for efficient information transfer in artificial networks",
    year=2022,
    venue="PhD thesis, Université de Montréal",
    errata=(*foundations.ERRATA, *recurrence.ERRATA, *relevance.ERRATA, *relational.ERRATA, *algebras.ERRATA),
    items=(*foundations.ITEMS, *recurrence.ITEMS, *relevance_items.ITEMS, *relational.ITEMS, *algebras.ITEMS),
)
