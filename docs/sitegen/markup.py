"""Text as Markdown: cells of tables, code and formulas that nothing can mistake for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text that may stand in a table: one line, nothing taken for markup."""
    escaped = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;")
    for sign in "\\`*_[]|$":
        escaped = escaped.replace(sign, f"&#{ord(sign)};")
    return escaped


def code(text: str) -> str:
    """Text as code in a table."""
    return f"<code>{cell(text)}</code>"


def formula(tex: str) -> str:
    """An inline formula in a table, where a bar in ``$...$`` would end the cell."""
    delimited = rf"\({tex}\)"
    return f'<span class="arithmatex">{cell(delimited)}</span>'


def prose_cell(text: str) -> str:
    """A sentence of a docstring in a table, with what it marks as code or mathematics set as such."""
    parts = re.split(r":math:`([^`]*)`|`{1,2}([^`]*)`{1,2}", text)
    shown = []
    for position, part in enumerate(parts):
        if part:
            shown.append((cell, formula, code)[position % 3](part.replace(r"\|", "|") if position % 3 == 0 else part))
    return "".join(shown)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table whose cells are Markdown already."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def first_sentence(docstring: str) -> str:
    """The summary of a docstring: its first paragraph on one line, up to the first full stop."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)[0]
