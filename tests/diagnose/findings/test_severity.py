from __future__ import annotations

import pytest

from separatrix.diagnose.findings.severity import SEVERITIES, is_near, milder, rank


@pytest.mark.parametrize(
    ("value", "threshold", "scale", "near"),
    [
        (0.119, 0.1, "ratio", True),
        (0.121, 0.1, "ratio", False),
        (-1.3, -1.2, "ratio", True),
        (0.91, 0.9, "share", True),
        (0.93, 0.9, "share", False),
        (1.0, 0.9, "share", False),
        (-4.07, -4.0, "decades", True),
        (-4.09, -4.0, "decades", False),
    ],
)
def test_a_value_within_a_fifth_of_its_threshold_is_near(
    value: float, threshold: float, scale: str, near: bool
) -> None:
    assert is_near(value, threshold, scale) is near  # type: ignore[arg-type]


def test_severities_are_ordered_and_the_mildest_stays() -> None:
    assert [rank(one) for one in SEVERITIES] == [0, 1, 2, 3]
    assert [milder(one) for one in SEVERITIES] == ["ok", "ok", "note", "warning"]
