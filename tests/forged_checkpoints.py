"""Forged checkpoints of a training run: every part replaced by every wrong thing, with a digest that is right.

``python forged_checkpoints.py [SHARE [SEED]]`` prints as JSON how many were tried, and which ended otherwise than in
one sentence or in the run that was never stopped: ``raw`` by an error from the depths, ``silent`` with other numbers.
What one who forges may set as well as the run itself (a weight, a loss in the history) is none: nobody can tell it.
"""

from __future__ import annotations

import copy
import json
import math
import random
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import SeparatrixError, spawn
from separatrix.nn import SideBySide
from separatrix.training import TrainingRun, TrainingSettings, load_checkpoint, save_checkpoint, train

GONE = object()
WRONG: dict[str, Any] = {
    "gone": GONE, "nothing": None, "a word": "x", "bytes": b"x", "three": 3, "negative": -1, "beyond": 2**70,
    "a truth": True, "half": 0.5, "NaN": math.nan, "infinite": math.inf, "complex": 1j, "a list": [], "a tuple": (1, 2),
    "a dictionary": {}, "nested": {"x": [{"y": [None]}]}, "a list of lists": [[[]]], "empty": torch.zeros(0),
    "another shape": torch.zeros(2, 3, 1), "a NaN": torch.tensor(math.nan), "a complex tensor": torch.zeros(2) + 1j,
    "truths": torch.ones(3, dtype=torch.bool), "meta": torch.empty(3, device="meta"),
    "sparse": torch.eye(2).to_sparse(), "a set": {1},
}  # fmt: skip
X = torch.randn(24, 3, generator=spawn(0, "x"))


def _double(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value.float()


TURNED: dict[str, Callable[[Tensor], Tensor]] = {
    "another type": _double,
    "one more axis": lambda value: value[None],
    "longer": lambda value: torch.cat([value.reshape(-1), value.reshape(-1), torch.zeros(1, dtype=value.dtype)]),
    "another version": lambda value: value.to(torch.int16),
}


def single(path: Path | None, stop_at: int = -1) -> TrainingRun:
    """One model with momentum, watched, with a carried state."""
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    return _run(model, path, stop_at, {"optimiser": "sgd", "watch": "error", "plateau_factor": 0.5}, carries=True)


def several(path: Path | None, stop_at: int = -1) -> TrainingRun:
    """Three models side by side under Adam."""
    return _run(SideBySide([nn.Linear(3, 1) for _ in range(3)]), path, stop_at, {}, carries=False)


def _run(model: nn.Module, path: Path | None, stop_at: int, options: dict[str, Any], carries: bool) -> TrainingRun:
    for place, parameter in enumerate(model.parameters()):
        nn.init.normal_(parameter, std=0.4, generator=spawn(0, "init", place))
    noise, calls = spawn(0, "noise"), []

    def loss(model: nn.Module, batch: int, state: Any = None) -> Any:
        calls.append(batch)
        if len(calls) == stop_at:
            signal.raise_signal(signal.SIGINT)
        x = X[batch % 4 :: 4]
        if not carries:
            return model(x.expand(3, *x.shape)).square().flatten(1).mean(1) + torch.randn((), generator=noise)
        kept = torch.zeros(len(x), 1) if state is None else state["kept"]
        y = model(torch.cat([x, kept], 1))
        return (y - x[:, :1]).square().mean() + 0.01 * torch.randn((), generator=noise), {"kept": y}

    def measure(model: nn.Module) -> dict[str, Any]:
        return {"error": float(sum(p.square().sum() for p in model.parameters()))}

    settings = TrainingSettings(n_steps=8, lr=0.02, measure_every=2, save_every=1, **options)
    return train(
        model, int, loss, settings, measure=measure if carries else None, carries=carries, streams={"noise": noise},
        checkpoint=path,
    )  # fmt: skip


def places(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every part."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, part in inside:
        yield (*way, name)
        yield from places(part, (*way, name))


def forgeries(content: dict[str, Any], share: float, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for way in places(content):
        if way[0] == "carried":  # what it is only the caller's loss knows, whose own errors stay as they are
            continue
        part = content
        for name in way:
            part = part[name]
        values = dict(WRONG)
        if isinstance(part, Tensor):
            values |= {kind: turn(part) for kind, turn in TURNED.items()}
        for kind, value in values.items():
            title = f"{'.'.join(map(str, way))} = {kind}"
            if random.Random(zlib.crc32(title.encode()) + seed).random() >= share:
                continue
            forged = copy.deepcopy(content)
            inside: Any = forged
            for name in way[:-1]:
                inside = inside[name]
            if value is GONE:
                del inside[way[-1]]
            else:
                inside[way[-1]] = value
            yield title, forged
    for way in [(), *places(content)]:
        forged = inside = copy.deepcopy(content)
        for name in way:
            inside = inside[name]
        title = f"{'.'.join(map(str, way))} has more"
        if isinstance(inside, dict | list) and random.Random(zlib.crc32(title.encode()) + seed).random() < share:
            inside.update({"zzz": 1}) if isinstance(inside, dict) else inside.append({"zzz": 1})
            yield title, forged


def outcome(run: Callable[[Path], TrainingRun], path: Path, content: dict[str, Any], whole: TrainingRun) -> str:
    """``""``, or what is wrong with it."""
    save_checkpoint(path, content)
    try:
        found = run(path)
    except SeparatrixError as error:
        return "several lines" if "\n" in str(error) else ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"raw {type(error).__name__}: {str(error)[:150]} ({place.filename.rpartition('/')[2]}:{place.lineno})"
    return "" if _numbers(found) == _numbers(whole) else f"silent {found.ending} {found.n_done}"


def _numbers(run: TrainingRun) -> str:
    best = None if run.best is None else (run.best.step, run.best.value, sorted(run.best.state))
    return repr((run.history.records, run.ending, run.n_done, run.diverged_at, best))


def tried(share: float, seed: int) -> dict[str, Any]:
    """How many, and what they ended with."""
    answer: dict[str, Any] = {"tried": 0, "raw": {}, "silent": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        for run in (single, several):
            whole = run(None)
            path.unlink(missing_ok=True)
            run(path, 5)
            content = {name: part for name, part in load_checkpoint(path).items() if name != "format"}
            for title, forged in forgeries(content, share, seed):
                answer["tried"] += 1
                said = outcome(run, path, forged, whole)
                if said:
                    answer["silent" if said.startswith("silent") else "raw"][f"{run.__name__}: {title}"] = said
    return answer


if __name__ == "__main__":
    own_share, own_seed = (*sys.argv[1:], *("1", "0")[len(sys.argv) - 1 :])
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    json.dump(tried(float(own_share), int(own_seed)), sys.stdout, indent=1)
