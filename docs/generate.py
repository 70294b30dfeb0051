"""Write the pages that follow from the code: the ledger, the equation index, the errata and the reference.

Run it before ``mkdocs build``; ``./run docs`` does both. Nothing it writes is kept in the repository.
"""

from __future__ import annotations

import ast
import collections
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import separatrix
from separatrix.core.formula import FORMULAS
from separatrix.core.rooms import offered
from separatrix.experiments import catalogue
from separatrix.lab.experiment.claim import Verdict
from separatrix.lab.store.publication import Publication, read_publications
from separatrix.sources.catalogue import documents

PROJECT = Path(__file__).parent.parent
PACKAGE = Path(separatrix.__file__).parent
ROOMS = "core sources matrices theory dynamics lab tasks nn training diagnose advise report experiments explorer cli"


def main(docs: Path = PROJECT / "docs") -> None:
    """Write every generated page below ``docs``."""
    import_everything()
    (docs / "ledger.md").write_text(ledger_page(), encoding="utf-8")
    (docs / "equations.md").write_text(equations_page(), encoding="utf-8")
    (docs / "errata.md").write_text(errata_page(), encoding="utf-8")
    reference = docs / "reference"
    reference.mkdir(exist_ok=True)
    for old in reference.glob("*.md"):
        old.unlink()
    for name, text in reference_pages().items():
        (reference / name).write_text(text, encoding="utf-8")


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
            lines += ["", f"## {title}", "", *_table(_LEDGER_COLUMNS, rows_by_document[key])]
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
    return "\n".join(_table(("system", *labels), rows))


_LEDGER_COLUMNS = ("claim", "statement", "verdict", "evidence", "experiment")


def _verdict(claim_id: str, publication: Publication | None) -> tuple[str, str, str]:
    if publication is None or claim_id not in publication.claims:
        return Verdict.NOT_RUN.label, "", "no published result"
    judged = publication.claims[claim_id]
    stale = ", made by an older version of the experiment" if publication.stale else ""
    return judged["verdict"], judged["evidence"], f"{publication.scale}{stale}"


def equations_page(tests: Path = PROJECT / "tests") -> str:
    """Every registered closed form: where it stands, the function, the erratum, how it is checked."""
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
                _reference_link(formula.name),
                summary_cell(formula.summary),
                f"[{formula.erratum}](errata.md#{formula.erratum})" if formula.erratum else "",
                cell("; ".join(sorted(routes.get(formula.name.rsplit(".", 1)[-1], ())))),
            )
            for formula in formulas
        ]
        lines += ["", f"## {titles.get(key, key)}", ""]
        lines += _table(("place", "function", "what it gives", "erratum", "checked by"), rows)
    if not FORMULAS:
        lines += ["", "No closed form is registered."]
    return "\n".join(lines) + "\n"


def check_routes(tests: Path) -> dict[str, set[str]]:
    """By function name, the routes named in ``@checks(function, by="...")`` of the tests."""
    routes: dict[str, set[str]] = collections.defaultdict(set)
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "checks":
                by = next((word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)), "")
                for argument in node.args:
                    name = argument.attr if isinstance(argument, ast.Attribute) else getattr(argument, "id", "")
                    routes[name].add(str(by))
    return routes


def errata_page() -> str:
    """Every erratum of every document."""
    lines = ["# Errata", "", "Misprints and errors found in the source documents, each verified by a test."]
    for document in documents().values():
        if document.errata:
            lines += ["", f"## {document.title}", "", document.citation()]
        for erratum in document.errata:
            lines += ["", f"### {erratum.place} {{ #{erratum.key} }}", ""]
            rows = [("printed", code(erratum.printed)), ("correct", code(erratum.correct))]
            lines += _table(("", f"`{erratum.key}`"), [*rows, ("evidence", cell(erratum.evidence))])
    if not any(document.errata for document in documents().values()):
        lines += ["", "None is recorded."]
    return "\n".join(lines) + "\n"


def reference_pages() -> dict[str, str]:
    """One page per room with the names its stub lists, and an index."""
    pages, index = {}, ["# Reference", "", "Public is what a room lists; everything else may change.", ""]
    for room in ROOMS.split():
        stub = PACKAGE / room / "__init__.pyi"
        modules = public_modules(stub) if stub.is_file() else {}
        if not modules:
            continue
        doc = (importlib.import_module(f"separatrix.{room}").__doc__ or "").strip()
        names = sorted(name for listed in modules.values() for name in listed)
        index += [f"- [{room}]({room}.md): {doc.splitlines()[0]} Names: {', '.join(f'`{name}`' for name in names)}."]
        lines = [f"# {room}", "", doc]
        for module, listed in modules.items():
            lines += ["", f"## {module}", ""]
            lines += [f"::: separatrix.{room}.{module}.{name}\n" for name in listed]
        pages[f"{room}.md"] = "\n".join(lines) + "\n"
    return {"index.md": "\n".join(index) + "\n", **pages}


def public_modules(stub: Path) -> dict[str, list[str]]:
    """Names by module, from the imports of a stub; sub-packages are left out."""
    _, names = offered(stub)
    return dict(sorted(names.items()))


def cell(text: str) -> str:
    """Text that may stand in a table: one line, nothing taken for markup."""
    escaped = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;")
    for sign in "\\`*_[]|$":
        escaped = escaped.replace(sign, f"&#{ord(sign)};")
    return escaped


def summary_cell(text: str) -> str:
    """The first line of a docstring in a table, with what it marks as code or mathematics as code."""
    parts = re.split(r":math:`([^`]*)`|``([^`]*)``", text)
    return "".join(code(part) if position % 3 else cell(part) for position, part in enumerate(parts) if part)


def code(text: str) -> str:
    """Text as code in a table."""
    return f"<code>{cell(text)}</code>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _document_titles() -> dict[str, str]:
    return {key: document.title for key, document in documents().items()} | {"separatrix": "Our own statements"}


def _reference_link(name: str) -> str:
    """A link to a function's place in the reference if its room lists it, else its name."""
    room, module_and_name = name.removeprefix("separatrix.").split(".", 1)
    module, _, function = module_and_name.rpartition(".")
    stub = PACKAGE / room / "__init__.pyi"
    listed = public_modules(stub).get(module, []) if stub.is_file() else []
    return f"[`{function}`](reference/{room}.md#{name})" if function in listed else f"`{function}`"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
