"""The pages of checked networks are what the check says of their subjects, where these are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sitegen import checked

PAGES = Path(__file__).parents[2] / "docs"
SLOW = ("resemblyzer", "textgenrnn", "minilm", "silero", "torchdeq")  # many steps or parameters, or a peer's package
EXPECTED = dict.fromkeys(checked.SUBJECTS, "ok") | {"torchdeq": "fault"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in checked.SUBJECTS]
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
