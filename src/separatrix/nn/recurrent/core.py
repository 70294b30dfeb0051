"""What every recurrent core shares: torch's calling convention around one scan."""

from __future__ import annotations

import abc
from typing import Any

import torch
from jaxtyping import Complex, Int, Num
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.networks.trace import Trace

from .calling import AbstractSequenceCore, checked_lengths, masked_beyond
from .steps.scan import scan
from .steps.step import AbstractStep, Weights


class AbstractRecurrent(AbstractSequenceCore):
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
        super().__init__(input_size, hidden_size, batch_first=batch_first)
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
        values: Tensor = eigvals(wide)
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
        lengths = None if lengths is None else checked_lengths(lengths, inputs)
        states = self._states(inputs, self._initial(h_0, inputs, is_single), lengths)
        output, last = masked_beyond(self.read(states), lengths), states[-1:]
        if is_single:
            return output.squeeze(1), last.squeeze(1)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def trace(self, x: Tensor, h_0: Tensor | None = None, lengths: Int[Tensor, " batch"] | None = None) -> Trace:
        """All states, the initial one first, and what the nonlinearity saw; batch first."""
        inputs, is_single = self._time_first(x)
        initial = self._initial(h_0, inputs, is_single)
        lengths = None if lengths is None else checked_lengths(lengths, inputs)
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
        inputs, is_single = super()._time_first(x)
        if inputs.shape[0] == 0:
            raise ShapeError("x must have at least one time step; got none.")
        return inputs, is_single

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
