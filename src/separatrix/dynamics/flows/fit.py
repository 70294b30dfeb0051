"""Whether velocity and derivative of a flow fit its states: asked once, before anything is computed."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, SeparatrixError, ShapeError

from .base import AbstractFlow


def check_motion(flow: AbstractFlow, x: Float[Tensor, "batch n d"], *, derivative: bool) -> None:
    """Refuse a flow whose velocity does not fit its states: it would be broadcast or rounded without a word.

    Args:
        flow: in float64, its weights selected for the states.
        x: float64 states; one is enough.
        derivative: whether the Jacobian-vector product will be used too.

    Cost: one velocity, and two products if ``derivative``.
    """
    time = None if flow.autonomous else torch.zeros(len(x), dtype=x.dtype, device=x.device)
    try:
        moves = flow.velocity_and_jvp(x, x, time) if derivative else (flow.velocity(x, time),)
    except SeparatrixError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"the {_failing(flow, x, time)} of {type(flow).__name__} fails at a state of shape {tuple(x.shape)} "
            f"({type(error).__name__}: {error})."
        ) from error
    for what, move in zip(("velocity", "jvp"), moves, strict=False):
        if not isinstance(move, Tensor):
            raise InvalidInput(f"{what} of {type(flow).__name__} must be a tensor; got {type(move).__name__}.")
        if move.shape != x.shape:
            raise ShapeError(
                f"{what} of {type(flow).__name__} must have the shape of the state, {tuple(x.shape)}; "
                f"got {tuple(move.shape)}."
            )
        if move.dtype != x.dtype:
            raise InvalidInput(
                f"{what} of {type(flow).__name__} must be in the precision of the state, {x.dtype}; got {move.dtype}."
            )
    if derivative:
        _check_directions(flow, x, time)


def _failing(flow: AbstractFlow, x: Tensor, time: Tensor | None) -> str:
    try:
        flow.velocity(x, time)
    except Exception:
        return "velocity"
    return "jvp"


def _check_directions(flow: AbstractFlow, x: Tensor, time: Tensor | None) -> None:
    """Refuse a derivative that takes one direction only: Jacobians ask for all of them in one call."""
    several = torch.stack([x, x])
    shape: tuple[int, ...] | str
    try:
        answer = flow.jvp(x, several) if time is None else flow.jvp(x, several, time)
        shape = tuple(answer.shape)
    except Exception as error:
        shape = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if shape != tuple(several.shape):
        raise ShapeError(
            f"jvp of {type(flow).__name__} must take directions u with further leading axes, as of shape "
            f"{tuple(several.shape)} at a state of shape {tuple(x.shape)}, and return their shape; got {shape}."
        )
