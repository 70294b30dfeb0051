"""Kerg 2022: non-normal recurrent networks, relevancy screening, relational networks."""

from __future__ import annotations

from .document import Document, Erratum

ERRATA: tuple[Erratum, ...] = ()

DOCUMENT = Document(
    key="kerg2022",
    authors="Kerg, Giancarlo",
    title="Inductive biases for efficient information transfer in artificial networks",
    year=2022,
    venue="PhD thesis, Université de Montréal",
    errata=ERRATA,
)
