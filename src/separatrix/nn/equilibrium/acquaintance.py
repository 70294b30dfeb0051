"""What a layer finds out about its cell before it believes a solve, by asking the cell itself.

A cell has an equilibrium for each sample if it gives one answer to one question, leaves its statistics where they are,
and treats the samples of a batch on their own. It is asked at the first call in training mode, beside the start: at
zero, dropout of the state would not be seen. Whether it draws random numbers is looked at in every training call, and
what precision it computes in at the first call of all.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput

from .packed_map import CellMap

_ALIKE = 1e-2
"""Difference, relative to the entries, that nondeterministic kernels may make."""
_ROUNDED = 1e3
"""Difference, in units of rounding, that the order of summation may make."""
_ASKED = 64
"""How often a cell that draws random numbers is asked: one entry of 32 that drops out at 0.5 % shows in all but
4e-5 of cases."""
_NOISE = 1 / 32
"""Noise of a cell, in units of the rounding error of the coarsest numbers in it, from which on it computes in them."""
_POINTS = 5
"""States in a row whose differences leave nothing but noise."""
_UNIT = 70**0.5
"""Size of the fourth difference of independent noise of size one."""

TWO_ANSWERS = (
    "the cell gave two different results for the same state and input, so it has no equilibrium; it "
    "probably contains nn.Dropout. Use separatrix.nn.VariationalDropout, which keeps one mask per solve."
)


@final
@dataclasses.dataclass
class Acquaintance:
    """What one layer knows of its cell."""

    examined: bool = False
    """Whether the cell was asked for two answers, moved statistics and samples that depend on each other."""
    draws_in_vain: bool = False
    """Whether it draws random numbers on which, as far as was seen, nothing depends."""
    rounding: float | None = None
    """Relative rounding error of half precision inside the cell, zero if there is none, None before the first look."""

    def make(self, packed_map: CellMap, start: Tensor, modules: Sequence[nn.Module], *, training: bool) -> None:
        """Ask what is not known yet: one evaluation at the first call, and two or three at the first in training.

        The first evaluation computes parametrised weights and has gradients if the call has; the others have none, so
        that a call computed again (``torch.utils.checkpoint``) keeps as much as it did.

        Raises:
            InvalidInput: the cell has no equilibrium, for one of the reasons above.
        """
        if transforms_active() or (self.rounding is not None and (self.examined or not training)):
            return
        point = start + _pattern(start)
        before = _Buffers(modules)
        with _WatchedPrecision() as seen:
            first = packed_map(point).detach()
        with torch.no_grad():
            self._note_precision(packed_map, point, seen)
            if training and not self.examined:
                self._examine(packed_map, point, first, modules, before)
                self.examined = True

    def _note_precision(self, packed_map: CellMap, point: Tensor, seen: _WatchedPrecision) -> None:
        """Half precision inside a cell that returns more digits: seen in its dtypes, and believed if it shows."""
        if self.rounding is None:
            coarse = seen.rounding > packed_map.rounding and _noise(packed_map, point, seen.rounding) > _NOISE
            self.rounding = seen.rounding if coarse else 0.0

    def _examine(
        self, packed_map: CellMap, point: Tensor, first: Tensor, modules: Sequence[nn.Module], before: _Buffers
    ) -> None:
        between, state = _Buffers(modules), _random_state(point.device)
        second = packed_map(point)
        moved = between.moved()
        if moved is not None:
            before.restore()
            raise InvalidInput(
                f"the {moved} moves at every evaluation of the cell: the map changes under the solver, and the buffer "
                "by as many evaluations as it makes. Call eval() on that part, or update it outside of the cell."
            )
        scale = float(first.abs().nan_to_num().mean()) if first.numel() else 0.0
        if not torch.allclose(first, second, rtol=_ALIKE, atol=_ALIKE * scale, equal_nan=True):
            raise InvalidInput(TWO_ANSWERS)
        if not torch.equal(state, _random_state(point.device)):
            self._ask_often(packed_map, point)
        self._require_rows_on_their_own(packed_map, point, first, scale)

    def _require_rows_on_their_own(self, packed_map: CellMap, point: Tensor, first: Tensor, scale: float) -> None:
        """Move every other sample; the rest must not feel it."""
        if point.shape[0] < 2:
            return
        moved = point.clone()
        moved[::2] += (1 + point.abs().mean()) * _pattern(point).flip(-1)
        felt = (packed_map(moved)[1::2] - first[1::2]).abs()
        limit = _ROUNDED * packed_map.rounding * (scale + first[1::2].abs())
        if bool((felt > limit).any()):
            raise InvalidInput(
                "the samples of the batch depend on each other in this cell: each is solved on its own, so what one "
                "does must not change another. If they belong together, give the state a leading axis of size one."
            )

    @contextlib.contextmanager
    def drawing_refused(self, packed_map: CellMap, start: Tensor, *, training: bool) -> Iterator[None]:
        """Look, when a solve ends, whether the cell drew random numbers, and if so whether anything depends on them."""
        if not training or transforms_active() or self.draws_in_vain:
            yield
            return
        state = _random_state(start.device)
        try:
            yield
        finally:
            if not torch.equal(state, _random_state(start.device)):
                with torch.no_grad():
                    self._ask_often(packed_map, start + _pattern(start))

    def _ask_often(self, packed_map: CellMap, point: Tensor) -> None:
        first = packed_map(point)
        limit = _ROUNDED * packed_map.rounding * (first.abs() + first.abs().nan_to_num().mean())
        for _ in range(_ASKED):
            if bool(((packed_map(point) - first).abs() > limit).any()):
                raise InvalidInput(TWO_ANSWERS)
        self.draws_in_vain = True


@final
class _Buffers:
    """The floating buffers of some modules, as they were."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._kept = [
            (part, name, value, value.clone())
            for part in {id(part): part for module in modules for part in module.modules()}.values()
            for name, value in part._buffers.items()
            if value is not None and value.is_floating_point()
        ]

    def moved(self) -> str | None:
        """One that holds other numbers now, in words."""
        for part, name, _, value in self._kept:
            now = part._buffers[name]
            if now is None or now.shape != value.shape or not torch.equal(now, value):
                return f"buffer {name!r} of {type(part).__name__}"
        return None

    def restore(self) -> None:
        """Put back what they held."""
        with torch.no_grad():
            for part, name, tensor, value in self._kept:
                tensor.copy_(value)
                part._buffers[name] = tensor


