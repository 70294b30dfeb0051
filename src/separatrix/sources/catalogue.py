"""All documents by key."""

from __future__ import annotations

from separatrix.core.errors import unknown_name

from . import agarwala2022, altafini2025, anguita2024, kerg2022
from .document import Document, Erratum


def documents() -> dict[str, Document]:
    """The four source documents by key."""
    modules = (altafini2025, agarwala2022, kerg2022, anguita2024)
    return {module.DOCUMENT.key: module.DOCUMENT for module in modules}


def find_document(key: str) -> Document:
    """One document; an unknown key gets the nearest known ones."""
    known = documents()
    if key not in known:
        raise unknown_name("document", key, known)
    return known[key]


def find_erratum(key: str) -> Erratum:
    """One erratum by key."""
    errata = {erratum.key: erratum for document in documents().values() for erratum in document.errata}
    if key not in errata:
        raise unknown_name("erratum", key, errata)
    return errata[key]
