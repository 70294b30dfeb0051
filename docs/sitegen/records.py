"""Pages made from registers: the ledger, the experiments, the equation index, the errata."""

from __future__ import annotations

import ast
import collections
import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import separatrix
from separatrix.core.formula import FORMULAS
from separatrix.core.rooms import public_names
from separatrix.experiments import catalogue
from separatrix.lab.experiment.claim import Verdict
from separatrix.lab.results.publication import Publication, read_publications
from separatrix.lab.results.verification import rule_standing
from separatrix.sources.catalogue import documents

from .markup import cell, code, prose_cell, table
from .rooms import places

PROJECT = Path(__file__).parent.parent.parent
_LEDGER_COLUMNS = ("claim", "statement", "verdict", "evidence", "experiment")


def import_everything() -> None:
    """Import every module, so that every formula is registered."""
    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)


def ledger_page(results: Path = PROJECT / "results") -> str:
    """Each claim with the verdict of its published result."""
    experiments = catalogue()
    published = {publication.experiment: publication for publication in read_publications(results, experiments)}
    rows_by_document: dict[str, list[Sequence[Any]]] = collections.defaultdict(list)
    verdicts: collections.Counter[str] = collections.Counter()
    for experiment in experiments.values():
        for claim in experiment.claims:
            verdict, evidence, scale = _verdict(claim.id, published.get(experiment.name))
            verdicts[verdict] += 1
            source = f"`{claim.id}`<br>{cell(claim.place)}"
            rows_by_document[claim.document].append(
                (source, cell(claim.statement), f"**{verdict}**", cell(evidence), f"`{experiment.name}`<br>{scale}")
            )
    lines = ["# Claim ledger", "", "Made from the files in `results/`, which `separatrix publish` writes from records."]
    lines += ["", "; ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "No claims yet."]
    for key, title in _document_titles().items():
        if key in rows_by_document:
            lines += ["", f"## {title}", "", *table(_LEDGER_COLUMNS, rows_by_document[key])]
    return "\n".join(lines) + "\n"


def ledger_summary(results: Path = PROJECT / "results") -> str:
    """The table of the README: how the verdicts of the published results fell, for each document."""
    experiments = catalogue()
    published = {publication.experiment: publication for publication in read_publications(results, experiments)}
    counts: dict[str, collections.Counter[str]] = {key: collections.Counter() for key in _document_titles()}
    for experiment in experiments.values():
        for claim in experiment.claims:
            counts[claim.document][_verdict(claim.id, published.get(experiment.name))[0]] += 1
    labels = [verdict.label for verdict in Verdict]
    rows = [
        (f"{title} (`{key}`)", *(str(counts[key][label] or "") for label in labels))
        for key, title in _document_titles().items()
    ]
    return "\n".join(table(("system", *labels), rows))


def _verdict(claim_id: str, publication: Publication | None) -> tuple[str, str, str]:
    if publication is None or claim_id not in publication.claims:
        return Verdict.NOT_RUN.label, "", "no published result"
    judged = publication.claims[claim_id]
    stale = ", made by an older version of the experiment" if publication.stale else ""
    truth = f" True is: {judged['truth']}." if judged.get("truth") else ""
    origin = f"{publication.scale}, {str(publication.provenance.get('last', ''))[:10]}{stale}; {rule_standing(judged)}"
    return judged["verdict"], judged["evidence"] + truth, origin


def experiments_page() -> str:
    """Every experiment: what it reproduces, and how to run it."""
    lines = ["# Experiments", "", "Run one with `separatrix run NAME --scale smoke`; `separatrix show NAME` says more."]
    for key, title in _document_titles().items():
        rows = [
            (f"`{experiment.name}`", cell(experiment.title), cell(experiment.place), str(len(experiment.claims)))
            for experiment in catalogue().values()
            if experiment.document == key
        ]
        if rows:
            lines += ["", f"## {title}", "", *table(("name", "what it shows", "place", "claims"), rows)]
    return "\n".join(lines) + "\n"


def equations_page(tests: Path = PROJECT / "tests") -> str:
    """Every registered closed form: where it stands, the function, the erratum, how it is checked."""
    import_everything()
    routes = check_routes(tests)
    lines = ["# Equation index", "", "Every closed form of the package, from the registry `@formula` fills."]
    titles = _document_titles()
    for key in [*titles, *sorted({formula.document for formula in FORMULAS.values()} - set(titles))]:
        formulas = sorted((f for f in FORMULAS.values() if f.document == key), key=lambda f: (f.place, f.name))
        if not formulas:
            continue
        rows = [
            (
                cell(formula.place),
                ", ".join(_reference_link(name) for name in bearers(formula.name)),
                prose_cell(formula.summary),
                f"[{formula.erratum}](errata.md#{formula.erratum})" if formula.erratum else "",
                cell("; ".join(sorted(set().union(*(routes[qualified(name)] for name in bearers(formula.name)))))),
            )
            for formula in formulas
        ]
        lines += ["", f"## {titles.get(key, key)}", ""]
        lines += table(("place", "function", "what it gives", "erratum", "checked by"), rows)
    if not FORMULAS:
        lines += ["", "No closed form is registered."]
    return "\n".join(lines) + "\n"


def check_routes(tests: Path) -> dict[str, set[str]]:
    """By qualified name, the routes named in ``@checks(function, Class.method, by="...")`` of the tests."""
    routes: dict[str, set[str]] = collections.defaultdict(set)
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "checks" not in text:  # most have none, and taking a file apart costs a hundred times a look
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "checks":
                by = next((word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)), "")
                for argument in node.args:
                    routes[qualified(ast.unparse(argument))].add(str(by))
    return routes