class _WatchedPrecision(TorchFunctionMode):
    """The coarsest floating numbers that a cell computes, whatever it returns."""

    rounding = 0.0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point():
            self.rounding = max(self.rounding, float(torch.finfo(result.dtype).eps))
        return result


def _noise(packed_map: CellMap, point: Tensor, rounding: float) -> float:
    """How much the cell's answers jump along states half a rounding error apart, in units of that error.

    The fourth difference leaves nothing of a smooth map over such a distance (Moré and Wild, Estimating Computational
    Noise, SIAM J. Sci. Comput. 33, 1292, 2011, take differences for the same end).
    """
    values = torch.stack([packed_map(point * (1 + rounding / 2 * k)).double() for k in range(_POINTS)])
    size = float(torch.linalg.vector_norm(values[0]))
    jumps = float(torch.linalg.vector_norm(values.diff(_POINTS - 1, dim=0))) / _UNIT
    return jumps / (rounding * size) if size > 0 else 0.0


def _random_state(device: torch.device) -> Tensor:
    """Of the global generators that a cell on this device may draw from."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return torch.cat(states)


def _pattern(z: Tensor) -> Tensor:
    return torch.cos(1.0 + 12.9898 * torch.arange(z.shape[-1], dtype=z.dtype, device=z.device))
