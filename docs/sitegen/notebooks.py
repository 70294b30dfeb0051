"""Notebooks as pages: each source in docs/notebooks is run from its first cell to its last, and shown with its outputs.

Sources are Python files in jupytext's percent format. A page holds the text, the code, what was printed and the
pictures; the notebook itself, outputs included, lies beside it to be downloaded. What was made from the same source and
the same package is not made again: it is kept in ``build/notebooks``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent.parent
SOURCES = PROJECT / "docs" / "notebooks"
KEPT = PROJECT / "build" / "notebooks"
SWITCH = "quick = False"
"""The line with which a notebook says that it is run in full."""
_SECONDS_A_CELL = 600


def sources() -> list[Path]:
    """The notebooks, by name."""
    return sorted(SOURCES.glob("*.py"))


def write_notebooks(pages: Path, *, quick: bool = False, kept: Path = KEPT) -> list[Path]:
    """Write a page, its pictures and the executed notebook for every source below ``pages/notebooks``.

    Cost: about two minutes of processor time in full, half a minute quick; nothing where all are kept.
    """
    written = []
    for source in sources():
        place = executed(source, quick=quick, kept=kept)
        shutil.copytree(place, pages / "notebooks", dirs_exist_ok=True)
        written.append(pages / "notebooks" / f"{source.stem}.md")
    return written


def executed(source: Path, *, quick: bool, kept: Path) -> Path:
    """The folder with the page and pictures of a notebook; run now if no kept one was made from the same."""
    text = source.read_text(encoding="utf-8").replace(SWITCH, f"quick = {quick}")
    folder = kept / f"{source.stem}-{_made_from(text)}"
    if not (folder / f"{source.stem}.md").is_file():
        for older in kept.glob(f"{source.stem}-*"):
            shutil.rmtree(older)
        draft = kept / f".{source.stem}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _run(text, source.stem, draft)
        draft.rename(folder)
    return folder


def _made_from(text: str) -> str:
    """A digest of all that a page follows from: source, package, this file."""
    from separatrix.lab.experiment.provenance import code_fingerprint

    parts = [text, code_fingerprint("separatrix"), Path(__file__).read_text(encoding="utf-8"), sys.version]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _run(text: str, name: str, folder: Path) -> None:
    """Execute a notebook in a process of its own and write what came out."""
    import jupytext
    from nbclient import NotebookClient

    print(f"notebook {name}", file=sys.stderr)
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    NotebookClient(notebook, timeout=_SECONDS_A_CELL, resources={"metadata": {"path": str(folder)}}).execute()
    _without_clock(notebook)
    (folder / f"{name}.ipynb").write_text(json.dumps(notebook, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(_page(notebook, name, folder), encoding="utf-8")


def _without_clock(notebook: Any) -> None:
    """Leave out when cells ran and random names: the same notebook is the same file."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata.pop("execution", None)
        cell["id"] = f"cell{number}"


def _page(notebook: Any, name: str, folder: Path) -> str:
    """The notebook as Markdown; its pictures are written beside it."""
    pieces = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            pieces.append(cell.source.strip())
        elif cell.cell_type == "code":
            pieces.append(f"```python\n{cell.source.strip()}\n```")
            pieces += shown_outputs(cell.outputs, f"{name}_{number}", folder)
    title, _, rest = "\n\n".join(pieces).partition("\n")
    source = f"[Download the notebook]({name}.ipynb){{ download }}; its source is `docs/notebooks/{name}.py`."
    return f"{title}\n\n{source}\n{rest}\n"


def shown_outputs(outputs: Sequence[Any], stem: str, folder: Path) -> Iterator[str]:
    """What a cell gave, in order: what it printed as text, pictures as files, tables as they stand in a notebook."""
    printed = ""
    for number, output in enumerate(outputs):
        if output.output_type == "stream":
            printed += output.text if output.name == "stdout" else ""
            continue
        if printed:
            yield _text_block(printed)
            printed = ""
        data = output.data
        if "image/png" in data:
            picture = f"{stem}_{number}.png"
            (folder / picture).write_bytes(base64.b64decode(data["image/png"]))
            width = output.get("metadata", {}).get("image/png", {}).get("width")
            yield f"![what the cell drew]({picture})" + (f'{{ width="{width}" }}' if width else "")
        elif "text/html" in data:
            yield f'<div class="result">{" ".join(data["text/html"].split())}</div>'
        elif "text/plain" in data:
            yield _text_block(data["text/plain"])
    if printed:
        yield _text_block(printed)


def _text_block(text: str) -> str:
    return f'```text title="output"\n{text.rstrip()}\n```'
