"""The rule of a claim as a digest, so that nobody can bend it after a run without that being seen.

The digest covers the claim's statement, test and scale, and the code that ``judge`` reaches: its own, that of every
function of the same package which it calls, and the constants these read. Comments, docstrings and layout do not
count. Functions of other rooms count by name only: theory and numerics have tests of their own.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from .cell import canonical_json
from .claim import Claim, judge


def rule_digest(claim: Claim) -> str:
    """SHA-256 of what decides a claim; equal rules have equal digests on every machine with one version of Python."""
    parts = sorted(_reached(claim.judge))
    said = {"statement": claim.statement, "test": claim.test, "scale": claim.scale, "code": parts}
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
            yield _normal_source(function)
            waiting += list(_dependencies(function))
        else:
            yield f"{name} = {_constant(function)}"


def _dependencies(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names a function reads: its closure, and globals that are constants or functions of its own package."""
    room = function.__module__.split(".")
    package = ".".join(room[:2] if room[0] == "separatrix" else room[:1])
    variables = inspect.getclosurevars(function)
    for name, value in variables.nonlocals.items():
        yield name, value
    for name, value in {**variables.globals, **_inner_globals(function)}.items():
        foreign = getattr(value, "__module__", None)
        if callable(value) and not str(foreign).startswith(package):
            continue  # counts by its name, which stands in the source
        yield name, value


def _inner_globals(function: types.FunctionType) -> dict[str, Any]:
    """Globals read only inside comprehensions, lambdas and nested functions, which ``inspect`` does not list."""
    found, waiting = {}, [constant for constant in function.__code__.co_consts if isinstance(constant, types.CodeType)]
    while waiting:
        code = waiting.pop()
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        found.update({name: function.__globals__[name] for name in code.co_names if name in function.__globals__})
    return found


def _normal_source(function: types.FunctionType) -> str:
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, SyntaxError, TypeError):  # typed at a prompt, or a lambda inside a call: its code must do
        code = function.__code__
        return f"{function.__qualname__} {code.co_code.hex()} {_constants(code)} {code.co_names!r}"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


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
