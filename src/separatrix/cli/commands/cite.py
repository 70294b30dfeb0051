"""``separatrix cite``: the reference of a document, a closed form or an experiment."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any

import typer

from separatrix.core.errors import unknown_name

from ..options import AsJson
from ..printing import print_json


def cite(
    name: Annotated[str, typer.Argument(help="A document's key, an experiment, or a closed form.")],
    as_json: AsJson = False,
) -> None:
    """Print citation, place and BibTeX of whatever bears the name."""
    found = find_reference(name)
    if as_json:
        print_json(found)
        return
    print(found["citation"])
    if found["place"]:
        print(f"Place: {found['place']}")
    if found["erratum"]:
        print(f"Erratum: {found['erratum']} (separatrix errata --document {found['document']})")
    print(found["bibtex"])


def find_reference(name: str) -> dict[str, Any]:
    """Document, place, citation and BibTeX. Closed forms come last, because finding them imports torch."""
    from separatrix.experiments import catalogue
    from separatrix.sources.catalogue import documents

    if name in documents():
        return _reference(name, None, None)
    experiments = catalogue()
    if name in experiments:
        return _reference(experiments[name].document, experiments[name].place, None)
    formulas = _closed_forms()
    if name in formulas:
        return _reference(*formulas[name])
    raise unknown_name("document, experiment or closed form", name, [*documents(), *experiments, *formulas])


def _reference(document: str, place: str | None, erratum: str | None) -> dict[str, Any]:
    from separatrix.sources.catalogue import documents

    source = documents().get(document)
    return {
        "document": document,
        "place": place,
        "erratum": erratum,
        "citation": source.citation() if source is not None else _OWN_CITATION,
        "bibtex": source.bibtex() if source is not None else _OWN_BIBTEX,
    }


_OWN_CITATION = "Separatrix: networks that are dynamical systems (software)."
_OWN_BIBTEX = "@software{separatrix,\n  title = {{Separatrix: networks that are dynamical systems}}\n}"


def _closed_forms() -> dict[str, tuple[str, str, str | None]]:
    """Document, place and erratum of every closed form, by its bare and by its full name."""
    from separatrix import matrices, theory
    from separatrix.core.formula import FORMULAS

    for room in (matrices, theory):
        for info in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(info.name)
    found = {}
    for full, record in FORMULAS.items():
        found[full] = found[full.rpartition(".")[2]] = (record.document, record.place, record.erratum)
    return found
