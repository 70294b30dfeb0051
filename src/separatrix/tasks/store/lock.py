"""A lock between processes, held on a file: the operating system lets go of it when its owner ends."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds ``path``, then hold it. The empty file stays."""
    with path.open("a+b") as stream:
        try:
            _acquire(stream)
        except (
            OSError
        ) as error:  # a network folder without locks; whatever is fetched still appears whole or not at all
            warnings.warn(
                f"{path.parent} allows no locks ({error.strerror or error}): two processes that fetch at once do the "
                "work twice.",
                stacklevel=3,
            )
            yield
            return
        try:
            yield
        finally:
            _release(stream)


if sys.platform == "win32":
    import msvcrt
    import time

    def _acquire(stream: io.BufferedIOBase) -> None:
        while True:
            stream.seek(0)
            try:
                msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK, 1)
                return
            except OSError:  # LK_LOCK gives up after ten seconds; a download may take longer
                time.sleep(0.1)

    def _release(stream: io.BufferedIOBase) -> None:
        stream.seek(0)
        msvcrt.locking(stream.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(stream: io.BufferedIOBase) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX)

    def _release(stream: io.BufferedIOBase) -> None:
        fcntl.flock(stream, fcntl.LOCK_UN)
