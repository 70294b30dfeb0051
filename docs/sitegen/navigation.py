"""The order of the pages. A new page below a section's folder appears by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

from .pages import GENERATED

SECTIONS = {
    "Tutorial": "tutorial",
    "Notebooks": "notebooks",
    "How to": "how-to",
    "Explanation": "explanation",
    "Decisions": "decisions",
}
TOP = {
    "Which tool": "which-tool.md",
    "Cheat sheet": "cheat-sheet.md",
    "Gallery": "gallery.md",
    "Architecture": "architecture.md",
}
"""Single pages in front of the sections, where they exist."""
Entries: TypeAlias = list[Any]
"""Pages, and sections as mappings of one title to a page or to entries."""


def navigation(pages: Path) -> Entries:
    """Sections of pages. A page's title is its first heading; in the reference it is the room's name."""
    entries: Entries = [{"Home": "index.md"}]
    entries += [{title: place} for title, place in TOP.items() if (pages / place).is_file()]
    for title, place in SECTIONS.items():
        if found := [path.relative_to(pages).as_posix() for path in _inside(pages / place)]:
            entries.append({title: found})
    if made := [{page.title: page.path} for page in GENERATED if (pages / page.path).is_file()]:
        entries.append({"Made from the code": made})
    if found := _reference(pages, pages / "reference"):
        entries.append({"Reference": found})
    return entries


def _inside(folder: Path) -> list[Path]:
    """Pages and folders of a folder, its index first."""
    found = [path for path in folder.glob("*") if path.suffix == ".md" or path.is_dir()]
    return sorted(found, key=lambda path: (path.stem != "index", path.stem))


def _reference(pages: Path, folder: Path) -> Entries:
    """Rooms by name; a room with sub-rooms is a section that begins with an overview."""
    entries: Entries = []
    for path in _inside(folder):
        title = "overview" if path.stem == "index" else path.stem
        entries.append({title: _reference(pages, path) if path.is_dir() else path.relative_to(pages).as_posix()})
    return entries


def to_yaml(entries: Entries) -> str:
    """The setting ``nav``. JSON is YAML, and quotes whatever has to be quoted."""
    return f"nav: {json.dumps(entries, indent=2)}\n"
