"""Examples of the pages: run in order, compared with the output that the page shows, and filled in again.

    python docs/sitegen/examples.py README.md docs/tutorial/attention.md

runs the pages and rewrites each block ``text title="output"`` with what the Python block before it printed. With
``--add`` first, blocks that print something and show nothing get such a block. A block with ``data-within="0.2"``
allows that relative difference of a number, for what a training gave; ``data-within="any"`` compares the words alone.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<text>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([\w.-]+)"')
WITHIN = re.compile(r'data-within="([\w.]+)"')
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")
SECONDS = re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|min)\b")
CLOSE = 1e-3
"""Relative difference of two numbers that still counts as the same on another machine."""
ROUNDING = 1e-6
"""Numbers below it are rounding errors, which differ from machine to machine."""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int
    close: float = CLOSE
    """Relative difference of two numbers that counts as the same."""

    @property
    def is_output(self) -> bool:
        """Whether it shows what the block before it prints."""
        return self.language == "text" and self.title == "output"


class OutputDiffers(AssertionError):
    """A page shows something else than its example prints."""


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    for match in FENCE.finditer(text):
        title = TITLE.search(match["options"])
        line = text.count("\n", 0, match.start()) + 2
        within = WITHIN.search(match["options"])
        close = CLOSE if within is None else math.inf if within[1] == "any" else float(within[1])
        yield Block(match["language"], title[1] if title else None, match["text"], line, close)


def run_page(text: str, name: str, folder: Path, command: Callable[[str], None]) -> tuple[int, list[str]]:
    """Run what a page shows; how many blocks and commands that were, and what each Python block printed.

    Raises:
        OutputDiffers: a block of output does not match what was printed.
    """
    count, namespace, printed = 0, dict[str, object](__name__="__main__"), []
    for block in blocks_of(text):
        if block.language == "python":
            if block.title:
                (folder / block.title).write_text(block.text, encoding="utf-8")
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                # blank lines in front give errors the line number of the page
                exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
            printed.append(stream.getvalue())
            count += 1
        elif block.is_output:
            problem = difference(block.text, printed[-1] if printed else "", block.close)
            if problem:
                raise OutputDiffers(f"{name}, line {block.line}: {problem}")
        elif block.language == "console":
            for line in block.text.splitlines():
                if line.startswith("$ separatrix "):
                    command(line[2:])
                    count += 1
    return count, printed


def difference(shown: str, printed: str, close: float = CLOSE) -> str:
    """How what a page shows differs from what was printed; empty if it does not.

    Numbers may differ in the fourth digit (or by ``close``), durations in all; a line of dots stands for any lines.
    """
    wanted, found = shown.strip().splitlines(), printed.strip().splitlines()
    if "..." in wanted:
        at = wanted.index("...")
        tail = len(wanted) - at - 1
        found = [*found[:at], "...", *(found[-tail:] if tail else [])]
    if len(wanted) != len(found):
        return f"{len(wanted)} lines are shown, {len(found)} are printed:\n{printed}"
    for one, other in zip(wanted, found, strict=True):
        if not _same(one, other, close):
            return f"shown {one!r}, printed {other!r}"
    return ""


def _same(one: str, other: str, close: float) -> bool:
    first, second = (SECONDS.sub("TIME", " ".join(line.split())) for line in (one, other))
    if NUMBER.sub("#", first) != NUMBER.sub("#", second):
        return False
    if math.isinf(close):
        return True
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    return all(abs(float(a) - float(b)) <= max(close * max(abs(float(a)), abs(float(b))), ROUNDING) for a, b in pairs)


def filled(text: str, printed: list[str]) -> str:
    """The page with every block of output as it was printed."""
    outputs, last = list(printed), ""

    def replace(match: re.Match[str]) -> str:
        nonlocal last
        title = TITLE.search(match["options"])
        if match["language"] == "python":
            last = outputs.pop(0)
        if match["language"] == "text" and title and title[1] == "output" and "\n...\n" not in match["text"]:
            return f"```text{match['options']}\n{last.rstrip()}\n```"
        return match[0]

    return FENCE.sub(replace, text)


def with_outputs(text: str, printed: list[str]) -> str:
    """The page with a block of output behind every Python block that prints and does not show it yet."""
    blocks, places = list(FENCE.finditer(text)), iter(printed)
    pieces, end = [], 0
    for number, match in enumerate(blocks):
        pieces.append(text[end : match.end()])
        end = match.end()
        if match["language"] != "python":
            continue
        said = next(places).rstrip()
        shown = number + 1 < len(blocks) and 'title="output"' in blocks[number + 1]["options"]
        if said and not shown:
            pieces.append(f'\n\n```text title="output"\n{said}\n```')
    return "".join([*pieces, text[end:]])


def main() -> None:
    """Fill the pages that are named."""
    import os
    import tempfile

    from typer.testing import CliRunner

    from separatrix.cli.app import app

    adds = sys.argv[1:2] == ["--add"]
    for name in sys.argv[1 + adds :]:
        path, here = Path(name).resolve(), Path.cwd()
        text = path.read_text(encoding="utf-8")
        bare = FENCE.sub(lambda match: "" if 'title="output"' in match["options"] else match[0], text)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            _, printed = run_page(bare, name, Path(folder), lambda line: _call(CliRunner(), app, line))
            os.chdir(here)
        text = with_outputs(text, printed) if adds else text
        path.write_text(filled(text, printed), encoding="utf-8")


def _call(runner: object, app: object, line: str) -> None:
    answer = runner.invoke(app, shlex.split(line)[1:])  # type: ignore[attr-defined]
    if answer.exit_code:
        sys.exit(f"{line} ended with {answer.exit_code}: {answer.output}")


if __name__ == "__main__":
    main()
