"""Agarwala and Schoenholz 2022: deep equilibrium networks and the family of the initial matrix."""

from __future__ import annotations

from .document import Document, Erratum

ERRATA: tuple[Erratum, ...] = ()

DOCUMENT = Document(
    key="agarwala2022",
    authors="Agarwala, Atish and Schoenholz, Samuel S.",
    title="Deep equilibrium networks are sensitive to initialization statistics",
    year=2022,
    venue="International Conference on Machine Learning (ICML)",
    errata=ERRATA,
)
