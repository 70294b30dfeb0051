"""Every public callable of the computing rooms, called with one argument of a wrong kind.

``python wrong_kinds.py [SHARE [SEED]]``, run by itself, without the shape checks of the tests, prints what ended
otherwise than in a sentence; a share of all calls is drawn by the seed. The other arguments are guessed from names and
annotations; a guess that is refused in a sentence is no failure.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import random
import re
import sys
import traceback
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from separatrix import dynamics, theory
from separatrix.core import SeparatrixError

ROOMS = ("dynamics", "matrices", "theory", "diagnose", "nn", "tasks", "training")
VALUE = torch.diag(torch.tensor([0.9, 0.5, 0.25], dtype=torch.float64))
WRONG: dict[str, Any] = {
    "nothing": None,
    "a word": "x",
    "an object": object(),
    "NaN": torch.full((3, 3), torch.nan, dtype=torch.float64),
    "another shape": torch.ones(2, 5, dtype=torch.float64),
    "an empty array": torch.zeros(0),
}
GUESSES: dict[str, Callable[[], Any]] = {
    "flow": lambda: dynamics.OjaFlow(VALUE),
    "x": lambda: torch.eye(3, dtype=torch.float64)[[0, 1, 1]],
    "generator": lambda: torch.Generator().manual_seed(0),
    "law": theory.Semicircle,
    "first": theory.Semicircle,
    "second": theory.Semicircle,
    "positive": theory.MarchenkoPastur,
    "other": theory.MarchenkoPastur,
    "ensemble": lambda: "gaussian",
    "phi": lambda: "tanh",
    "model": lambda: torch.nn.Linear(3, 3).double(),
    "module": lambda: torch.nn.Linear(3, 3).double(),
    "cell": lambda: torch.add,
}
LEFT_OUT = {
    "load_mnist": "its sentence about missing files takes several lines",
    "sequential_mnist": "its sentence about missing files takes several lines",
    "unicode_glyphs": "its sentence about missing files takes several lines",
    "public_game": "its sentence about missing files takes several lines",
    "jacobian_penalty": "x goes to the cell as it is, whose own error it is",
}


CALLS = 2_000_000
"""How many functions a wrong call may enter before it is cut off: refusing takes a few hundred."""


class TooLong(BaseException):
    """The call computes instead of refusing."""


class Limit:
    """Cuts a call off after so many functions were entered, on every machine at the same place. An import is let
    through whole: one that is interrupted stays broken."""

    def __init__(self, calls: int) -> None:
        self.left = calls
        self.importing = 0

    def __enter__(self) -> None:
        sys.setprofile(self.count)

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)

    def count(self, frame: types.FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_name == "_find_and_load":
            self.importing += (event == "call") - (event == "return")
        elif event == "call" and not self.importing:
            self.left -= 1
            if self.left < 0:
                raise TooLong


def guess(parameter: inspect.Parameter) -> Any:
    words = str(parameter.annotation)
    if parameter.name in GUESSES:
        return GUESSES[parameter.name]()
    if axes := re.search(r'Tensor, "([^"]*)"', words):
        count = sum(not axis.startswith("*") for axis in axes[1].split())
        return VALUE if count == 2 else torch.full((3,) * count, 0.5, dtype=torch.float64)
    if "Callable" in words:
        return torch.tanh
    return 3 if "int" in words else 0.5 if "float" in words else "x" if "str" in words else VALUE


def callables() -> Iterator[tuple[str, Any, list[inspect.Parameter]]]:
    for room in ROOMS:
        module = importlib.import_module(f"separatrix.{room}".rstrip("."))  # "" is the top level
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if (
                isinstance(thing, types.ModuleType | types.GenericAlias)
                or not callable(thing)
                or name in LEFT_OUT
                or inspect.isabstract(thing)
            ):
                continue
            if inspect.isclass(thing) and issubclass(thing, enum.Enum | BaseException):
                continue
            parameters = inspect.signature(thing).parameters.values()
            variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            yield f"{room}.{name}", thing, [one for one in parameters if one.kind not in variable]


def answer(call: Any, parameters: list[inspect.Parameter], wrong: inspect.Parameter, value: Any) -> str:
    """What went wrong, or nothing."""
    required = [one for one in parameters if one.default is one.empty and one is not wrong]
    given = {one.name: guess(one) for one in required} | {wrong.name: value}
    args = [given.pop(one.name) for one in parameters if one.kind is one.POSITIONAL_ONLY and one.name in given]
    try:
        with Limit(CALLS):
            call(*args, **given)
    except SeparatrixError as error:
        return f"several lines: {error}" if "\n" in str(error) else ""
    except TooLong:
        return ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"
    return ""


def main(share: float, seed: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found, count = {}, 0
    for name, call, parameters in callables():
        for parameter in parameters:
            kinds = WRONG if parameter.default is parameter.empty else {"an object": WRONG["an object"]}
            for kind, value in kinds.items():
                title = f"{name}({parameter.name}={kind})"
                if random.Random(zlib.crc32(title.encode()) + seed).random() >= share:
                    continue
                count += 1
                if said := answer(call, parameters, parameter, value):
                    found[title] = said
    json.dump({"calls": count, "raw": found}, sys.stdout)


if __name__ == "__main__":
    own_share, own_seed = (*sys.argv[1:], *("1", "0")[len(sys.argv) - 1 :])
    main(float(own_share), int(own_seed))
