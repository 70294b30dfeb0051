from __future__ import annotations

import pytest

from separatrix.core.rooms import public_names


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        (
            "separatrix.theory.attention.counting.count_stable",
            ["separatrix.theory.count_stable", "separatrix.theory.attention.count_stable"],
        ),
        (
            "separatrix.theory.learning.balanced_flow.BalancedFlow.product",
            ["separatrix.theory.BalancedFlow.product", "separatrix.theory.learning.BalancedFlow.product"],
        ),
        ("separatrix.core.errors.InvalidInput", ["separatrix.core.InvalidInput"]),
        (
            "separatrix.theory.learning.balanced_modes.mode_rates",
            ["separatrix.theory.learning.balanced_modes.mode_rates"],
        ),
        ("elsewhere.theory.count_stable", ["elsewhere.theory.count_stable"]),
    ],
)
def test_public_names_are_those_of_the_stubs(full: str, expected: list[str]) -> None:
    assert public_names(full) == expected
