from __future__ import annotations

import io

import pytest
from rich.console import Console

from separatrix.lab import RunProgress


def shown(quiet: bool, terminal: bool) -> str:
    text = io.StringIO()
    with RunProgress(quiet, Console(file=text, force_terminal=terminal, width=160)) as progress:
        progress.begin(5, 2)
        progress.advance("short", None)
        progress.advance("short", "ValueError: no")
    return text.getvalue()


def test_the_display_counts_cells_and_failures_and_tells_the_time_left() -> None:
    text = shown(quiet=False, terminal=True)
    for part in ("short", "4/5", "1 failed", "left"):
        assert part in text


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False)])
def test_nothing_is_shown_when_nobody_watches(quiet: bool, terminal: bool) -> None:
    assert shown(quiet, terminal).strip() == ""


def test_a_long_run_is_announced() -> None:
    for seconds, told in ((7200.0, True), (5.0, False), (None, False)):
        text = io.StringIO()
        with RunProgress(False, Console(file=text, force_terminal=True, width=160)) as progress:
            progress.begin(10, 0, seconds)
        assert ("about 2:00:00 of computing ahead" in text.getvalue()) is told
