from __future__ import annotations

import collections
import enum
import fnmatch
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from separatrix import sources
from separatrix.core import InvalidInput, Result
from separatrix.sources.notation import NOTATION, Term, meaning_in, notation_page
from test_public_surface import NAMES

OFTEN = 5
"""A name that so many public functions use must stand in the dictionary."""


def public_callables() -> Iterator[Callable[..., Any]]:
    """Public functions and constructors that people call; results are made by the package."""
    seen: set[int] = set()
    for room, name, module in NAMES:
        value = getattr(importlib.import_module(room), name) if module else None
        if id(value) in seen or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        seen.add(id(value))
        if inspect.isclass(value) and (
            issubclass(value, BaseException | enum.Enum | Result) or inspect.isabstract(value)
        ):
            continue
        if value.__module__.startswith("separatrix."):
            yield value


def arguments() -> dict[str, list[tuple[str, str, str]]]:
    """By argument name: module (from the room on), function and annotation of every use."""
    found: dict[str, list[tuple[str, str, str]]] = collections.defaultdict(list)
    for function in public_callables():
        module = function.__module__.removeprefix("separatrix.")
        for parameter in inspect.signature(function).parameters.values():
            found[parameter.name].append((module, function.__name__, str(parameter.annotation)))
    return found


USES = arguments()
USED_TERMS = sorted({term.name for term in NOTATION})


def words(annotation: str) -> set[str]:
    """The names an annotation is made of, without shapes and literals."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", annotation)
    return set(re.findall(r"[A-Za-z_]\w*", bare)) - {"None"}


def test_names_that_many_functions_share_stand_in_the_dictionary() -> None:
    missing = {
        name: [f"{module}.{function}" for module, function, _ in uses if meaning_in(name, module) is None]
        for name, uses in USES.items()
        if len(uses) >= OFTEN
    }
    missing = {name: places for name, places in missing.items() if places}
    assert not missing, f"these arguments need a meaning in sources/notation.py, or another name: {missing}"


def used_otherwise(name: str) -> list[str]:
    """Uses of a name of the dictionary with a type that is not its own."""
    wrong = []
    for module, function, annotation in USES[name]:
        term = meaning_in(name, module)
        allowed = () if term is None else term.types
        if not all(any(fnmatch.fnmatch(word, pattern) for pattern in allowed) for word in words(annotation)):
            wrong.append(f"{module}.{function}({name}: {annotation})")
    return wrong


def test_names_of_the_dictionary_are_used_with_their_types() -> None:
    wrong = {name: uses for name in USED_TERMS if (uses := used_otherwise(name))}
    assert not wrong, f"these mean something else there, or have another type: {wrong}"


def test_every_term_is_used_and_no_meaning_stands_twice() -> None:
    used = {id(meaning_in(name, module)) for name, uses in USES.items() for module, _, _ in uses}
    idle = [f"{term.name} in {term.rooms}" for term in NOTATION if id(term) not in used]
    assert not idle, f"no public function uses these: {idle}"
    places = [(term.name, room) for term in NOTATION for room in term.rooms]
    assert len(places) == len(set(places))


def test_symbols_belong_to_documents_and_rooms_exist() -> None:
    assert {key for term in NOTATION for key in term.symbols} <= set(sources.documents())
    for room in {room for term in NOTATION for room in term.rooms if room}:
        importlib.import_module(f"separatrix.{room}")


def test_the_most_particular_room_decides() -> None:
    assert "time constant" in meaning_in("tau", "theory.learning.kernel").meaning  # type: ignore[union-attr]
    assert "correlation" in meaning_in("tau", "theory.free_probability.edges").meaning  # type: ignore[union-attr]
    assert meaning_in("tau", "tasks.semantic") is None
    assert meaning_in("no_such_name", "theory") is None


def test_the_page_has_a_section_per_document_and_every_name() -> None:
    page = notation_page()
    for key in sources.documents():
        assert f"(`{key}`)" in page
    assert r"| $\lambda$ | `balance` | w2'w2 - w1w1' = balance I | everywhere |" in page
    assert all(f"`{term.name}`" in page for term in NOTATION)
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert len(tables) > len(NOTATION)


def test_a_misspelt_field_of_a_term_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'meaning'"):
        Term("a", meanin="b", types=())  # type: ignore[call-arg]
