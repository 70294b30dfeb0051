"""Files that appear under their name complete, on the disk, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A stream beside ``path`` whose content takes that name when the block ends; after an error nothing is left.

    The content is flushed to the disk before it is renamed, and the folder after, so a kill or a power cut at any
    moment leaves the old file or the new one.

    Raises:
        OSError: it cannot be written; what stood under the name stands there still.
    """
    partial = path.with_name(f".{path.name[:200]}.{os.getpid()}.partial")
    try:
        with partial.open("w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(partial):
            error.filename = str(path)  # the name that was asked for, not that of the stream beside it
        raise
    flush_folder(path.parent)


def write_text_whole(path: Path, text: str) -> None:
    """``written_whole`` for text in UTF-8."""
    with written_whole(path) as stream:
        stream.write(text.encode())


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut; systems that cannot open a folder need no help."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
