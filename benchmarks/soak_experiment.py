"""Cells of all kinds for the soak: most are short; some print, leak, hang, crash, hold the interpreter or take long."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from separatrix.lab import Experiment, Params, Summary

KINDS = {"print": 40, "long": 100, "gil": 250, "child": 300, "fail": 333, "crash": 700, "hang": 1000, "leak": 1250}
"""Every so many cells there is one of this kind."""


class Settings(Params):
    n_cells: int = 100


def kind_of(number: int) -> str:
    return next((kind for kind, period in reversed(KINDS.items()) if number % period == period - 1), "short")


def expand(settings):
    return ({"number": number, "kind": kind_of(number)} for number in range(settings.n_cells))


def run(cell):
    kind = cell.args["kind"]
    if kind == "print":
        os.write(1, b"x" * 300_000)
    elif kind == "long":
        time.sleep(0.5)
    elif kind == "gil":
        ctypes.PyDLL(None).usleep(1_500_000)
    elif kind == "child" and os.fork() == 0:
        time.sleep(3600)
        os._exit(0)
    elif kind == "fail":
        raise ValueError("told to")
    elif kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "hang":
        time.sleep(3600)
    elif kind == "leak":
        kept = []
        while True:
            kept.append(b"z" * (16 << 20))
            time.sleep(0.01)
    return {"value": cell.args["number"] ** 0.5}


SOAK = Experiment(
    name="soak",
    title="everything at once",
    document="separatrix",
    place="benchmarks",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(), "paper": Settings()},
    expand=expand,
    run=run,
    summarise=lambda results: Summary(),
    summary=Summary,
)
