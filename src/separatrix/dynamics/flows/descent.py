"""Discrete training of a chain of layers: gradient descent, heavy-ball momentum, Adam; full batch, batched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, choose, in_words, require_integer, require_number, require_positive
from separatrix.core.names import suggest_options

from .layers import LayerTrajectory

Optimiser: TypeAlias = Literal["sgd", "momentum", "adam"]
OPTIMISERS: tuple[Optimiser, ...] = ("sgd", "momentum", "adam")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Descent:
    """An optimiser: ``"sgd"`` (plain gradient descent), ``"momentum"`` (heavy ball) or ``"adam"``.

    Args:
        lr: step size, the same for every layer (a flow's ``learning_rates`` multiply it).
        kind: which optimiser.
        momentum: of the heavy ball.
        betas: decay of Adam's two averages.
        eps: added to Adam's denominator.
    """

    lr: float
    kind: Optimiser = "sgd"
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        require_positive(self.lr, "lr")
        require_positive(self.eps, "eps")
        choose("optimiser", self.kind, OPTIMISERS)
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InvalidInput(f"betas must be two numbers in [0, 1); got {in_words(self.betas)}.")
        for value, name in ((self.momentum, "momentum"), (self.betas[0], "betas"), (self.betas[1], "betas")):
            if not 0 <= require_number(value, name) < 1:
                raise InvalidInput(f"{name} must lie in [0, 1); got {value}.")


def descend(
    gradient: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    loss: Callable[[Sequence[Tensor]], Tensor],
    layers: Sequence[Tensor],
    method: Descent,
    steps: int,
    record_every: int,
    rates: Sequence[float],
) -> LayerTrajectory:
    """Run ``steps`` updates and keep the state at step 0 and every ``record_every`` steps."""
    require_integer(steps, "steps", at_least=0)
    require_integer(record_every, "record_every", at_least=1)
    state = [layer.clone() for layer in layers]
    slow = [torch.zeros_like(layer) for layer in layers]
    square = [torch.zeros_like(layer) for layer in layers]
    kept, at = [tuple(state)], [0]
    for step in range(1, steps + 1):
        grads = gradient(state)
        for index, grad in enumerate(grads):
            move = _move(method, grad, slow, square, index, step)
            state[index] = state[index] - (method.lr * rates[index]) * move
        if step % record_every == 0:
            kept.append(tuple(state))
            at.append(step)
    path = tuple(torch.stack(list(column)) for column in zip(*kept, strict=True))
    batch = layers[0].shape[:-2]
    finite = torch.stack([torch.isfinite(layer).flatten(len(batch)).all(-1) for layer in state]).all(0)
    outcome = torch.where(finite, int(Outcome.COMPLETED), int(Outcome.DIVERGED))
    times = torch.tensor(at, dtype=torch.float64) * method.lr
    evaluations = torch.full(batch, steps, dtype=torch.int64)
    return LayerTrajectory(times, path, loss(path), outcome, evaluations)


def _move(method: Descent, grad: Tensor, slow: list[Tensor], square: list[Tensor], index: int, step: int) -> Tensor:
    if method.kind == "sgd":
        return grad
    if method.kind == "momentum":
        slow[index] = method.momentum * slow[index] + grad
        return slow[index]
    first, second = method.betas
    slow[index] = first * slow[index] + (1 - first) * grad
    square[index] = second * square[index] + (1 - second) * grad.square()
    scale = (square[index] / (1 - second**step)).sqrt() + method.eps
    return slow[index] / (1 - first**step) / scale
