from __future__ import annotations

import importlib
import pkgutil

import pytest

import separatrix
from separatrix import sources
from separatrix.core import FORMULAS


def import_everything() -> None:
    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)


def test_every_formula_has_an_independent_check(checked: set[str], request: pytest.FixtureRequest) -> None:
    if len(request.config.args) != 1 or not request.config.args[0].rstrip("/").endswith("tests"):
        pytest.skip("only meaningful when the whole suite is collected")
    import_everything()
    unchecked = sorted(set(FORMULAS) - checked)
    assert not unchecked, f"closed forms without an independent check: {unchecked}"


def test_every_erratum_named_by_a_formula_exists() -> None:
    import_everything()
    known = {erratum.key for document in sources.documents().values() for erratum in document.errata}
    named = {record.erratum for record in FORMULAS.values() if record.erratum}
    assert named <= known, f"formulas name errata that no source lists: {sorted(named - known)}"
