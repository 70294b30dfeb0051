"""One display for a whole run: cells done, rate, time left; on standard error, and only for people at a terminal."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from types import TracebackType
from typing import Any, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from separatrix.core.described import Described
from separatrix.core.names import suggest_options

WORTH_SAYING = 60.0
"""Seconds of computing from which on a forecast is shown."""


@final
@suggest_options
class RunProgress(Described):
    """Shows a bar while it is entered; nothing when standard error is no terminal or ``quiet`` is asked for."""

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeElapsedColumn(),
            _TimeLeftColumn(),
            TextColumn("[red]{task.fields[failed]}"),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._n_failed = 0

    def made_of(self) -> Mapping[str, Any]:
        """Whether it shows nothing, for whichever reason."""
        return {"quiet": self._progress.disable}

    def __enter__(self) -> RunProgress:
        if not self._progress.disable:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._progress.disable:  # rich before 14.3 ends a display that was never shown with an empty line
            self._progress.stop()

    def begin(self, n_cells: int, n_done: int, expected_seconds: float | None = None) -> None:
        """The run has ``n_cells`` cells, of which ``n_done`` had records already (they do not count for the rate).

        With ``expected_seconds``, the computing time that is expected of the others, a long run says so first.
        """
        if expected_seconds is not None and expected_seconds > WORTH_SAYING and not self._progress.disable:
            ahead = datetime.timedelta(seconds=round(expected_seconds))
            self._progress.console.print(f"about {ahead} of computing ahead, on one core", highlight=False)
        self._task = self._progress.add_task("cells", total=n_cells, completed=n_done, n_before=n_done, failed="")

    def advance(self, experiment: str, error: str | None) -> None:
        """A cell of this experiment has ended."""
        assert self._task is not None, "begin comes first"
        if error is not None:
            self._n_failed += 1
        failed = f"{self._n_failed} failed" if self._n_failed else ""
        self._progress.update(self._task, advance=1, description=experiment, failed=failed)


def _rate(task: Task) -> float | None:
    """Cells a second since the run began; cells end in bursts, so a shorter memory would jump."""
    n_new = task.completed - task.fields["n_before"]
    return n_new / task.elapsed if n_new > 0 and task.elapsed else None


class _RateColumn(ProgressColumn):
    """Cells a second, or seconds a cell when they are long."""

    def render(self, task: Task) -> Text:
        rate = _rate(task)
        if rate is None:
            return Text("")
        return Text(f"{rate:.1f} cells/s" if rate >= 1 else f"{1 / rate:.1f} s/cell")


class _TimeLeftColumn(ProgressColumn):
    """Time left at the present rate."""

    def render(self, task: Task) -> Text:
        rate = _rate(task)
        if rate is None or task.remaining is None:
            return Text("")
        return Text(f"{datetime.timedelta(seconds=round(task.remaining / rate))} left", style="cyan")
