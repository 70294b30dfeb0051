from __future__ import annotations

import pytest

from separatrix.lab import Verdict
from separatrix.report.pages.wording import VERDICT_MARKS, duration, shown, slug


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (True, "yes"), (False, "no"), (1 / 3, "0.333333"), (10**7, "10000000"), ((0.1, 2), "0.1, 2")],
)
def test_values_read_as_people_write_them(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (0.25, "0.25 s"), (59.4, "59 s"), (75.0, "1 min 15 s"), (7300.0, "2 h 1 min")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("name", "text"), [("../../etc", "etc"), ("A b/c", "a-b-c"), ("<>", "unnamed")])
def test_slug_cannot_leave_a_folder_or_an_attribute(name: str, text: str) -> None:
    assert slug(name) == text


def test_every_verdict_has_its_own_sign() -> None:
    assert len(set(VERDICT_MARKS.values())) == len(Verdict) == len(VERDICT_MARKS)
