"""Write the folder from which the documentation is built: ``./run docs`` calls this, then the site builder.

Everything the builder needs is written out first: hand-written pages, pages that follow from the code, the decisions'
index, the navigation. The builder needs no hooks, so that another one can take its place.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from sitegen import navigation, reference
from sitegen.gallery import write_gallery
from sitegen.notebooks import write_notebooks
from sitegen.pages import present
from sitegen.pictures import with_figures

DOCS = Path(__file__).parent
WRITTEN = (".md", ".png", ".svg", ".js", ".css", ".woff2", ".txt", "LICENSE")

LINKS = "GENERATED PAGES"
"""Where the home page wants the links to the generated pages."""


def main(target: Path = DOCS.parent / "build" / "docs", *, pictures: bool = True, quick: bool = False) -> None:
    """Write ``mkdocs.yml`` and ``pages/`` below ``target``, replacing what was there.

    ``pictures`` draws the gallery and the figures of pages and runs the notebooks, which needs the docs extra;
    ``quick`` runs the notebooks with few updates.
    """
    shutil.rmtree(target, ignore_errors=True)
    pages = target / "pages"
    copy_written(pages)
    if pictures:
        for path in sorted(pages.rglob("*.md")):
            depth = len(path.relative_to(pages).parts) - 1
            write(path, with_figures(path.read_text(encoding="utf-8"), pages, depth))
        write_gallery(pages)
        write_notebooks(pages, quick=quick)
    for page in present():
        write(pages / page.path, page.text())
    for place, text in reference.pages().items():
        write(pages / place, text)
    settings = (DOCS / "site.yml").read_text(encoding="utf-8")
    write(target / "mkdocs.yml", settings + "\n" + navigation.to_yaml(navigation.navigation(pages)))


def copy_written(pages: Path) -> None:
    """Pages written by hand; the home page gets links to the generated ones, the decisions their list."""
    for path in sorted(DOCS.rglob("*")):
        if path.is_file() and path.name.endswith(WRITTEN):
            target = pages / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    home = pages / "index.md"
    links = ", ".join(f"[{page.title.lower()}]({page.path})" for page in present())
    write(home, home.read_text(encoding="utf-8").replace(LINKS, links))
    index = pages / "decisions" / "index.md"
    write(index, index.read_text(encoding="utf-8").rstrip() + "\n\n" + decisions(index.parent))


def decisions(folder: Path) -> str:
    """Links to the pages of decisions, in their order."""
    lines = []
    for path in sorted(folder.glob("[0-9]*.md")):
        title = re.sub(r"^#\s*", "", path.read_text(encoding="utf-8").splitlines()[0])
        lines.append(f"1. [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Write a page, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
