"""What a module defines, read from its text: signature, docstring, public members, place.

Reading the text instead of importing shows annotations and defaults as they were written.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Function = ast.FunctionDef | ast.AsyncFunctionDef
WIDTH = 100


@dataclasses.dataclass(frozen=True)
class Definition:
    """One public thing: ``declaration`` is what a reader must know to use it, ``source`` its whole text."""

    name: str
    declaration: str
    docstring: str
    source: str
    file: Path
    line: int
    members: tuple[Definition, ...] = ()


Lines: TypeAlias = tuple[bytes, ...]
"""The text of a module; in bytes, because that is what columns of the syntax tree count."""


@functools.cache
def _module(file: Path) -> tuple[Lines, ast.Module]:
    text = file.read_bytes()
    return tuple(text.splitlines(keepends=True)), ast.parse(text)


def module_docstring(file: Path) -> str:
    """The docstring of a module or package."""
    return ast.get_docstring(_module(file)[1]) or ""


@functools.cache
def define(file: Path, name: str) -> Definition:
    """The definition of a name in a module."""
    source, tree = _module(file)
    for node, after in _pairs(tree.body):
        if isinstance(node, Function) and node.name == name:
            return _function(node, source, file)
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node, source, file)
        if name in _assigned(node):
            return _value(node, after, name, source, file)
    raise LookupError(f"{file} does not define {name}: a stub must name the module that does.")


def _pairs(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    return zip(body, [*body[1:], None], strict=True)


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text(node: ast.expr | ast.stmt | ast.keyword, source: Lines) -> str:
    """What stands in the file for a node."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    lines = [*source[first:last], source[last][: node.end_col_offset]]
    lines[0] = lines[0][node.col_offset :]
    return b"".join(lines).decode()


def _whole(node: Function | ast.ClassDef, source: Lines) -> tuple[str, int]:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return textwrap.dedent(b"".join(source[first - 1 : node.end_lineno]).decode()).rstrip(), first


def _function(node: Function, source: Lines, file: Path) -> Definition:
    whole, line = _whole(node, source)
    return Definition(node.name, _signature(node, source), ast.get_docstring(node) or "", whole, file, line)


def _signature(node: Function, source: Lines) -> str:
    kinds = [_text(decorator, source) for decorator in node.decorator_list]
    before = "".join(f"@{kind}\n" for kind in kinds if kind in ("property", "classmethod", "staticmethod"))
    result = f" -> {_text(node.returns, source)}" if node.returns else ""
    parameters = _parameters(node.args, source)
    head = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    line = f"{head} {node.name}({', '.join(parameters)}){result}"
    if len(line) > WIDTH:
        line = f"{head} {node.name}(\n" + "".join(f"    {part},\n" for part in parameters) + f"){result}"
    return before + line


def _parameters(arguments: ast.arguments, source: Lines) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    shown = [_parameter(argument, default, source) for argument, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        shown.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        shown.append("*" + _parameter(arguments.vararg, None, source))
    elif arguments.kwonlyargs:
        shown.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown.append(_parameter(argument, default, source))
    if arguments.kwarg:
        shown.append("**" + _parameter(arguments.kwarg, None, source))
    return [part for part in shown if part not in ("self", "cls")]


def _parameter(argument: ast.arg, default: ast.expr | None, source: Lines) -> str:
    text = argument.arg + (f": {_text(argument.annotation, source)}" if argument.annotation else "")
    if default is None:
        return text
    return f"{text} = {_text(default, source)}" if argument.annotation else f"{text}={_text(default, source)}"


def _class(node: ast.ClassDef, source: Lines, file: Path) -> Definition:
    whole, line = _whole(node, source)
    members = [
        _function(part, source, file) for part in node.body if isinstance(part, Function) and part.name[0] != "_"
    ]
    fields = list(_fields(node, source))
    bases = ", ".join(_text(base, source) for base in (*node.bases, *node.keywords))
    declaration = f"class {node.name}" + (f"({bases})" if bases else "")
    inside = [declared for declared, _ in fields] + [
        _signature(part, source) for part in node.body if isinstance(part, Function) and part.name == "__init__"
    ]
    if inside:
        declaration += ":\n" + textwrap.indent("\n".join(inside), "    ")
    explained = [f"    {declared.split(':')[0].split(' =')[0]}: {text}" for declared, text in fields if text]
    docstring = ast.get_docstring(node) or ""
    if explained:
        docstring += "\n\nAttributes:\n" + "\n".join(explained)
    unique = {member.name: member for member in reversed(members)}  # of a property and its setter, the property
    ordered = tuple(sorted(unique.values(), key=lambda member: member.line))
    return Definition(node.name, declaration, docstring, whole, file, line, ordered)


def _fields(node: ast.ClassDef, source: Lines) -> Iterator[tuple[str, str]]:
    """Public fields with the sentence below them, as written."""
    for part, after in _pairs(node.body):
        if any(not name.startswith("_") for name in _assigned(part)):
            yield _text(part, source), _sentence(after)


def _sentence(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _value(node: ast.stmt, after: ast.stmt | None, name: str, source: Lines, file: Path) -> Definition:
    whole = _text(node, source)
    declaration = whole if len(whole) <= 3 * WIDTH else f"{whole.split('=')[0].rstrip()} = ..."
    return Definition(name, declaration, _sentence(after), whole, file, node.lineno)
