"""Whether the parts of a checkpoint are those that this very run would write: kinds, shapes, counts.

A digest tells that a file was not changed by accident. These rules tell a file that somebody made, before a part of it
ends a run in its depths some steps later. Numbers of the right kind are believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import CorruptData

_OF_EACH_MEMBER = ("loss", "gradient_norm")


def require_parts(content: Mapping[str, Any], own: Mapping[str, Any], path: Any) -> None:
    """Refuse a checkpoint whose members, watched state, history or order of parameters cannot be those of the run.

    Args:
        content: what was read; its ``n_done`` was looked at already.
        own: the same parts as the run has them before it goes on.
        path: for the sentence.

    Raises:
        CorruptData: which part it is.

    Cost: nothing is computed with the tensors.
    """
    problem = next(_problems(content, own), None)
    if problem is not None:
        raise CorruptData(f"{path} is not the checkpoint of a training run: {problem}.")


def _problems(content: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[str]:
    done, members = content["n_done"], content["members"]
    count = len(own["members"]["resting"])
    for group, mine in zip(content["optimiser"]["param_groups"], own["optimiser"]["param_groups"], strict=True):
        if group["params"] != mine["params"] or any(type(place) is not int for place in group["params"]):
            yield "its optimiser has its parameters in another order"
        if not _is_number(group["lr"]):
            yield "the learning rate of its optimiser is no number"
    if not _is_like(members["resting"], own["members"]["resting"]):
        yield "it does not say which of its members rest"
    if not _are_ends(members["diverged_at"], members["resting"], done):
        yield "it does not say when its members diverged"
    if not _are_like(dict(enumerate(members["good"])), dict(enumerate(own["members"]["good"]))):
        yield "its last good parameters are not those of the model"
    if not _are_like(members["good_buffers"], own["members"]["good_buffers"]):
        yield "its last good buffers are not those of the model"
    measured = content["measured"]
    if isinstance(measured, bool) or (measured is not None and not 0 <= measured < max(done, 1)):
        yield "what it measured last is none of its steps"
    if not _is_number(content["watch"]["factor"]) or not 0 < content["watch"]["factor"] < math.inf:
        yield "the factor of its learning rates is no number"
    if not _is_best(content["watch"]["best"], own["model"], done):
        yield "its best state is none of the model"
    yield from _of_history(content["history"], done, count)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_like(value: Any, mine: Any) -> bool:
    """A tensor in memory of the same shape and type; what modules keep beside tensors is theirs to judge."""
    if not isinstance(mine, Tensor):
        return not isinstance(value, Tensor)
    plain = isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta
    return plain and value.shape == mine.shape and value.dtype == mine.dtype


def _are_like(values: Any, mine: Mapping[Any, Any]) -> bool:
    same = isinstance(values, dict) and set(values) == set(mine)
    return same and all(_is_like(values[name], part) for name, part in mine.items())


def _is_step(value: Any, done: int) -> bool:
    return type(value) is int and 0 <= value < done


def _are_ends(ends: Any, resting: Tensor, done: int) -> bool:
    """For each that rests a step, of which the last may not have been done."""
    if not isinstance(ends, list) or len(ends) != len(resting):
        return False
    pairs = zip(ends, resting.tolist(), strict=True)
    return all(_is_step(end, done + 1) if rests else end is None for end, rests in pairs)


def _is_best(best: Any, model: Mapping[str, Any], done: int) -> bool:
    if best is None:
        return True
    if not isinstance(best, dict) or set(best) != {"step", "value", "state"}:
        return False
    number = isinstance(best["value"], float) and math.isfinite(best["value"])
    return number and _is_step(best["step"], max(done, 1)) and _are_like(best["state"], model)


def _of_history(history: list[Any], done: int, count: int) -> Iterator[str]:
    last = -1
    for row in history:
        step = row.get("step")
        if not _is_step(step, max(done, 1)) or step <= last or not _is_plain(row):
            yield "its history is no list of measurements"
            return
        last = step
        for name in _OF_EACH_MEMBER:
            value = row.get(name, 0.0)
            numbers = [value] if count == 1 else value
            if name in row and not (
                isinstance(numbers, list) and len(numbers) == count and all(_is_number(number) for number in numbers)
            ):
                yield f"its history has no {name} of each member at step {step}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(part) for name, part in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
