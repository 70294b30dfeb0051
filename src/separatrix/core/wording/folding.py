"""Long lines of an answer, folded between words."""

from __future__ import annotations

import textwrap

WIDTH = 100
"""Columns of a terminal or a notebook that most people have."""


def folded(text: str, width: int = WIDTH) -> str:
    """Every line of at most ``width`` columns, words left whole; what continues a line stands two columns further in.

    Example:
        >>> print(folded("  a sentence that is long", 16))
          a sentence
            that is long
    """
    return "\n".join(_line(line, width) for line in text.split("\n"))


def _line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
