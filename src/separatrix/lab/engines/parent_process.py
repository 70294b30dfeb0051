"""Processes that end with the one that started them, however that one ended and whatever they are doing.

A thread that waits for the end of a pipe needs the interpreter, which a cell may keep to itself for hours. Linux ends a
process by itself when its parent is gone (``prctl(2)``, ``PR_SET_PDEATHSIG``); elsewhere the pipe has to do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
LOOK_SECONDS = 0.5


def end_with_parent() -> bool:
    """Let the system end this process when its parent ends; ``False`` where it cannot.

    "Parent" is the thread that started this process: call it only if that thread lives as long as its process does, or
    as long as it wants this one.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return int(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def watch_parent(parent: int) -> None:
    """Leave when the parent has ended, by looking for it now and then: for processes that have no pipe to it.

    Args:
        parent: its number, as told by itself; it may have ended before this process could ask.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
