"""Anguita 2024: lambda-balanced linear networks."""

from __future__ import annotations

from .document import Document, Erratum

ERRATA: tuple[Erratum, ...] = ()

DOCUMENT = Document(
    key="anguita2024",
    authors="Anguita, Nicolas",
    title="Learning dynamics of linear neural networks",
    year=2024,
    venue="MEng thesis, Imperial College London",
    errata=ERRATA,
)
