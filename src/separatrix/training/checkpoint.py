"""Checkpoints: all that decides the rest of a run, in one file that is there whole or not at all.

The file is what ``torch.save`` writes, and its last bytes (the comment of the archive) are the SHA-256 of all before
them: what was changed on the disk is noticed before it is read. Reading executes nothing
(``torch.load(weights_only=True)``). A run continued from a checkpoint gives the same numbers, bit for bit, as one that
was never stopped, on the same build and number of threads.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from separatrix.core.disk import written_whole
from separatrix.core.errors import CorruptData, InvalidInput, MissingData

FORMAT = 3
_MARK = b"separatrix sha256 "
_TRAILER = len(_MARK) + 64


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the run goes on without."""


def save_checkpoint(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values so that a kill at any moment leaves the old file or the new one.

    Raises:
        OSError: it cannot be written; what stood under the name stands there still.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as stream:
        torch.save({"format": FORMAT, **content}, stream)
        stream.seek(-2, os.SEEK_END)  # the archive ends with the length of its comment
        stream.write(struct.pack("<H", _TRAILER))
        length = stream.tell()
        stream.write(_MARK + _digest(stream, length))


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint; its tensors come to the processor's memory, wherever they were.

    Raises:
        MissingData: there is no such file, or it may not be read.
        CorruptData: the file is not a whole checkpoint of this package: it has not the digest it ends with.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"there is no checkpoint at {path}.")
    try:
        with path.open("rb") as stream:
            _verify(stream)
            stream.seek(0)
            content = torch.load(stream, weights_only=True, map_location="cpu")
            version = content["format"]
    except OSError as error:
        raise MissingData(f"the checkpoint {path} cannot be read: {error.strerror or error}.") from None
    except (pickle.UnpicklingError, EOFError, RuntimeError, LookupError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorruptData(f"{path} is not a whole checkpoint ({reason}). Move it away to start anew.") from None
    if version != FORMAT:
        raise CorruptData(f"{path} has checkpoint format {version}; this version reads {FORMAT}.")
    return dict(content)


def _verify(stream: BinaryIO) -> None:
    length = stream.seek(0, os.SEEK_END) - _TRAILER
    stream.seek(max(length, 0))
    mark, _, written = stream.read().rpartition(b" ")
    if length < 0 or mark + b" " != _MARK:
        raise EOFError("it ends without a digest")
    if _digest(stream, length) != written:
        raise ValueError("its content has another digest than when it was written")


def _digest(stream: BinaryIO, length: int) -> bytes:
    """SHA-256 of the first bytes of a file, without holding them all; the stream is at their end after."""
    digest = hashlib.sha256()
    stream.seek(0)
    while length > 0:
        part = stream.read(min(length, 1 << 20))
        digest.update(part)
        length -= len(part)
    return digest.hexdigest().encode()


def require_same_model(saved: Mapping[str, Any], model: torch.nn.Module, path: str | Path) -> None:
    """Refuse the state of another model before anything is changed, naming the first tensor that differs."""
    own = model.state_dict()
    problem = f"the checkpoint {path} belongs to another model:"
    for name in sorted({*saved, *own}):
        if name not in saved or name not in own:
            holder = "it" if name not in saved else "this model"
            raise InvalidInput(f"{problem} {holder} has no {name!r}. Give another path to start anew.")
        there, here = saved[name], own[name]
        if not (isinstance(there, torch.Tensor) and isinstance(here, torch.Tensor)):
            continue  # what a module keeps beside its tensors is for the module to judge
        for what, a, b in (
            ("has shape", tuple(there.shape), tuple(here.shape)),
            ("is", str(there.dtype).removeprefix("torch."), str(here.dtype).removeprefix("torch.")),
        ):
            if a != b:
                raise InvalidInput(f"{problem} {name} {what} {a} there and {b} here. Give another path to start anew.")


def require_equal_settings(saved: Mapping[str, Any], wanted: Mapping[str, Any], path: str | Path) -> None:
    """Refuse to continue a run under other settings than it began with, naming the first that differs.

    How often to save decides no number, so that may change.
    """
    for name in sorted({*saved, *wanted} - {"save_every", "save_seconds"}):
        if saved.get(name) != wanted.get(name):
            raise InvalidInput(
                f"{name} must be {saved.get(name)!r}, as in the checkpoint {path}, to continue that run; got "
                f"{wanted.get(name)!r}. Give another path to start anew."
            )


_OF_EACH_ENTRY = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "sum")
"""What optimisers of torch keep for every entry of a parameter."""


