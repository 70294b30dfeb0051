"""Every public class says in a line what it is; objects of all kinds that are no results are made and read."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import separatrix
from separatrix import diagnose, dynamics, lab, matrices, nn as layers, tasks, theory, training
from separatrix.core.described import Described
from separatrix.core.devices import DeviceOffer
from separatrix.diagnose.findings.finding import Skipped

ROOMS = (
    *("core", "sources", "matrices", "theory", "dynamics", "lab", "tasks", "nn", "training"),
    *("diagnose", "advise", "report"),
)


def public_classes() -> dict[str, type]:
    modules = {"": separatrix} | {room: importlib.import_module(f"separatrix.{room}") for room in ROOMS}
    named = ((f"{room}.{name}", getattr(module, name)) for room, module in modules.items() for name in module.__all__)
    return {name: found for name, found in named if inspect.isclass(found)}


def test_no_public_class_is_left_with_the_words_of_object() -> None:
    told_by_python = (BaseException, enum.Enum)
    bare = [
        name
        for name, kind in public_classes().items()
        if kind.__repr__ is object.__repr__ and not issubclass(kind, told_by_python) and not is_protocol(kind)
    ]
    assert bare == []
    assert len(public_classes()) > 300


def is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


MODEL = nn.Linear(2, 2)
MADE: dict[str, Callable[[Path], Any]] = {
    "Store(folder=": lambda folder: lab.Store(folder),
    "LocalEngine(jobs=2)": lambda _: lab.LocalEngine(jobs=2),
    "WithinBudget(engine=LocalEngine(jobs=2), seconds=3)": lambda _: lab.WithinBudget(lab.LocalEngine(2), 3.0),
    "RunProgress(quiet=True)": lambda _: lab.RunProgress(quiet=True),
    "RecallCorridor(length=6)": lambda _: tasks.RecallCorridor(6),
    "ShuffledBatches(n_items=10, batch_size=2, seed=0": lambda _: tasks.ShuffledBatches(10, 2, 0),
    "Members(model=Linear)": lambda _: training.Members(MODEL),
    "BoundedCache(n_buffer=4, n_relevant=2)": lambda _: layers.BoundedCache(4, 2),
    "BoundedKeys(n_buffer=4, n_relevant=2": lambda _: layers.BoundedKeys(4, 2),
    "TaskSequence(": lambda _: theory.TaskSequence(torch.eye(2), torch.eye(2), [torch.eye(2)], [1.0]),
    "DeviceOffer(": lambda _: DeviceOffer(lambda: "cpu"),
    "FinishStep()": lambda _: training.FinishStep(),
    "Watcher(model=Linear": lambda _: diagnose.Watcher(MODEL, torch.optim.SGD(MODEL.parameters(), lr=0.1)),
    "Haar(": lambda _: matrices.Haar(),
    "JacobianAt(": lambda _: dynamics.JacobianAt(torch.tanh, torch.zeros(1, 3, dtype=torch.float64)),
}


@pytest.mark.parametrize("beginning", MADE)
def test_an_object_says_in_a_line_how_it_was_made(beginning: str, tmp_path: Path) -> None:
    line = repr(MADE[beginning](tmp_path / "store"))
    assert line.startswith(beginning)
    assert "\n" not in line
    assert " at 0x" not in line
    assert len(line) <= 100


def test_a_strangers_class_gets_its_line_and_a_torch_module_keeps_its_own() -> None:
    class Part(Described):
        def __init__(self, size: int, scale: float = 1.0, *, name: str = "none", lost: int = 3) -> None:
            self.size, self._scale, self.name = size, scale, name

    class Layer(Described, nn.Module):
        pass

    assert repr(Part(3)) == "Part(size=3)"
    assert repr(Part(3, 0.5, name="a" * 200)).startswith("Part(size=3, scale=0.5, name='aaaa")
    assert repr(Layer()) == "Layer()"
    assert repr(Part(3, name="b" * 200)).count("\n") == 0


def test_a_property_is_not_asked() -> None:
    class Lazy(Described):
        def __init__(self, size: int) -> None:
            pass

        @property
        def size(self) -> int:
            raise AssertionError("computed for a line of text")

    assert repr(Lazy(2)) == "Lazy()"


def test_what_was_skipped_stays_one_line() -> None:
    assert "\n" not in repr(Skipped("loss", "a long reason " * 20))
