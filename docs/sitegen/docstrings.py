"""Docstrings as Markdown.

A docstring is written for ``help()``: formulas as ``.. math::`` and ``:math:``, sections as ``Args:`` with indented
entries, examples as they look at the prompt. The pages need ``$$``, lists and fenced blocks.
"""

from __future__ import annotations

import re
import textwrap

LISTS = ("Args", "Attributes", "Raises")
TEXTS = ("Returns", "Yields", "Source", "Note", "Notes")
EXAMPLES = ("Example", "Examples")
_SECTION = re.compile(rf"^({'|'.join((*LISTS, *TEXTS, *EXAMPLES))}):[ ]?(.*)$")
_MATH = re.compile(r"^\.\. math::[ ]?(?P<first>[^\n]*)(?P<rest>(?:\n[ ]+[^\n]*|\n(?=\n[ ]+))*)", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w[\w., *]*): +(?P<text>.*)$", re.DOTALL)
_EMPHASIS = re.compile(r"(^ *\* |(?<![\w*])\*{1,2}\w[^*\n]*\*{1,2}(?![\w*]))", re.MULTILINE)
"""A star that is meant: it begins an item of a list, or encloses words. Any other is a product."""
_VERBATIM = re.compile(r"(\$\$.*?\$\$|`{1,2}[^`]+`{1,2}|\$[^$\n]+\$)", re.DOTALL)


def to_markdown(docstring: str) -> str:
    """A whole docstring, without the indentation of the code around it."""
    blocks = []
    for name, text in sections(docstring):
        if not name:
            blocks.append(prose(text))
        elif name in EXAMPLES:
            blocks += [f"**{name}**", f"```pycon\n{text}\n```"]
        elif name in LISTS:
            blocks += [f"**{name}**", "\n".join(_item(entry) for entry in entries(text))]
        else:
            blocks.append(f"**{name}** {prose(text)}")
    return "\n\n".join(block for block in blocks if block.strip())


def sections(docstring: str) -> list[tuple[str, str]]:
    """Named parts in order; text under no name has the empty one. A section lasts as long as its lines are indented."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in docstring.splitlines():
        heading = _SECTION.match(line)
        if heading:
            parts.append((heading[1], [heading[2]] if heading[2] else []))
            continue
        if parts[-1][0] and line.strip() and not line.startswith(" ") and not _continues(parts[-1]):
            parts.append(("", []))
        parts[-1][1].append(line)
    filled = [(name, lines) for name, lines in parts if any(line.strip() for line in lines)]
    return [(name, _dedented(lines) if name else "\n".join(lines).strip("\n")) for name, lines in filled]


def _continues(part: tuple[str, list[str]]) -> bool:
    """Whether an unindented line still belongs to the part: ``Source: text`` may run on until a blank line."""
    return part[0] in TEXTS and bool(part[1]) and bool(part[1][-1].strip()) and not part[1][0].startswith(" ")


def _dedented(lines: list[str]) -> str:
    first, *rest = lines
    if first.startswith(" ") or not first:
        return textwrap.dedent("\n".join(lines)).strip("\n")
    return "\n".join([first, *(textwrap.dedent("\n".join(rest)).splitlines())]).strip("\n")


def entries(text: str) -> list[str]:
    """The entries of a list section: each begins where the indentation ends."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(" ") or not line.strip():
            if found:
                found[-1].append(line)
        else:
            found.append([line])
    return [_dedented(lines) for lines in found]


def _item(entry: str) -> str:
    match = _ENTRY.match(entry)
    body = f"`{match['names']}`: {prose(match['text'])}" if match else prose(entry)
    return "- " + textwrap.indent(body, "    ").lstrip()


def prose(text: str) -> str:
    """Running text: formulas between dollars; what is neither code nor formula can be no markup by accident."""
    text = _MATH.sub(_display, text)
    text = re.sub(r":math:`([^`]*)`", lambda match: f"${' '.join(match[1].split())}$", text)
    parts = _VERBATIM.split(text)
    return "".join(part if position % 2 else _plain(part) for position, part in enumerate(parts))


def _display(match: re.Match[str]) -> str:
    lines = [match["first"], *textwrap.dedent(match["rest"].strip("\n")).splitlines()]
    body = "\n".join(line.strip() for line in lines if line.strip())
    if r"\\" in body and r"\begin" not in body:  # several lines, as Sphinx reads them
        body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
    return f"\n$$\n{body}\n$$\n"


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    parts = _EMPHASIS.split(text)
    return "".join(part if position % 2 else part.replace("*", r"\*") for position, part in enumerate(parts))
