"""Losses by name, and targets as vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve

Loss: TypeAlias = str | Callable[[Tensor, Any], Tensor]
"""``"mse"`` (torch's), ``"half_mse"``, ``"cross_entropy"``, or a function of prediction and target to a scalar."""


_IGNORED = -100
"""The class number that torch leaves out of a cross entropy."""


def loss_for(loss: Loss | None, target: Any) -> Loss:
    """The loss that was given; without one, cross entropy for class numbers and the mean squared error otherwise."""
    if loss is not None:
        return loss
    if isinstance(target, Tensor) and not target.is_floating_point() and not target.is_complex():
        return "cross_entropy"
    return "mse"


def loss_function(loss: Loss) -> Callable[[Tensor, Any], Tensor]:
    """The function behind a loss given by name; functions pass through."""
    if callable(loss):
        return loss
    return resolve("loss", loss, _LOSSES, also="a function of prediction and target")


def mean_square(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """torch's mean squared error: the mean over samples and outputs. Class numbers become one-hot vectors."""
    return (prediction - target_vectors(target, prediction)).square().mean()


def half_mean_square(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """|prediction - target|^2 / (2 P): half the squared error, summed over outputs, averaged over P samples."""
    target = target_vectors(target, prediction)
    return (prediction - target).square().sum() / (2 * prediction.shape[0])


def cross_entropy(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """Cross entropy of class scores, averaged over samples and positions.

    Scores lie on the last axis; on axis 1, as torch has it for images, where only that fits the target. Targets are
    class numbers, or probabilities in the shape of the scores.
    """
    if target.is_floating_point() and target.shape == prediction.shape:
        return torch.nn.functional.cross_entropy(prediction.flatten(0, -2), target.flatten(0, -2))
    target = _class_numbers(target, prediction)
    if prediction.ndim > 2 and target.shape != prediction.shape[:-1] and target.shape == prediction[:, 0].shape:
        return torch.nn.functional.cross_entropy(prediction, target)
    return torch.nn.functional.cross_entropy(prediction.flatten(0, -2), target.flatten())


def _class_numbers(target: Tensor, prediction: Tensor) -> Tensor:
    """Class numbers as torch wants them; anything else is refused."""
    shapes = {tuple(prediction.shape[:-1]): prediction.shape[-1]}
    if prediction.ndim > 2:
        shapes.setdefault((prediction.shape[0], *prediction.shape[2:]), prediction.shape[1])
    flat = {math.prod(shape): classes for shape, classes in reversed(shapes.items())}
    classes = shapes.get(tuple(target.shape), flat.get(target.numel()))
    if target.is_floating_point() or target.is_complex() or classes is None:
        kind = str(target.dtype).removeprefix("torch.")
        raise InvalidInput(
            f"targets of cross entropy must be class numbers of shape {tuple(prediction.shape[:-1])}, or probabilities "
            f"of shape {tuple(prediction.shape)}; got {kind} of shape {tuple(target.shape)}."
        )
    if transforms_active() or target.numel() == 0 or target.is_meta:
        return target.long()
    low, high = int(target.masked_fill(target.long() == _IGNORED, 0).min()), int(target.max())
    if low < 0 or high >= classes:
        raise InvalidInput(f"class targets must have values in 0..{classes - 1}; got values {low} to {high}.")
    return target.long()


_LOSSES: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "mse": mean_square,
    "half_mse": half_mean_square,
    "cross_entropy": cross_entropy,
}


def target_vectors(target: Any, prediction: Tensor) -> Tensor:
    """Targets in the shape of the prediction: class numbers become one-hot vectors."""
    if not isinstance(target, Tensor):
        raise InvalidInput(f"targets must be a tensor; got {type(target).__name__}.")
    if target.is_floating_point() or target.is_complex():
        if target.shape != prediction.shape:
            raise InvalidInput(
                f"targets must have the shape of the predictions {tuple(prediction.shape)}; got {tuple(target.shape)}."
            )
        return target.to(prediction.dtype)
    classes = prediction.shape[-1]
    if target.shape != prediction.shape[:-1] or int(target.min()) < 0 or int(target.max()) >= classes:
        raise InvalidInput(
            f"class targets must have shape {tuple(prediction.shape[:-1])} and values in 0..{classes - 1}; got shape "
            f"{tuple(target.shape)}, values {int(target.min())} to {int(target.max())}."
        )
    return torch.nn.functional.one_hot(target.long(), classes).to(prediction.dtype)