def qualified(dotted: str) -> str:
    """The end of a dotted name that tells functions apart: ``Class.method`` of a method, else the last part."""
    *before, last = dotted.split(".")
    return f"{before[-1]}.{last}" if before and before[-1].lstrip("_")[:1].isupper() else last


def bearers(full: str) -> list[str]:
    """Full names of a function; of a method of a private base class, those of the classes that inherit it."""
    owner, _, method = qualified(full).rpartition(".")
    if not owner.startswith("_"):
        return [full]
    base = getattr(importlib.import_module(full.removesuffix(f".{owner}.{method}")), owner)
    heirs = [kind for kind in base.__subclasses__() if getattr(kind, method) is getattr(base, method)]
    return sorted(f"{kind.__module__}.{kind.__qualname__}.{method}" for kind in heirs)


def errata_page() -> str:
    """Every erratum of every document."""
    lines = ["# Errata", "", "Misprints and errors found in the source documents, each verified by a test."]
    for document in documents().values():
        if document.errata:
            lines += ["", f"## {document.title}", "", document.citation()]
        for erratum in document.errata:
            lines += ["", f"### {erratum.place} {{ #{erratum.key} }}", ""]
            rows = [("printed", code(erratum.printed)), ("correct", code(erratum.correct))]
            lines += table(("", f"`{erratum.key}`"), [*rows, ("evidence", cell(erratum.evidence))])
    if not any(document.errata for document in documents().values()):
        lines += ["", "None is recorded."]
    return "\n".join(lines) + "\n"


def _document_titles() -> dict[str, str]:
    return {key: document.title for key, document in documents().items()} | {"separatrix": "Our own statements"}


def _reference_link(full: str) -> str:
    """The public name of a function or method, with a link to its place in the reference if a room lists it."""
    owner, _, method = full.rpartition(".")
    place, home = places().get(full), places().get(owner)
    if place is None and home is not None:  # an inherited method has no anchor of its own
        place = f"{home}.{method}" if full in FORMULAS else home
    shown = f"`{public_names(full)[0].partition('.')[2]}`"
    return f"[{shown}]({place})" if place else shown
