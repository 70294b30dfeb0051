"""Files that commands draw into, asked for before the work that fills them."""

from __future__ import annotations

from pathlib import Path

from separatrix.core.disk import require_place_for_file
from separatrix.core.errors import InvalidInput

SUFFIXES = (".png", ".svg", ".pdf")


def require_picture(path: Path | None, option: str) -> None:
    """Refuse a picture that could not be written, or not in the form its name asks for."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{option} must end with .png, .svg or .pdf; got {path.name[:60]!r}.")
    require_place_for_file(path, option)
