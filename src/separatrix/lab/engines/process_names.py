"""Names of processes, from which any process of the same machine can tell whether they live."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import uuid
from pathlib import Path


def process_name(pid: int) -> str:
    """A name for a process of this machine that no other will have: machine, number, moment of its start."""
    return f"{_machine()}|{pid}|{_started(pid)}-{uuid.uuid4().hex[:8]}"


@functools.cache
def _machine() -> str:
    """The machine and its process-number space: containers that share a folder may share a host name."""
    try:
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        space = ""
    return f"{platform.node()}|{space}"


def is_gone(name: str) -> bool:
    """Whether the process was one of this machine and has ended; of other machines nothing is known."""
    return _state(name) == "gone"


def is_working(name: str) -> bool:
    """Whether the process is one of this machine that lives and is not stopped."""
    return _state(name) == "working"


def _state(name: str) -> str:
    """``working``, ``stopped``, ``gone``; ``unknown`` for a process of another machine."""
    where, _, rest = name.rpartition("|")[0].rpartition("|")
    if where != _machine() or os.name == "nt" or not rest.isdecimal():
        return "unknown"
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        pass
    started = name.rpartition("|")[2].partition("-")[0]
    if started != _started(int(rest)):  # its number went to another process
        return "gone"
    return {"T": "stopped", "t": "stopped", "Z": "gone", "X": "gone"}.get(_fields(int(rest))[0], "working")


def _started(pid: int) -> str:
    """When a process started, in the units of the system; empty where the system does not tell."""
    return _fields(pid)[19]


def _fields(pid: int) -> list[str]:
    """What the system says of a process (Linux), from its state on; the name before may hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return [""] * 20


def held_memory(pid: int) -> int:
    """Bytes of memory that a process holds now; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class PeakMemory:
    """The most memory this process holds from now on, in resident bytes; ``None`` where the system does not tell."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int | None:
        """The peak so far."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None
