"""Every public constructor names the nearest option for a misspelt keyword."""

from __future__ import annotations

import copy
import dataclasses
import enum
import importlib
import inspect
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch

from command_line import environment
from separatrix.core import InvalidInput, Result, UnknownOption
from separatrix.dynamics import Anderson, Picard
from separatrix.nn import DEQ, Implicit, TanhCell
from separatrix.sources import Erratum
from separatrix.training import TrainingSettings
from shape_checks import CALLS_PER_FILE
from test_public_surface import NAMES

EXEMPT: dict[str, str] = {
    "Result": "a mix-in without fields; people never make one",
    "Environment": "a protocol: people write one, and never make it",
    "Place": "text that findings carry; people read it",
}


def public_classes() -> set[type]:
    values = [getattr(importlib.import_module(room), name) for room, name, module in NAMES if module]
    return {value for value in values if inspect.isclass(value)}


def exemption(kind: type) -> str | None:
    """Why a class need not do it."""
    if issubclass(kind, BaseException):
        return "an exception takes a message"
    if issubclass(kind, enum.Enum):
        return "an enumeration is looked up"
    if inspect.isabstract(kind):
        return "an abstract class cannot be made"
    if issubclass(kind, Result):
        return "results are made by the package"
    return EXEMPT.get(kind.__name__)


CLASSES = sorted(
    (kind for kind in public_classes() if exemption(kind) is None),
    key=lambda kind: f"{kind.__module__}.{kind.__name__}",
)


def misspelt(name: str) -> str:
    """A name with its last letter doubled."""
    return name + name[-1]


def fault(kind: type) -> str:
    """What is wrong with the answer of a constructor to a misspelt keyword, or nothing."""
    parameters = list(inspect.signature(kind).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return "swallows misspelt options by **options"
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    wrong = misspelt(max(known, key=len)) if known else "no_such_option"
    try:
        kind(**{wrong: None})
    except UnknownOption as refused:
        said = str(refused)
        named = f"unknown option of {kind.__name__} {wrong!r}" in said
        near = not known or f"Did you mean '{max(known, key=len)}'" in said
        return "" if named and near else f"says: {said}"
    except TypeError as other:
        return f"raises {type(other).__name__}: {other}"
    return "takes it"


def test_a_misspelt_keyword_is_refused_with_the_nearest() -> None:
    assert issubclass(UnknownOption, TypeError)
    assert issubclass(UnknownOption, InvalidInput)
    assert not {kind.__name__: said for kind in CLASSES if (said := fault(kind))}


def test_the_classes_are_found() -> None:
    assert {Anderson, DEQ, Implicit, TanhCell, TrainingSettings, Erratum} <= set(CLASSES)


def test_signature_documentation_and_equality_are_those_of_the_class() -> None:
    assert list(inspect.signature(Picard).parameters)[:2] == ["tol", "max_steps"]
    assert inspect.signature(DEQ).parameters["on_fail"].default == "warn"
    assert DEQ.__init__.__name__ == "__init__"
    assert Picard(tol=1e-3) == Picard(tol=1e-3)
    with pytest.raises(TypeError, match="n_steps"):
        TrainingSettings()  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [Anderson(tol=1e-3), Implicit(), TrainingSettings(n_steps=1, lr=0.1)], ids=repr)
def test_copies_pickles_and_replacements_work(value: Any) -> None:
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert dataclasses.replace(value) == value
    with pytest.raises(UnknownOption, match="Did you mean"):
        dataclasses.replace(value, **{misspelt(dataclasses.fields(value)[0].name): 1})


def test_modules_are_copied_and_pickled(generator: torch.Generator) -> None:
    cell = TanhCell(3, generator=generator)
    layer = DEQ(cell, solver=Picard(max_steps=300))
    x = torch.randn(2, 3, generator=generator)
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x))
    torch.testing.assert_close(pickle.loads(pickle.dumps(cell))(x, x), cell(x, x))


@pytest.mark.skipif("SEPARATRIX_CHECK_EVERY_CALL" in os.environ, reason="a graph cannot hold checks: the slow twin")
def test_modules_are_compiled(generator: torch.Generator) -> None:
    cell, x = TanhCell(3, generator=generator), torch.randn(2, 3, generator=generator)
    for _ in range(CALLS_PER_FILE):  # the shapes of later calls are not checked, which the compiler could not follow
        expected = cell(x, x)
    torch.testing.assert_close(torch.compile(cell, backend="eager", fullgraph=True)(x, x), expected)


@pytest.mark.slow
def test_modules_are_compiled_where_nothing_checks_their_shapes() -> None:
    code = """
import torch
from separatrix.nn import TanhCell
cell = TanhCell(3, generator=torch.Generator().manual_seed(0))
x = torch.ones(2, 3)
torch.testing.assert_close(torch.compile(cell, backend="eager", fullgraph=True)(x, x), cell(x, x))
print("compiled")
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert answer.stdout == "compiled\n", answer.stderr


def test_a_class_of_a_stranger_may_add_options_of_its_own() -> None:
    class WithVolume(DEQ):
        def __init__(self, cell: Any, *, volume: int = 11, **options: Any) -> None:
            super().__init__(cell, **options)
            self.volume = volume

    assert WithVolume(lambda z, x: z, volume=3, on_fail="return").volume == 3
    with pytest.raises(UnknownOption, match=r"unknown option of WithVolume 'on_fial'. Did you mean 'on_fail'"):
        WithVolume(lambda z, x: z, on_fial="return")
