"""The order of the documentation's pages. A new page below a section's folder appears by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECTIONS = {
    "Tutorial": "tutorial",
    "How to": "how-to",
    "Explanation": "explanation",
    "Decisions": "decisions",
}
GENERATED = {"Ledger": "ledger.md", "Equations": "equations.md", "Errata": "errata.md", "Reference": "reference"}


def on_config(config: Any) -> Any:
    """Called by mkdocs before it reads the pages."""
    config["nav"] = navigation(Path(config["docs_dir"]))
    return config


def navigation(docs: Path) -> list[dict[str, Any]]:
    """Sections of pages; a page's title is its first heading."""
    entries: list[dict[str, Any]] = [{"Home": "index.md"}, {"Architecture": "architecture.md"}]
    for title, place in {**SECTIONS, **GENERATED}.items():
        pages = [path.relative_to(docs).as_posix() for path in _pages(docs / place)]
        if pages:
            entries.append({title: pages[0] if place.endswith(".md") else pages})
    return entries


def _pages(place: Path) -> list[Path]:
    """The pages of a folder, its index first; a single page is itself."""
    if place.suffix == ".md":
        return [place] if place.is_file() else []
    return sorted(place.glob("*.md"), key=lambda path: (path.stem != "index", path.stem))
