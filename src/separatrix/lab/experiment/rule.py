"""The rule of a claim as a digest, so that nobody can bend it after a run without that being seen.

The digest covers the claim's statement, test, scale and needs, and the code that ``judge`` reaches: its own,
that of every function of the same package which it calls, and the constants these read. Comments, docstrings and
layout do not count. Functions of other rooms count by name only: theory and numerics have tests of their own.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import textwrap
import types
from collections.abc import Iterator, Sequence
from typing import Any, final

from .cell import canonical_json
from .claim import Claim, judge


def rule_digest(claim: Claim) -> str:
    """SHA-256 of what decides a claim; equal rules have equal digests on every machine."""
    parts = sorted(_reached(claim.judge))
    said: dict[str, Any] = {"statement": claim.statement, "test": claim.test, "scale": claim.scale, "code": parts}
    if claim.needs:  # in whatever order they were written
        said["needs"] = sorted(canonical_json(dataclasses.asdict(needed)) for needed in claim.needs)
    if claim.as_a_whole:
        said["as_a_whole"] = sorted(claim.as_a_whole)
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()


def _reached(rule: Any) -> Iterator[str]:
    """The code and constants a rule depends on, each once."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("judge", rule), ("the house's rule", judge)]
    while waiting:
        name, value = waiting.pop()
        bare = getattr(value, "func", value)  # of functools.partial
        function = inspect.unwrap(bare) if callable(bare) else bare
        if id(function) in seen:
            continue
        seen.add(id(function))
        if bare is not value:
            yield f"{name} = partial {value.args!r} {sorted(value.keywords.items())!r}"
        if isinstance(function, types.FunctionType):
            source = _source(function)
            yield source.text if source is not None else _compiled(function)
            waiting += list(_dependencies(function, source))
        else:
            yield f"{name} = {_constant(function)}"


def _dependencies(function: types.FunctionType, source: _Source | None) -> Iterator[tuple[str, Any]]:
    """What the names in a function stand for: its closure, and globals that are values or code of its own package."""
    room = function.__module__.split(".")
    package = ".".join(room[:2] if room[0] == "separatrix" else room[:1])
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in _names(function, source):
        if name in closed:
            yield name, closed[name].cell_contents
        elif name in function.__globals__:
            value = function.__globals__[name]
            # a function of another room counts by its name, which stands in the source
            if not callable(value) or str(getattr(value, "__module__", None)).startswith(package):
                yield name, value


def _names(function: types.FunctionType, source: _Source | None) -> Sequence[str]:
    if source is None:
        return sorted({*function.__code__.co_names, *function.__code__.co_freevars})
    return source.names


@final
@dataclasses.dataclass(frozen=True)
class _Source:
    """What is written in a function: its syntax as text, and the names in it."""

    text: str
    names: tuple[str, ...]


_read: dict[tuple[str, types.CodeType], _Source | None] = {}
"""By file and code: equal code of two files is two functions."""


def _source(function: types.FunctionType) -> _Source | None:
    """What is written in a function. Read once: every record of a run holds the rules of all claims, and to read these
    took longer than a small cell."""
    key = (function.__code__.co_filename, function.__code__)
    if key not in _read:
        _read[key] = _parsed(function)
    return _read[key]


def _parsed(function: types.FunctionType) -> _Source | None:
    """A function without docstrings; none if it was typed at a prompt or is a lambda in a call."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return _Source(_written(tree), tuple(sorted(names)))


def _compiled(function: types.FunctionType) -> str:
    code = function.__code__
    return f"{function.__qualname__} {code.co_code.hex()} {_constants(code)} {code.co_names!r}"


def _written(node: Any) -> str:
    """A syntax tree as text that is the same in every version of Python: names and filled fields, no positions."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if name not in ("kind", "type_comment"))
        inner = ", ".join(f"{name}={_written(value)}" for name, value in fields if value is not None and value != [])
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{', '.join(_written(item) for item in node)}]"
    return repr(node)


def _constants(code: types.CodeType) -> str:
    inner = [value for value in code.co_consts if not isinstance(value, types.CodeType)]
    nested = [_constants(value) + value.co_code.hex() for value in code.co_consts if isinstance(value, types.CodeType)]
    return repr((inner, nested))


def _constant(value: Any) -> str:
    """Plain values by what they are, anything else by its name."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(_constant(item) for item in value)}]"
    if isinstance(value, set | frozenset):
        return f"set[{', '.join(sorted(_constant(item) for item in value))}]"
    if isinstance(value, dict):
        return f"dict[{', '.join(f'{_constant(key)}: {_constant(item)}' for key, item in value.items())}]"
    return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__)
