"""The pages of checked networks are what the check says of their subjects, where these are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers import run_seed
from sitegen import checked

PAGES = Path(__file__).parents[2] / "docs"
SLOW = ("resemblyzer", "textgenrnn", "minilm", "silero")  # many steps or parameters
SHORT = sorted(set(checked.SUBJECTS) - set(SLOW) - {"torchdeq"})
DAILY = {SHORT[run_seed() % len(SHORT)], "torchdeq"}
"""One of our own short ones, another with another seed, and the one that has a fault; all with the slow tests."""
EXPECTED = dict.fromkeys(checked.SUBJECTS, "ok") | {"torchdeq": "fault"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in DAILY else pytest.mark.slow) for n in checked.SUBJECTS]
)
def test_a_subject_is_judged_as_its_page_says(name: str) -> None:
    try:
        found: Any = checked.diagnosed(name)
    except checked.NotAtHand as missing:
        pytest.skip(str(missing))
    assert found.verdict == EXPECTED[name]
    text = (PAGES / "explanation" / f"checked-{name}.md").read_text()
    for finding in found.findings:
        if finding.severity in ("warning", "fault"):
            assert finding.id in text


@pytest.mark.parametrize("name", checked.SUBJECTS)
def test_every_subject_has_its_page_and_figure(name: str) -> None:
    assert checked.SUBJECTS[name].title in (PAGES / "explanation" / f"checked-{name}.md").read_text()
    assert (PAGES / "assets" / "checked" / f"{name}.svg").stat().st_size > 1000
