"""What is kept of a source document: its record, its errata as data, the numbers its tables print."""

from __future__ import annotations

import dataclasses
from typing import final

from separatrix.core.names import suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Erratum:
    """A misprint or error of a document: what is printed, what is right, and how that was found."""

    key: str
    place: str
    printed: str
    correct: str
    evidence: str


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Item:
    """A numbered item of a document, or a statement of its text: what it says, and what judges it."""

    kind: str
    """``"theorem"``, ``"lemma"``, ``"figure"``, ``"equation"``, ``"remark"``, ``"text"`` and the like."""
    number: str
    """As printed, ``"3.4.1"``; of a statement of the text, a few words."""
    place: str
    """Section or page."""
    says: str
    """One line, in our own words."""
    claims: tuple[str, ...] = ()
    """Identifiers of the claims that judge it."""
    reason: str = ""
    """Why it has no claim, if it has none; ``"open: ..."`` where one is still to be written."""

    @property
    def name(self) -> str:
        """``"Theorem 3.4.1"``."""
        return f"{self.kind.capitalize()} {self.number}"


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Document:
    """A source document: how to cite it, its errata, and its items."""

    key: str
    authors: str
    title: str
    year: int
    venue: str
    errata: tuple[Erratum, ...] = ()
    items: tuple[Item, ...] = ()
    """Every numbered item, in the order of the document."""

    def citation(self) -> str:
        """One line for a list of references."""
        return f"{self.authors} ({self.year}). {self.title}. {self.venue}."

    def bibtex(self) -> str:
        """A BibTeX entry."""
        fields = {"author": self.authors, "title": f"{{{self.title}}}", "year": str(self.year), "note": self.venue}
        body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@misc{{{self.key},\n{body}\n}}"
