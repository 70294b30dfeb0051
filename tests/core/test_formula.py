from __future__ import annotations

from collections.abc import Iterator

import pytest

from separatrix.core import FORMULAS, formula


@pytest.fixture(autouse=True)
def registry_is_put_back() -> Iterator[None]:
    before = dict(FORMULAS)
    yield
    FORMULAS.clear()
    FORMULAS.update(before)


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