def require_whole(content: Mapping[str, Any], optimiser: torch.optim.Optimizer, n_steps: int, path: str | Path) -> None:
    """Refuse a checkpoint whose parts are not those of a run: a digest tells that it was not changed by accident alone.

    Raises:
        CorruptData: which part it is.
    """
    done, history = content["n_done"], content["history"]
    if isinstance(done, bool) or not isinstance(done, int) or not 0 <= done <= n_steps:
        raise _no_run(path, f"n_done is none of its {n_steps} steps")
    if not isinstance(content["measured"], int | None) or not isinstance(content["watch"]["factor"], int | float):
        raise _no_run(path, "what it measured last is no number")
    if not isinstance(content["members"]["resting"], torch.Tensor):
        raise _no_run(path, "it does not say which of its members rest")
    if not (isinstance(history, list) and all(isinstance(row, dict) for row in history)):
        raise _no_run(path, "its history is no list of measurements")
    saved = content["optimiser"]
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    momenta = [group.get("momentum", 0.0) for group in optimiser.param_groups for _ in group["params"]]
    for own, group in zip(optimiser.param_groups, saved["param_groups"], strict=True):
        for name, value in own.items():
            if name not in ("params", "lr") and not _is_equal(group[name], value):
                raise _no_run(path, f"its optimiser has another {name}")
    _require_memory(saved["state"], optimiser, done, path)
    for place, kept in saved["state"].items():
        for name, value in kept.items():
            shaped = isinstance(value, torch.Tensor) and value.shape == parameters[place].shape
            shaped = shaped and value.dtype == parameters[place].dtype and not value.is_meta
            empty = value is None and name == "momentum_buffer" and not momenta[place]  # torch keeps none without it
            if name in _OF_EACH_ENTRY and not shaped and not empty:
                raise _no_run(path, f"{name} of its optimiser has not the shape of its parameter")
            if name == "step" and not (torch.as_tensor(value).numel() == 1 and 0 <= float(value) < math.inf):
                raise _no_run(path, "the optimiser's count of steps is none")


def _require_memory(
    state: Mapping[int, Mapping[str, Any]], optimiser: torch.optim.Optimizer, done: int, path: str | Path
) -> None:
    """Refuse a run whose optimiser has forgotten its averages: it would restart them in silence.

    A parameter that no loss has reached yet has none, so that they must be whole where there are some, and be there for
    one parameter at least.
    """
    owner = [group for group in optimiser.param_groups for _ in group["params"]]
    needed = [set(_kept_by(optimiser, group)) for group in owner]
    if done and owner and all(needed) and not state:
        raise _no_run(path, "its optimiser has kept nothing of the steps that were done")
    for place, kept in state.items():
        if lost := needed[place] - set(kept):
            raise _no_run(path, f"its optimiser has lost {min(lost)} of a parameter")


def _kept_by(optimiser: torch.optim.Optimizer, group: Mapping[str, Any]) -> tuple[str, ...]:
    """What the usual optimisers keep of a parameter; nothing is asked of others."""
    if isinstance(optimiser, torch.optim.Adam):
        return ("step", "exp_avg", "exp_avg_sq")
    momentum = ("momentum_buffer",) if group.get("momentum") else ()
    if isinstance(optimiser, torch.optim.RMSprop):
        return ("step", "square_avg", *momentum)
    return momentum if isinstance(optimiser, torch.optim.SGD) else ()


def _is_equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other)


def _no_run(path: str | Path, reason: str) -> CorruptData:
    return CorruptData(f"{path} is not the checkpoint of a training run: {reason}.")


def stream_states(streams: Mapping[str, torch.Generator]) -> dict[str, torch.Tensor]:
    """The states of generators by name."""
    return {name: generator.get_state() for name, generator in streams.items()}


def restore_streams(streams: Mapping[str, torch.Generator], states: Mapping[str, torch.Tensor]) -> None:
    """Put generators back; the names must be those of the checkpoint."""
    if set(streams) != set(states):
        raise InvalidInput(f"streams must be named {sorted(states)}, as in the checkpoint; got {sorted(streams)}.")
    for name, generator in streams.items():
        generator.set_state(states[name])
