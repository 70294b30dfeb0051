"""Files as people leave them: written whole or not at all, and places that are seen to be closed before the work."""

from .places import require_place_for_file, require_place_for_folder, why_not
from .reading import read_regular
from .whole import flush_folder, write_text_whole, written_whole

__all__ = [
    "flush_folder",
    "read_regular",
    "require_place_for_file",
    "require_place_for_folder",
    "why_not",
    "write_text_whole",
    "written_whole",
]
