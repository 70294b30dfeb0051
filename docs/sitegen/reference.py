"""The reference: one page per sub-room, an anchor for every public name."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from .definitions import Definition, define, module_docstring
from .docstrings import to_markdown
from .markup import first_sentence, prose_cell, table
from .rooms import PACKAGE, Room, places, relative, rooms, unambiguous

INDEX = "reference/index.md"
_CODE = re.compile(r"(?<!`)(`{1,2})(\w+)(?:\(\))?\1(?!`)")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


def pages() -> dict[str, str]:
    """Text of every page of the reference by its place."""
    found = {INDEX: _index()}
    for room in (inner for outer in rooms() for inner in outer.walk()):
        found[room.page] = linked(_room_page(room), room.page)
    return found


def _index() -> str:
    lines = ["# Reference", "", "Public is what a room lists; everything else may change. A name is imported from its"]
    lines += ["room or from its sub-room: `from separatrix.dynamics import integrate`.", ""]
    rows = []
    for room in rooms():
        inner = ", ".join(f"[{sub.path.split('.')[-1]}]({relative(sub.page, INDEX)})" for sub in room.inner)
        about = prose_cell(first_sentence(module_docstring(room.folder / "__init__.py")))
        rows.append((f"[`{room.dotted}`]({relative(room.page, INDEX)}){{ #{room.dotted} }}", about, inner))
    lines += [*table(("room", "what lives there", "sub-rooms"), rows), "", "## Every name", ""]
    lines += ["A name that a room takes over from its sub-room stands once, where it is defined.", ""]
    every = sorted((name.lower(), name, room) for outer in rooms() for room, name in outer.all_names())
    lines += [f"- {_link(room, name, INDEX)} in `{room.dotted}`" for _, name, room in every]
    return "\n".join(lines) + "\n"


def _room_page(room: Room) -> str:
    lines = [f"# {room.dotted}", "", to_markdown(module_docstring(room.folder / "__init__.py")), ""]
    for sub in room.inner:
        about = to_markdown(first_sentence(module_docstring(sub.folder / "__init__.py")))
        title = f"[{sub.path.split('.')[-1]}]({relative(sub.page, room.page)})"
        lines += [f"## {title} {{ #{sub.dotted} }}", "", about, ""]
        rows = [(_link(home, name, room.page, room), _about(home, name)) for home, name in sub.all_names()]
        lines += [*table(("name", "what it is"), rows), ""]
    own = [(_link(room, name, room.page), _about(room, name)) for _, name in room.own_names()]
    if own and len(own) > 1:
        lines += [*table(("name", "what it is"), own), ""]
    for module in sorted({*room.names, *room.modules}):
        lines += _module_part(room, module)
    return "\n".join(lines)


def _module_part(room: Room, module: str) -> list[str]:
    file = _file(room, module)
    anchor = f"{room.dotted}.{module}"
    # a function may bear its module's name, and an anchor belongs to one of them: the function
    mark = f" {{ #{anchor} }}" if module not in room.names.get(module, []) else f" {{ #module-{anchor} }}"
    lines = [f"## {module}.py{mark}", "", to_markdown(module_docstring(file)), ""]
    for name in room.names.get(module, []):
        lines += _entry(define(file, name), f"{room.dotted}.{name}", level=3)
    return lines


def _entry(thing: Definition, anchor: str, level: int) -> list[str]:
    lines = [f"{'#' * level} `{thing.name}` {{ #{anchor} }}", "", f"```python\n{thing.declaration}\n```", ""]
    lines += [to_markdown(thing.docstring), ""]
    for member in thing.members:
        lines += _entry(member, f"{anchor}.{member.name}", level + 1)
    if level == 3:
        place = f"src/separatrix/{thing.file.relative_to(PACKAGE).as_posix()}, line {thing.line}"
        lines += [f'??? quote "Code: {place}"', ""]
        lines += [textwrap.indent(f"````python\n{thing.source}\n````", "    "), ""]
    return lines


def _link(home: Room, name: str, page: str, outer: Room | None = None) -> str:
    """A link to a name; on the page of the room that takes the name over, also the anchor of that dotted form."""
    mark = f"{{ #{outer.dotted}.{name} }}" if outer is not None else ""
    return f"[`{name}`]({relative(places()[f'{home.dotted}.{name}'], page)}){mark}"


def _about(home: Room, name: str) -> str:
    module = next(module for module, listed in home.own_names() if listed == name)
    return prose_cell(first_sentence(define(_file(home, module), name).docstring))


def _file(room: Room, module: str) -> Path:
    path = room.folder / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def linked(text: str, page: str) -> str:
    """A page on which public names that stand as code in running text lead to their place."""
    parts = _FENCE.split(text)
    return "".join(part if position % 2 else _with_links(part, page) for position, part in enumerate(parts))


def _with_links(text: str, page: str) -> str:
    def one(match: re.Match[str]) -> str:
        place = unambiguous().get(match[2])
        before = text[max(match.start() - 1, 0) : match.start()]
        on_heading = text[text.rfind("\n", 0, match.start()) + 1 :].startswith(("#", "|"))
        if place is None or before == "[" or on_heading:
            return match[0]
        return f"[{match[0]}]({relative(place, page)})"

    return _CODE.sub(one, text)
