from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import separatrix
from separatrix import sources, theory
from separatrix.core import FORMULAS, NOT_FORMULAS, Result


def import_everything() -> None:
    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions of theory, and public methods of its public classes; results and enumerations only carry."""
    for name in theory.__all__:
        value = getattr(theory, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and not issubclass(value, Result | enum.Enum):
            for method, member in vars(value).items():
                if inspect.isfunction(member) and not method.startswith("_"):
                    yield f"{name}.{method}", member


def is_accounted_for(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function has a source or a reason for having none; a method may have it from a base class."""
    if hasattr(function, "formula") or hasattr(function, "not_a_formula"):
        return True
    kind, _, method = name.partition(".")
    bases = inspect.getmro(getattr(theory, kind))[1:] if method else ()
    return any(hasattr(vars(base).get(method), "not_a_formula") for base in bases)


def test_every_public_function_of_theory_has_a_source_or_says_why_not() -> None:
    found = dict(public_callables())
    abstract = {name for name, function in found.items() if getattr(function, "__isabstractmethod__", False)}
    unmarked = [
        name for name, function in found.items() if name not in abstract and not is_accounted_for(name, function)
    ]
    assert not unmarked, f"mark these with @formula(document, place) or @not_a_formula(reason): {unmarked}"
    assert {"count_stable", "BalancedFlow.product", "Semicircle.stieltjes"} <= set(found)  # the search finds them


def test_nothing_is_a_formula_and_none() -> None:
    import_everything()
    assert not set(FORMULAS) & set(NOT_FORMULAS)
    assert all(len(reason) > 10 for reason in NOT_FORMULAS.values())


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
