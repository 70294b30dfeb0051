"""Every public callable with one argument of the right kind and a value nobody should give it.

``python wrong_values.py ROOM [SHARE [SEED]]`` prints as JSON how many calls were made and which ended otherwise than in
an answer or one sentence; several rooms are joined by commas, and a share of all calls is drawn by the seed. Each
callable is tried in a process of its own, forked, with its memory and time limited: a call
that computes is cut off and counts as an answer. The callables and the guesses at their other arguments are those of
``wrong_kinds``, so a new function is covered on the day it is written.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable
from typing import Any, NoReturn

import torch

import wrong_kinds
from separatrix.core import SeparatrixError

SECONDS, GIGABYTES = 1.5, 6
ALL_ROOMS = (
    *("core", "sources", "matrices", "theory", "dynamics", "diagnose", "nn", "tasks", "training", "advise", "lab"),
    *("report", ""),
)
INTEGERS: dict[str, Any] = {
    "zero": 0, "negative": -1, "NaN": math.nan, "infinite": math.inf, "huge": 10**9, "beyond": 10**30, "half": 2.5,
    "a truth": True, "a tensor": torch.tensor([3, 3]), "complex": 1j, "a list": [3], "an empty list": [],
}  # fmt: skip
NUMBERS: dict[str, Any] = {
    "zero": 0.0, "negative": -1.0, "NaN": math.nan, "infinite": math.inf, "minus infinite": -math.inf, "huge": 1e300,
    "tiny": 1e-320, "beyond": 10**400, "complex": 1j, "a list": [0.5], "empty": torch.zeros(0), "an integer": 3,
}  # fmt: skip
WORDS: dict[str, Any] = {
    "empty": "", "NUL": "a\0b", "long": "x" * 100_000, "a surrogate": "\ud800", "bytes": b"x", "zero": 0,
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    "to nothing": lambda *args, **options: None,
    "to NaN": lambda *args, **options: torch.tensor(math.nan),
    "to a word": lambda *args, **options: "x",
}
OTHERS: dict[str, Any] = {"an empty list": [], "a dictionary": {}, "NaN": math.nan, "empty": torch.zeros(0)}
OWN_ERRORS = {  # what the model or function that was handed over says of its own arguments
    ("diagnose.balance_profile", "example_inputs"),
    ("diagnose.find_pairs", "example_inputs"),
    ("diagnose.set_balance", "example_inputs"),
    ("diagnose.run_cache", "tokens"),
    ("dynamics.gmres", "operator"),
    *(("training.examine_relational", name) for name in ("make", "seeds", "encoder", "oracle_steps")),  # its task's
}


def tensors(usual: torch.Tensor) -> dict[str, Any]:
    """A tensor in every form that code may have forgotten."""
    plain = usual.double() if not usual.is_floating_point() else usual
    found: dict[str, Any] = {
        "NaN": torch.full_like(plain, math.nan),
        "infinite": torch.full_like(plain, math.inf),
        "empty": torch.zeros((0,) * max(1, plain.ndim), dtype=plain.dtype),
        "zero": torch.zeros_like(plain),
        "negative": -plain.abs() - 1,
        "more axes": plain[None, None].expand(2, 2, *plain.shape),
        "no axes": torch.tensor(0.5, dtype=plain.dtype),
        "integer": torch.ones_like(plain, dtype=torch.int64),
        "complex": plain + 1j,
        "a list": plain.tolist(),
        "huge": torch.full_like(plain, 1e300),
        "tiny": torch.full_like(plain, 1e-310),
        "numpy": plain.numpy(),
        "half precision": plain.half(),
        "boolean": torch.ones_like(plain, dtype=torch.bool),
        "another size": torch.ones(tuple(size + 2 for size in plain.shape), dtype=plain.dtype),
    }
    if plain.numel():
        found["one NaN"] = plain.clone().contiguous()
        found["one NaN"].view(-1)[0] = math.nan
    return found


def values(parameter: inspect.Parameter) -> dict[str, Any]:
    words, usual = str(parameter.annotation), wrong_kinds.guess(parameter)
    if parameter.name in wrong_kinds.GUESSES and not isinstance(usual, torch.Tensor):
        return OTHERS
    if "Callable" in words:
        return FUNCTIONS | OTHERS
    if "Tensor" in words or isinstance(usual, torch.Tensor):
        own = usual if isinstance(usual, torch.Tensor) else wrong_kinds.VALUE
        return tensors(own) | (NUMBERS if "float" in words else {})
    if "int" in words.split("|")[0]:
        return INTEGERS
    if "float" in words:
        return NUMBERS
    return INTEGERS if "int" in words else WORDS | OTHERS if "str" in words else OTHERS


class _Late(BaseException):
    """The call computes instead of refusing."""


def _late(*_: Any) -> NoReturn:
    raise _Late


def answer(call: Callable[..., Any], parameters: list[inspect.Parameter], wrong: inspect.Parameter, value: Any) -> str:
    """What went wrong, or nothing."""
    required = [one for one in parameters if one.default is one.empty and one is not wrong]
    given = {one.name: wrong_kinds.guess(one) for one in required} | {wrong.name: value}
    args = [given.pop(one.name) for one in parameters if one.kind is one.POSITIONAL_ONLY and one.name in given]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        call(*args, **given)
    except SeparatrixError as error:
        return f"several lines: {error}" if "\n" in str(error) else ""
    except _Late:
        return ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} ({place.filename.rpartition('/')[2]}:{place.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


Try = tuple[str, inspect.Parameter, Any]


def chosen(name: str, parameters: list[inspect.Parameter], share: float, seed: int) -> list[Try]:
    """The calls to make of a callable: title, argument and value."""
    found = []
    for parameter in parameters:
        for kind, value in values(parameter).items() if (name, parameter.name) not in OWN_ERRORS else ():
            title = f"{name}({parameter.name}={kind})"
            drawn = random.Random(zlib.crc32(title.encode()) + seed).random()
            if drawn < share:
                found.append((title, parameter, value))
    return found


def tried(name: str, call: Callable[..., Any], parameters: list[inspect.Parameter], tries: list[Try]) -> dict[str, Any]:
    """In a process of its own: calls made, and what ended otherwise than it should; a crash is told by its signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as stream:
            _try_all(call, parameters, tries, stream)
            stream.flush()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        lines = [json.loads(line) for line in stream.read().splitlines() if line.endswith("}")]
    _, status = os.waitpid(child, 0)
    raw = {line["call"]: line["raw"] for line in lines if line.get("raw")}
    if status:
        raw[lines[-1]["call"] if lines else name] = f"its process ended with status {status}"
    return {"calls": sum("raw" in line for line in lines), "raw": raw}


