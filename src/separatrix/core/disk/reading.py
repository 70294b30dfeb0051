"""Reading files that may be anything: only regular ones are read, so that a pipe or a device cannot hold a program."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path | str) -> bytes:
    """The bytes of a regular file, or of one that a link leads to.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or is a folder, a pipe or a device; nothing was waited for.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(None, "it is no regular file")
        return file.read()
