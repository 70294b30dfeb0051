"""Torch's calling convention for layers that read sequences: orders of axes, lengths, packed sequences."""

from __future__ import annotations

import abc
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from separatrix.core.arrays import require_dense, require_integer
from separatrix.core.errors import InvalidInput, ShapeError


class AbstractSequenceCore(nn.Module, abc.ABC):
    """A layer called as torch's own: ``output, state = module(x, state)``.

    x is (batch, time, features), or (time, batch, features) with ``batch_first=False``, or (time, features) for a
    single sequence, or a ``PackedSequence``. ``output`` has ``output_size`` features.

    For implementers: write ``forward(x, state, lengths)`` with the helpers of this class.
    """

    def __init__(self, input_size: int, hidden_size: int, *, batch_first: bool = True) -> None:
        super().__init__()
        self.input_size = require_integer(input_size, "input_size", at_least=1)
        self.hidden_size = require_integer(hidden_size, "hidden_size", at_least=1)
        self.batch_first = batch_first

    @property
    @abc.abstractmethod
    def output_size(self) -> int:
        """Features of the output."""

    def _time_first(self, x: Tensor) -> tuple[Tensor, bool]:
        require_dense(x, "x")
        if not isinstance(x, Tensor) or x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            found = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            order = "(batch, time, features)" if self.batch_first else "(time, batch, features)"
            raise ShapeError(f"x must be {order} or (time, features) with {self.input_size} features; got {found}.")
        if x.is_complex():
            raise InvalidInput(f"x must be real; got {x.dtype}.")
        inputs = x.unsqueeze(1) if x.ndim == 2 else x.transpose(0, 1) if self.batch_first else x
        return inputs, x.ndim == 2

    def _forward_packed(self, x: PackedSequence, state: Any, lengths: Tensor | None) -> tuple[Any, Any]:
        if lengths is not None:
            raise InvalidInput("lengths must not be given with a packed sequence, which has its own.")
        padded, own = pad_packed_sequence(x, batch_first=self.batch_first)
        output, last = self(padded, state, own.to(padded.device))
        sorts = x.sorted_indices is not None
        packed = pack_padded_sequence(output, own, batch_first=self.batch_first, enforce_sorted=not sorts)
        return packed, last

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}"


def checked_lengths(lengths: Any, x: Tensor) -> Tensor:
    """One number of steps for each sequence, at most as many as x has; x is time first."""
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


def masked_beyond(output: Tensor, lengths: Tensor | None) -> Tensor:
    """Outputs, time first, with zeros after the end of each sequence."""
    if lengths is None:
        return output
    times = torch.arange(len(output), device=output.device).unsqueeze(1)
    return output * (times < lengths.to(output.device)).unsqueeze(-1)
