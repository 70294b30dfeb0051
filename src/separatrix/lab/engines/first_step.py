"""The first step of a cell: whether work of this size begins here, and what it takes, before hours are spent on it.

The cell is begun in a process of its own and ended at its first optimiser step; a cell that trains nothing ends by
itself or is stopped when its time is over. Its memory is limited by the system, so that a cell that is too large is
told what it asked for instead of filling the machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, final

from separatrix.core.errors import InvalidInput, SeparatrixError
from separatrix.core.names import suggest_options
from separatrix.core.result import Result

from ..experiment.cell import Cell
from ..experiment.definition import load
from ..experiment.limits import Limits
from .computation import ONE_THREAD, compute_record, require_importable
from .process_names import PeakMemory

USUAL = Limits(seconds=30.0, memory=6e9)
"""What a first step may take unless something else is said: seconds of the processor, bytes beside those of imports."""
PATIENCE = 20.0
"""A process that makes no progress at all is ended after so many times its seconds on the wall."""

StepOutcome: TypeAlias = Literal["finished", "made a step", "at work", "too large", "refused", "fault"]


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False)
class FirstStep(Result):
    """How the beginning of a cell went."""

    outcome: StepOutcome
    """``finished`` or ``made a step``; ``at work`` when its time was over; ``too large`` for the memory it was given;
    ``refused`` in a sentence of its own; ``fault`` if it failed otherwise."""
    seconds: float
    """Time of the processor until then."""
    memory: float | None
    """Bytes the process held at most; of a cell that is too large, with those it asked for last."""
    sentence: str = ""
    """What was said, if it did not begin."""

    @property
    def began(self) -> bool:
        """Whether the work of the cell begins here."""
        return self.outcome in ("finished", "made a step", "at work")


def largest_cell(cells: Sequence[Cell]) -> Cell:
    """The cell whose counts and sizes, lengths of lists among them, have the largest product.

    Raises:
        InvalidInput: there is no cell.
    """
    if not cells:
        raise InvalidInput("cells must hold at least one cell.")
    return max(cells, key=_size)


def _size(cell: Cell) -> float:
    counts = [len(value) if isinstance(value, list) else value for value in cell.args.values()]
    return sum(math.log(count) for count in counts if isinstance(count, int) and count > 1)


def first_step(cell: Cell, limits: Limits = USUAL) -> FirstStep:
    """Begin a cell in a process of its own and say how far it came; nothing is stored.

    Args:
        cell: which.
        limits: seconds of the processor and bytes of memory after which it is ended.

    Cost: at most the limits, and importing the experiment.
    """
    require_importable(cell)
    allowed = limits.or_else(USUAL)
    assert allowed.seconds is not None
    asked = json.dumps({"cell": cell.to_json(), "seconds": allowed.seconds, "memory": allowed.memory})
    with tempfile.TemporaryDirectory(prefix="separatrix-step-") as folder:
        answer, begun = Path(folder) / "answer", time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "separatrix.lab.engines.first_step", str(answer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
            cwd=folder,
        )
        try:
            process.communicate(asked.encode(), timeout=PATIENCE * allowed.seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # with whatever the cell has started
            code = process.wait()
        if answer.exists():
            return FirstStep(**json.loads(answer.read_text()))
    return _without_an_answer(code, time.monotonic() - begun, allowed)


def _without_an_answer(code: int, seconds: float, limits: Limits) -> FirstStep:
    """A process that was ended by the system: out of its time while it computed outside Python, or crashed."""
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return FirstStep("at work", limits.seconds or seconds, None)
    reason = f"its process ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with code {code}"
    return FirstStep("fault", seconds, None, f"{reason} and said nothing")


class _Over(BaseException):
    """The step is made, or the time is over; no experiment may catch it."""

    def __init__(self, outcome: StepOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def _begin(cell: Cell, seconds: float, memory: float | None, folder: Path) -> FirstStep:
    """What the process does; the limits count from where the experiment is imported."""
    load(cell.entry)
    peak, before = PeakMemory(), time.process_time()
    outcome, sentence, asked = "finished", "", 0.0
    try:
        with _limited(seconds, memory):
            compute_record(cell, {}, folder)
    except _Over as over:
        outcome = over.outcome
    except SeparatrixError as error:
        outcome, sentence = "refused", f"{type(error).__name__}: {error}"
    except Exception as error:
        outcome, sentence, asked = _failed(error)
    held = peak.bytes()
    used = held + asked if held is not None else None
    return FirstStep(outcome, time.process_time() - before, used, sentence)  # type: ignore[arg-type]


def _failed(error: Exception) -> tuple[str, str, float]:
    """Outcome and sentence of an error, with the bytes that were asked for and not given."""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:500]
    torch_says = re.search(r"tried to allocate (\d+) bytes", words)
    numpy_says = re.search(r"Unable to allocate ([\d.]+) ([KMGTPE]?)iB", words)
    asked = 0.0
    if torch_says:
        asked = float(torch_says[1])
    elif numpy_says:
        asked = float(numpy_says[1]) * 1024.0 ** " KMGTPE".index(numpy_says[2] or " ")
    too_large = isinstance(error, MemoryError) or torch_says or "std::bad_alloc" in words
    return ("too large" if too_large else "fault"), words, asked


@contextlib.contextmanager
def _limited(seconds: float, memory: float | None) -> Iterator[None]:
    """Ends what is inside at its first optimiser step, after so much time of the processor, or at its memory."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stepped(*_: Any) -> NoReturn:
        raise _Over("made a step")

    def late(*_: Any) -> NoReturn:
        raise _Over("at work")

    torch.set_num_threads(1)
    hook = register_optimizer_step_post_hook(stepped)
    with contextlib.suppress(ImportError, OSError, ValueError):  # where the system limits nothing, time alone does
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (used + int(memory), resource.RLIM_INFINITY))
        spent = math.ceil(time.process_time() + 2 * seconds) + 1  # for work that never comes back to Python
        resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 1))
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        hook.remove()


def main() -> None:
    """Read what is asked for, begin it, and write the answer to the file that the command line names."""
    asked = json.loads(sys.stdin.readline() or sys.stdin.read())
    found = _begin(Cell.from_json(asked["cell"]), asked["seconds"], asked["memory"], Path.cwd())
    answer = Path(sys.argv[1])
    answer.with_suffix(".part").write_text(json.dumps(dataclasses.asdict(found)))
    os.replace(answer.with_suffix(".part"), answer)
    os._exit(0)  # a thread of the cell may still be at work


if __name__ == "__main__":
    main()
