"""``separatrix cite``: the reference of a document, a closed form or an experiment."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any

import typer

from separatrix.core.errors import InvalidInput

from ...options import AsJson
from ...printing import print_json, print_table, tell


def cite(
    name: Annotated[
        str | None,
        typer.Argument(help="A document's key, an experiment, or a closed form (count_stable, theory.count_stable)."),
    ] = None,
    notation: Annotated[bool, typer.Option("--notation", help="Print the dictionary of notation instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print citation, place and BibTeX of whatever bears the name."""
    if notation:
        _print_notation(as_json)
        return
    if name is None:
        raise InvalidInput("cite needs a name (a document, an experiment or a closed form), or --notation.")
    found = find_reference(name)
    if as_json:
        print_json(found)
        return
    tell(found["citation"])
    if found["function"]:
        tell(f"Function: {found['function']}")
    if found["place"]:
        tell(f"Place: {found['place']}")
    if found["erratum"]:
        tell(f"Erratum: {found['erratum']} (separatrix errata --document {found['document']})")
    tell(found["bibtex"])


def _print_notation(as_json: bool) -> None:
    from separatrix.sources.notation import NOTATION

    if as_json:
        print_json([{"name": term.name, "meaning": term.meaning, "symbols": dict(term.symbols)} for term in NOTATION])
        return
    rows = [
        (term.name, term.meaning, ", ".join(f"{symbol} ({key})" for key, symbol in term.symbols.items()))
        for term in sorted(NOTATION, key=lambda term: term.name)
    ]
    print_table(("argument", "meaning", "symbol"), rows)


def find_reference(name: str) -> dict[str, Any]:
    """Document, place, citation and BibTeX. Closed forms come last, because finding them imports torch."""
    from separatrix.experiments import catalogue
    from separatrix.sources.catalogue import documents

    if name in documents():
        return _reference(name, None, None)
    experiments = catalogue()
    if name in experiments:
        return _reference(experiments[name].document, experiments[name].place, None)
    return _closed_form(name, [*documents(), *experiments])


def _closed_form(name: str, others: list[str]) -> dict[str, Any]:
    """The reference of a closed form by any of its names; ``others`` only help to suggest near ones."""
    from separatrix.core.formula import FORMULAS, NOT_FORMULAS, find_by_name
    from separatrix.core.rooms import public_names

    _import_formulas()
    kind = "document, experiment or closed form"
    full = find_by_name(kind, name, [*FORMULAS, *NOT_FORMULAS], others)
    if full in NOT_FORMULAS:
        shown = public_names(full)[0].partition(".")[2]
        raise InvalidInput(f"{shown} is no closed form and has no source of its own: {NOT_FORMULAS[full]}.")
    record = FORMULAS[full]
    return {**_reference(record.document, record.place, record.erratum), "function": record.public_name}


def _reference(document: str, place: str | None, erratum: str | None) -> dict[str, Any]:
    from separatrix.sources.catalogue import documents

    source = documents().get(document)
    return {
        "document": document,
        "place": place,
        "erratum": erratum,
        "function": None,
        "citation": source.citation() if source is not None else _OWN_CITATION,
        "bibtex": source.bibtex() if source is not None else _OWN_BIBTEX,
    }


_OWN_CITATION = "Separatrix: networks that are dynamical systems (software)."
_OWN_BIBTEX = "@software{separatrix,\n  title = {{Separatrix: networks that are dynamical systems}}\n}"


def _import_formulas() -> None:
    """Import the rooms that hold closed forms, which registers them."""
    from separatrix import diagnose, matrices, theory

    for room in (matrices, theory, diagnose):
        for info in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(info.name)
