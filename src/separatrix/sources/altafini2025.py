"""Altafini 2025: self-attention dynamics on the sphere."""

from __future__ import annotations

from .document import Document, Erratum

ERRATA: tuple[Erratum, ...] = ()

DOCUMENT = Document(
    key="altafini2025",
    authors="Altafini, Claudio",
    title="Multistability of self-attention dynamics in transformers",
    year=2025,
    venue="Preprint, November 2025",
    errata=ERRATA,
)
