"""What every recurrent core shares: torch's calling convention around one scan."""

from __future__ import annotations

import abc
from typing import Any

import torch
from jaxtyping import Complex, Int, Num
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.trace import Trace

from .scan import scan
from .step import AbstractStep, Weights


class AbstractRecurrent(nn.Module, abc.ABC):
    """A recurrent network of one layer, called as torch's own: ``output, h_n = module(x, h_0)``.

    x is (batch, time, features), or (time, batch, features) with ``batch_first=False``, or (time, features) for a
    single sequence, or a ``PackedSequence``. ``output`` has ``output_size`` features; h_0 and h_n are (1, batch,
    state_size) whatever ``batch_first``, as in torch. With ``lengths`` (one number of steps per sequence) a state stays
    as it is after its sequence has ended, and the output there is zero. Complex networks give real and imaginary
    parts side by side as output, and complex states.

    For implementers: write ``step``, ``weights``, ``drives`` and ``recurrent``. ``scan`` does the rest.
    """

    is_complex: bool = False
    state_size: int
    """Numbers in a state."""

    def __init__(self, input_size: int, hidden_size: int, *, batch_first: bool = True) -> None:
        super().__init__()
        self.input_size = require_integer(input_size, "input_size", at_least=1)
        self.hidden_size = require_integer(hidden_size, "hidden_size", at_least=1)
        self.batch_first = batch_first
        self.state_size = hidden_size

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return 2 * self.hidden_size if self.is_complex else self.hidden_size

    @property
    @abc.abstractmethod
    def step(self) -> AbstractStep:
        """The formula of one step."""

    @abc.abstractmethod
    def weights(self) -> Weights:
        """The weights of the step, computed once a call."""

    @abc.abstractmethod
    def drives(self, x: Tensor) -> Tensor:
        """What enters each step, from (time, batch, features), for all steps at once."""

    @abc.abstractmethod
    def recurrent(self) -> Num[Tensor, "h h"]:
        """The matrix that takes a state to the next one: V of ``V h``; where there is none, see the class."""

    def eigenvalues(self) -> Complex[Tensor, " h"]:
        """Of ``recurrent()``: exact where the parameters give them, else computed in float64."""
        matrix = self.recurrent().detach()
        wide = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
        values: Tensor = torch.linalg.eigvals(wide)
        return values.to(matrix.dtype if matrix.is_complex() else matrix.dtype.to_complex())

    def read(self, states: Tensor) -> Tensor:
        """Outputs from states."""
        return torch.cat([states.real, states.imag], dim=-1) if states.is_complex() else states

    def forward(
        self, x: Tensor | PackedSequence, h_0: Tensor | None = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[Any, Tensor]:
        """Outputs of all steps, and the last state."""
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, h_0, lengths)
        inputs, is_single = self._time_first(x)
        lengths = None if lengths is None else _checked_lengths(lengths, inputs)
        states = self._states(inputs, self._initial(h_0, inputs, is_single), lengths)
        output, last = self.read(states), states[-1:]
        if lengths is not None:
            times = torch.arange(len(inputs), device=output.device).unsqueeze(1)
            output = output * (times < lengths).unsqueeze(-1)
        if is_single:
            return output.squeeze(1), last.squeeze(1)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def trace(self, x: Tensor, h_0: Tensor | None = None, lengths: Int[Tensor, " batch"] | None = None) -> Trace:
        """All states, the initial one first, and what the nonlinearity saw; batch first."""
        inputs, is_single = self._time_first(x)
        initial = self._initial(h_0, inputs, is_single)
        lengths = None if lengths is None else _checked_lengths(lengths, inputs)
        states = torch.cat([initial.unsqueeze(0), self._states(inputs, initial, lengths)])
        seen = self.pre_activations(inputs, states)
        seen = None if seen is None else seen.transpose(0, 1)
        return Trace(states.transpose(0, 1), seen, lengths=lengths)

    def pre_activations(self, x: Tensor, states: Tensor) -> Tensor | None:
        """What the nonlinearity saw at each step, time first; ``None`` where there is none."""
        return None

    def _states(self, x: Tensor, initial: Tensor, lengths: Tensor | None) -> Tensor:
        if lengths is not None:  # what stands after the end must not count, not even where it is NaN
            ended = torch.arange(len(x), device=x.device).unsqueeze(1) >= lengths
            x = x.masked_fill(ended.unsqueeze(-1), 0)
        with torch.autocast(x.device.type, enabled=False):  # the buffers of the scan have one dtype
            return scan(self.step, self.drives(x.to(initial.abs().dtype)), initial, self.weights(), lengths)

    def _time_first(self, x: Tensor) -> tuple[Tensor, bool]:
        if not isinstance(x, Tensor) or x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            found = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            order = "(batch, time, features)" if self.batch_first else "(time, batch, features)"
            raise ShapeError(f"x must be {order} or (time, features) with {self.input_size} features; got {found}.")
        if x.is_complex():
            raise InvalidInput(f"x must be real; got {x.dtype}.")
        inputs = x.unsqueeze(1) if x.ndim == 2 else x.transpose(0, 1) if self.batch_first else x
        if inputs.shape[0] == 0:
            raise ShapeError("x must have at least one time step; got none.")
        return inputs, x.ndim == 2

    def _initial(self, h_0: Any, x: Tensor, is_single: bool) -> Tensor:
        reference = next(self.parameters())  # real also where the network is complex
        if self.is_complex and reference.dtype not in (torch.float32, torch.float64):
            raise InvalidInput(
                f"a complex network must have float32 or float64 parameters; these are {reference.dtype}."
            )
        dtype = reference.dtype.to_complex() if self.is_complex else reference.dtype
        if h_0 is None:
            return torch.zeros(x.shape[1], self.state_size, dtype=dtype, device=x.device)
        expected = (1, self.state_size) if is_single else (1, x.shape[1], self.state_size)
        if not isinstance(h_0, Tensor) or tuple(h_0.shape) != expected:
            found = tuple(h_0.shape) if isinstance(h_0, Tensor) else type(h_0).__name__
            raise ShapeError(f"h_0 must have shape {expected}; got {found}.")
        if h_0.is_complex() and not self.is_complex:
            raise InvalidInput(f"h_0 must be real; got {h_0.dtype}.")
        return (h_0 if is_single else h_0.squeeze(0)).to(dtype)

    def _forward_packed(self, x: PackedSequence, h_0: Tensor | None, lengths: Tensor | None) -> tuple[Any, Tensor]:
        if lengths is not None:
            raise InvalidInput("lengths must not be given with a packed sequence, which has its own.")
        padded, own = pad_packed_sequence(x, batch_first=self.batch_first)
        output, last = self(padded, h_0, own.to(padded.device))
        sorts = x.sorted_indices is not None
        packed = pack_padded_sequence(output, own, batch_first=self.batch_first, enforce_sorted=not sorts)
        return packed, last

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}"


def _checked_lengths(lengths: Any, x: Tensor) -> Tensor:
    lengths = torch.as_tensor(lengths, device=x.device)
    if lengths.shape != (x.shape[1],) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ShapeError(
            f"lengths must be one integer for each of {x.shape[1]} sequences; got {lengths.dtype} of shape "
            f"{tuple(lengths.shape)}."
        )
    if int(lengths.min()) < 0 or int(lengths.max()) > x.shape[0]:
        raise InvalidInput(
            f"lengths must lie between 0 and the {x.shape[0]} steps of x; got {int(lengths.min())} to "
            f"{int(lengths.max())}."
        )
    return lengths


def default_generator(generator: torch.Generator | None) -> torch.Generator:
    """The generator that was given, or one with the fixed seed 0: two networks made without one are equal."""
    return torch.Generator().manual_seed(0) if generator is None else generator
