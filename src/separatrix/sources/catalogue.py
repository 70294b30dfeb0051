"""All documents by key."""

from __future__ import annotations

from separatrix.core.names import resolve

from . import agarwala2022, altafini2025, anguita2024, kerg2022
from .document import Document, Erratum


def documents() -> dict[str, Document]:
    """The four source documents by key."""
    modules = (altafini2025, agarwala2022, kerg2022, anguita2024)
    return {module.DOCUMENT.key: module.DOCUMENT for module in modules}


def find_document(key: str | Document) -> Document:
    """One document by key (an unknown one gets the nearest known ones); a document is itself."""
    return resolve("document", key, documents(), base=Document)


def find_erratum(key: str | Erratum) -> Erratum:
    """One erratum by key; an erratum is itself."""
    errata = {erratum.key: erratum for document in documents().values() for erratum in document.errata}
    return resolve("erratum", key, errata, base=Erratum)
