"""Whether an output can be written, asked before the work that fills it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from separatrix.core.errors import InvalidInput


def why_not(error: OSError | ValueError) -> str:
    """Why the system refused, in its own words, without the name of the file."""
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def require_place_for_file(path: str | Path, argument: str) -> Path:
    """``path`` if a file can be written there; its folder is made.

    Args:
        path: where the file shall stand.
        argument: what the sentence calls it.

    Raises:
        InvalidInput: it is a folder or a device, or its folder cannot be made or written.
    """
    place = Path(path)
    try:
        _refuse_nul(path)
        if str(path) in ("", ".") or place.is_dir() or (place.exists() and not place.is_file()):
            kind = "a folder" if place.is_dir() else "neither a file nor free"
            raise InvalidInput(f"{argument} must be the path of a file; {str(place)!r} is {kind}.")
        _try_folder(place.parent)
        if place.exists() and not os.access(place, os.W_OK):
            raise InvalidInput(f"{argument} cannot be written: {place}: Permission denied.")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{argument} cannot be written: {_short(place)!r}: {why_not(error)}.") from None
    return place


def require_place_for_folder(path: str | Path, argument: str) -> Path:
    """``path`` if files can be written into that folder; it is made.

    Raises:
        InvalidInput: it is a file, or cannot be made or written.
    """
    folder = Path(path)
    try:
        _refuse_nul(path)
        if str(path) == "" or (folder.exists() and not folder.is_dir()):
            raise InvalidInput(f"{argument} must be the path of a folder; {str(path)!r} is none.")
        _try_folder(folder)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{argument} cannot be written: {_short(folder)!r}: {why_not(error)}.") from None
    return folder


def _refuse_nul(path: str | Path) -> None:
    if "\0" in str(path):
        raise ValueError("a path holds no NUL character")


def _try_folder(folder: Path) -> None:
    """Make the folder and a file in it; folders that were made for the trial stay, for they will be needed."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".trial-")
    os.close(handle)
    with contextlib.suppress(OSError):
        os.unlink(name)


def _short(place: Path) -> str:
    text = str(place)
    return text if len(text) <= 200 else f"{text[:150]}... ({len(text)} characters)"