def _try_all(call: Any, parameters: list[inspect.Parameter], tries: list[Try], stream: Any) -> None:
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (GIGABYTES << 30), resource.RLIM_INFINITY))
    signal.signal(signal.SIGPROF, _late)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for title, parameter, value in tries:
            stream.write(json.dumps({"call": title}) + "\n")
            stream.flush()
            said = ""
            with contextlib.suppress(_Late):  # which may also come while what was made is taken apart
                said = answer(call, parameters, parameter, value)
            stream.write(json.dumps({"call": title, "raw": said}) + "\n")


def main(rooms: str, share: float, seed: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wrong_kinds.ROOMS = tuple(rooms.split(","))  # type: ignore[assignment]
    whole: dict[str, Any] = {"calls": 0, "raw": {}}
    for name, call, parameters in wrong_kinds.callables():
        tries = chosen(name, parameters, share, seed)
        if not tries:
            continue
        found = tried(name, call, parameters, tries)
        whole["calls"] += found["calls"]
        whole["raw"] |= found["raw"]
    json.dump(whole, sys.stdout)


if __name__ == "__main__":
    own_share, own_seed = (*sys.argv[2:], "1", "0")[:2] if len(sys.argv) != 3 else (sys.argv[2], "0")
    main(sys.argv[1], float(own_share), int(own_seed))
