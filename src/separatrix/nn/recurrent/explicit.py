"""Networks with weights made by hand that solve the copy and the adding task: what training could have found."""

from __future__ import annotations

import math
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.starts import STARTS, rotation_start
from .core import AbstractRecurrent
from .sequence_model import SequenceModel
from .steps.elman import ElmanStep, find_nonlinearity
from .steps.step import AbstractStep, Weights

N_SYMBOLS, N_ITEMS = 8, 10
"""Of the copy task."""
SHARPNESS = 40.0
"""By how much the right answer of ``copy_solution`` leads: the cross entropy of a step is then about exp(-40)."""


@final
@suggest_options
class DrivenLinearRNN(AbstractRecurrent):
    """``h' = V h + relu(U x + b)``: the nonlinearity acts on what enters, and the memory is linear.

    Args:
        input_size: features of a step.
        hidden_size: N.
        start: initial V, as in ``FreeRNN``.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, appendix D.2.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        start: str = "henaff",
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        choose("start", start, STARTS)
        generator = default_generator(generator)
        self.matrix = nn.Parameter(rotation_start(start, self.hidden_size, generator=generator).to(dtype))
        weight = torch.empty(self.hidden_size, self.input_size, dtype=torch.float64)
        weight.normal_(0, (2 / (self.hidden_size + self.input_size)) ** 0.5, generator=generator)
        self.input_weight = nn.Parameter(weight.to(dtype))
        self.bias = nn.Parameter(torch.zeros(self.hidden_size, dtype=dtype))

    @property
    def step(self) -> AbstractStep:
        """Linear in the state."""
        return ElmanStep(find_nonlinearity("linear"))

    def recurrent(self) -> Float[Tensor, "h h"]:
        """V."""
        return self.matrix

    def weights(self) -> Weights:
        """V."""
        return (self.matrix,)

    def drives(self, x: Tensor) -> Tensor:
        """relu(U x + b)."""
        return torch.relu(x @ self.input_weight.mT + self.bias)


def adding_solution(*, dtype: torch.dtype = torch.float64) -> SequenceModel:
    """One unit that solves the adding task of every length: ``h' = h + relu(value + marker - 1)``.

    A number below one passes the rectifier with its marker and not without. Numbers are right to rounding.

    Source: kerg2022, appendix D.2.

    Example:
        >>> x = torch.tensor([[[0.25, 1.0], [0.75, 0.0], [0.5, 1.0]]], dtype=torch.float64)
        >>> adding_solution()(x).item()
        0.75
    """
    core = DrivenLinearRNN(2, 1, start="identity", dtype=dtype)
    model = SequenceModel(core, 1, "last")
    _set(core.input_weight, torch.ones(1, 2))
    _set(core.bias, -torch.ones(1))
    _set(model.head.weight, torch.ones(1, 1))
    return model


def copy_solution(
    delay: int,
    layout: Literal["kerg", "scornn"] = "kerg",
    *,
    n_clocks: int | None = None,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float64,
) -> SequenceModel:
    r"""A network with an orthogonal matrix that solves the copy task without training.

    The symbols of the ten items lie in a linear memory that V turns, so that after ``delay + 10`` steps, and at no
    other step of the answer, an item stands where the read-out looks. The cue runs round a ring of eleven units, and
    while it does the symbols are let through.

    Args:
        delay: T of the task.
        layout: of the task.
        n_clocks: ``None``: the memory is a ring of ten places for each of the eight symbols, V is a permutation, and
            91 units are enough for every delay. A number d: the document's memory, d rotations by
            :math:`2\pi l_j/(T+10)` with random integers l_j, so that :math:`V^{T+10} = I`; its read-out is the least
            solution that tells the items apart, which needs at least 76 clocks, and some more to be well conditioned.
        generator: of the clocks and of the directions by which symbols enter them.
        dtype: of the weights.

    Raises:
        InvalidInput: too few clocks to tell ten items of eight symbols apart.

    Source: kerg2022, appendix D.2 (Henaff et al. 2016); the ring is ours.

    Example:
        >>> from separatrix.tasks import Copy
        >>> task = Copy(30)
        >>> batch = task.sample(5, generator=torch.Generator().manual_seed(0))
        >>> model = copy_solution(30)
        >>> float(task.accuracy(model(batch.inputs.double()), batch))
        1.0
    """
    require_integer(delay, "delay", at_least=1)
    choose("layout", layout, ("kerg", "scornn"))
    if n_clocks is None:
        turn, enter, read = _ring_memory(delay)
    else:
        n_clocks = require_integer(n_clocks, "n_clocks", at_least=1)
        turn, enter, read = _clock_memory(delay, n_clocks, default_generator(generator))
    return _with_cue(turn, enter, read, layout, dtype)


def _ring_memory(delay: int) -> tuple[Tensor, Tensor, Tensor]:
    """Eight rings of ten places: an item moves one place a step, and is read where it stands after the delay."""
    shift = torch.roll(torch.eye(N_ITEMS, dtype=torch.float64), 1, 0)
    turn = torch.block_diag(*[shift] * N_SYMBOLS)
    first, last = torch.zeros(2, N_SYMBOLS, N_ITEMS, N_SYMBOLS, dtype=torch.float64).unbind(0)
    symbols = torch.arange(N_SYMBOLS)
    first[symbols, 0, symbols] = 1
    last[symbols, (delay + N_ITEMS) % N_ITEMS, symbols] = 1
    return turn, first.flatten(0, 1), last.flatten(0, 1).mT


def _clock_memory(delay: int, n_clocks: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    period = delay + N_ITEMS
    speeds = torch.randint(1, period + 1, (n_clocks,), generator=generator)
    angles = speeds.to(torch.float64) * (2 * math.pi / period)
    cos, sin = torch.cos(angles), torch.sin(angles)
    blocks = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    turn = torch.block_diag(*blocks.unbind(0))
    enter = torch.rand(2 * n_clocks, N_SYMBOLS, dtype=torch.float64, generator=generator)  # positive: a relu is ahead
    # While the answer is given, an item is met turned by 9 steps at most from where the read-out looks.
    turned = [torch.linalg.matrix_power(turn, m % period) @ enter for m in range(1 - N_ITEMS, N_ITEMS)]
    distinct = {m % period: place for place, m in enumerate(range(1 - N_ITEMS, N_ITEMS))}
    seen = torch.cat([turned[place] for place in distinct.values()], dim=1)
    wanted = torch.zeros(N_SYMBOLS, seen.shape[1], dtype=torch.float64)
    start = list(distinct).index(0) * N_SYMBOLS
    wanted[:, start : start + N_SYMBOLS] = torch.eye(N_SYMBOLS, dtype=torch.float64)
    read = wanted @ torch.linalg.pinv(seen)
    if float((read @ seen - wanted).abs().max()) > 1e-6:
        raise InvalidInput(f"n_clocks must be larger to tell ten items of eight symbols apart; got {n_clocks}.")
    return turn, enter, read


def _with_cue(turn: Tensor, enter: Tensor, read: Tensor, layout: str, dtype: torch.dtype) -> SequenceModel:
    """The memory beside a ring for the cue, and a read-out that says a symbol only while the cue is under way."""
    ring = torch.roll(torch.eye(N_ITEMS + 1, dtype=torch.float64), 1, 0)
    size = len(turn) + len(ring)
    core = DrivenLinearRNN(N_SYMBOLS + 2, size, start="identity", dtype=dtype)
    model = SequenceModel(core, N_SYMBOLS + 1)
    inputs = torch.zeros(size, N_SYMBOLS + 2, dtype=torch.float64)
    inputs[: len(turn), 1 : N_SYMBOLS + 1] = enter
    inputs[len(turn), N_SYMBOLS + 1] = 1
    asked = torch.zeros(len(ring), dtype=torch.float64)
    first = 1 if layout == "kerg" else 0
    asked[first : first + N_ITEMS] = 1
    head = torch.zeros(N_SYMBOLS + 1, size, dtype=torch.float64)
    head[1:, : len(turn)] = read
    loud = 2 * read.abs().sum(1).max() * enter.max() * 2 * N_ITEMS  # no memory, read at the wrong time, comes near it
    head[1:, len(turn) :] = loud * asked
    bias = torch.zeros(N_SYMBOLS + 1, dtype=torch.float64)
    bias[0] = loud / 2
    _set(core.matrix, torch.block_diag(turn, ring))
    _set(core.input_weight, inputs)
    _set(model.head.weight, SHARPNESS * head)
    _set(model.head.bias, SHARPNESS * bias)
    return model


@torch.no_grad()
def _set(parameter: Tensor, value: Tensor) -> None:
    parameter.copy_(value.to(parameter.dtype))
