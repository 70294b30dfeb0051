from __future__ import annotations

import pytest

from separatrix.core import FORMULAS, InvalidInput, formula, not_a_formula
from separatrix.core.formula import NOT_FORMULAS, find_by_name

pytestmark = pytest.mark.usefixtures("formulas_put_back")


def test_formula_is_registered_with_source_erratum_and_first_line() -> None:
    @formula("agarwala2022", "Eq. (8)", erratum="some-key")
    def second_moment(weight_var: float) -> float:
        """Second moment of the fixed point.

        More text.
        """
        return 1 / (1 - weight_var)

    record = second_moment.formula  # type: ignore[attr-defined]
    assert FORMULAS[record.name] is record
    assert record.name.endswith("second_moment")
    assert (record.document, record.place, record.erratum) == ("agarwala2022", "Eq. (8)", "some-key")
    assert record.summary == "Second moment of the fixed point."


def test_decorated_function_still_computes_and_needs_no_docstring() -> None:
    @formula("separatrix", "our own")
    def double(x: float) -> float:
        return 2 * x

    assert double(2.0) == 4.0
    assert double.formula.summary == ""  # type: ignore[attr-defined]
    assert double.formula.erratum is None  # type: ignore[attr-defined]


def test_a_function_may_say_why_it_is_no_formula() -> None:
    @not_a_formula("a lookup by name")
    def lookup(name: str) -> str:
        return name

    assert lookup.not_a_formula == "a lookup by name"  # type: ignore[attr-defined]
    (name,) = (name for name in NOT_FORMULAS if name.endswith("<locals>.lookup"))
    assert NOT_FORMULAS.pop(name) == "a lookup by name"


def test_names_are_found_by_any_tail_and_ambiguity_is_told() -> None:
    known = ["separatrix.theory.a.f", "separatrix.theory.b.f", "separatrix.theory.b.Kind.g"]
    assert find_by_name("formula", "a.f", known) == known[0]
    assert find_by_name("formula", "Kind.g", known) == known[2]
    assert find_by_name("formula", "b.Kind", known) == known[2]  # a class stands for its only closed form
    with pytest.raises(InvalidInput, match=r"'f' names 2 things: theory\.a\.f, theory\.b\.f\. Give one of these"):
        find_by_name("formula", "f", known)
    with pytest.raises(InvalidInput, match=r"unknown formula 'Kind\.h'. Did you mean 'Kind\.g'"):
        find_by_name("formula", "Kind.h", known)
