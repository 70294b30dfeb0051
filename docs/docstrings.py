"""How the reference pages read docstrings: formulas and examples as blocks of code.

A docstring writes a formula as ``.. math::`` and an example under ``Example:``, which help() shows well; the pages need
fenced blocks and the section ``Examples:``.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_MATH = re.compile(
    r"^(?P<indent> *)\.\. math::[ ]?(?P<first>[^\n]*)(?P<rest>(?:\n(?P=indent) +[^\n]*|\n(?=\n(?P=indent) +))*)",
    re.MULTILINE,
)
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


def for_pages(docstring: str) -> str:
    """A docstring with fenced formulas and the section name that is read as code."""
    return _EXAMPLE.sub("Examples:", _MATH.sub(_block, docstring)).replace(":math:`", "`")


def _block(match: re.Match[str]) -> str:
    body = "\n".join(part for part in (match["first"], textwrap.dedent(match["rest"].strip("\n"))) if part.strip())
    return textwrap.indent(f"```latex\n{body}\n```", match["indent"])


class Docstrings(griffe.Extension):
    """Called by the reference for every object it reads."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = for_pages(obj.docstring.value)
