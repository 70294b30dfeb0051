"""Cells as strangers write them: they print, read, leave children behind, hold the interpreter, hang, leak, crash."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from separatrix.lab import Cell, Experiment, Params, Summary


class Settings(Params):
    kinds: tuple[str, ...] = ("calm",)
    amount: float = 0.0
    marks: str = ""


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    for seed in settings.seeds:
        for number, kind in enumerate(settings.kinds):
            yield {"kind": kind, "number": number, "amount": settings.amount, "marks": settings.marks, "seed": seed}


def _write(amount: float) -> None:
    os.write(1, b"x" * int(amount))
    os.write(2, b"y" * int(amount))


def _leave_a_child(amount: float) -> None:
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({amount})"])


def _fork(amount: float) -> None:
    if os.fork() == 0:
        time.sleep(amount)
        os._exit(0)


def _hold(amount: float) -> None:
    """The C library's sleep, called without giving the interpreter away."""
    ctypes.PyDLL(None).usleep(int(amount * 1e6))


def _spin(amount: float) -> None:
    """Busy in Python, where an exception can reach it."""
    end = time.monotonic() + amount
    while time.monotonic() < end:
        pass


def _leak(amount: float) -> None:
    kept = []
    while True:
        kept.append(b"z" * (16 << 20))
        time.sleep(amount)


def _die(amount: float) -> None:
    print("last words", flush=True)
    os.kill(os.getpid(), int(amount) or signal.SIGKILL)
    time.sleep(5)  # the signal needs a moment


DEEDS = {
    "calm": lambda amount: None,
    "print": _write,
    "stdin": lambda amount: (sys.stdin.read(), os.read(0, 10)),
    "child": _leave_a_child,
    "fork": _fork,
    "gil": _hold,
    "sleep": time.sleep,
    "leak": _leak,
    "spin": _spin,
    "die": _die,
    "fail": lambda amount: (print("a word before"), 1 / 0),
}


def run(cell: Cell) -> dict[str, Any]:
    if cell.args["marks"]:
        with Path(cell.args["marks"]).open("a") as file:
            file.write(f"{cell.args['kind']}\n")
    DEEDS[cell.args["kind"]](cell.args["amount"])
    return {"kind": cell.args["kind"], "number": cell.args["number"]}


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> Summary:
    return Summary()


TROUBLE = Experiment(
    name="trouble",
    title="cells that give trouble",
    document="separatrix",
    place="tests",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(), "paper": Settings()},
    expand=expand,
    run=run,
    summarise=summarise,
)
