"""What a layer finds out about its cell before it believes a solve, by asking the cell itself.

A cell has an equilibrium for each sample if it gives one answer to one question, leaves its statistics where they are,
and treats the samples of a batch on their own. It is asked at the first call in training mode, beside the start: at
zero, dropout of the state would not be seen. Where it has no answer there, it is asked at the start. Whether it draws
random numbers is looked at in every training call, and what precision it computes in at the first call of each mode.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput
from separatrix.core.random import generator_states, generators_moved

from .packed_map import CellMap

_ALIKE = 1e-2
"""Difference, relative to the entries, that nondeterministic kernels may make."""
_ROUNDED = 1e3
"""Difference, in units of rounding, that the order of summation may make."""
_HALF_ROUNDED = 8
"""The same where so many units of rounding are no longer small: in half precision."""
_ASKED = 64
"""How often a cell that draws random numbers is asked: one entry of 32 that drops out at 0.5 % shows in all but
4e-5 of cases."""
_NOISE = 1 / 32
"""Noise of a cell, in units of the rounding error of the coarsest numbers in it, from which on it computes in them."""
_POINTS = 5
"""States in a row whose differences leave nothing but noise."""
_UNIT = 70**0.5
"""Size of the fourth difference of independent noise of size one."""

Mode: TypeAlias = tuple[bool, float]
"""Whether the layer is in training, and the rounding that the state and autocast bring with them."""

TWO_ANSWERS = (
    "the cell gave two different results for the same state and input, so it has no equilibrium; it "
    "probably contains nn.Dropout. Use separatrix.nn.VariationalDropout, which keeps one mask per solve."
)


@final
@dataclasses.dataclass
class Acquaintance:
    """What one layer knows of its cell."""

    examined: bool = False
    """Whether the cell was asked for two answers and moved statistics."""
    apart: bool = False
    """Whether it was asked for samples that depend on each other, which one sample alone cannot show."""
    drawn_in_vain: frozenset[str] = frozenset()
    """Generators that it draws random numbers from on which, as far as was seen, nothing depends."""
    inside: dict[Mode, float] = dataclasses.field(default_factory=dict)
    """Relative rounding error of half precision inside the cell, zero if there is none, for each mode looked at."""

    def make(self, packed_map: CellMap, start: Tensor, modules: Sequence[nn.Module], *, training: bool) -> None:
        """Ask what is not known yet, and tell the map how coarse it is.

        One evaluation at the first call of a mode; at the first in training two more, and some that grow with the
        logarithm of the batch (8 for 64 samples). The first computes parametrised weights and has gradients if the
        call has; the others have none, so that a call computed again (``torch.utils.checkpoint``) keeps as much as it
        did.

        Raises:
            InvalidInput: the cell has no equilibrium, for one of the reasons above.
        """
        mode = (training, packed_map.rounding)
        together = start.shape[0] > 1 and not self.apart
        asked = training and (together or not self.examined)
        if not transforms_active() and (asked or mode not in self.inside):
            before = _Buffers(modules)
            with _WatchedPrecision() as seen:
                at_start = packed_map(start).detach()
            with torch.no_grad():
                coarse = max(seen.rounding, packed_map.rounding)
                if asked or coarse > packed_map.rounding:
                    point, first = _beside(packed_map, start, at_start)
                    if mode not in self.inside:
                        self.inside[mode] = _shown(packed_map, point, coarse)
                    if asked:
                        self._examine(packed_map, point, first, modules, before)
                        self.examined = True
                    if asked and together:
                        _require_rows_on_their_own(packed_map, point, first, coarse)
                        self.apart = True
                self.inside.setdefault(mode, 0.0)
        packed_map.rounding = max(packed_map.rounding, self.inside.get(mode, 0.0))

    def _examine(
        self, packed_map: CellMap, point: Tensor, first: Tensor, modules: Sequence[nn.Module], before: _Buffers
    ) -> None:
        between, state = _Buffers(modules), generator_states(point.device)
        second = packed_map(point)
        moved = between.moved()
        if moved is not None:
            before.restore()
            raise InvalidInput(
                f"the {moved} moves at every evaluation of the cell: the map changes under the solver, and the buffer "
                "by as many evaluations as it makes. Call eval() on that part, or update it outside of the cell."
            )
        if not torch.allclose(first, second, rtol=_ALIKE, atol=_ALIKE * _scale(first), equal_nan=True):
            raise InvalidInput(TWO_ANSWERS)
        drawn = generators_moved(state, point.device) - self.drawn_in_vain
        if drawn:
            _ask_often(packed_map, point, first)
            self.drawn_in_vain |= drawn

    @contextlib.contextmanager
    def drawing_refused(self, packed_map: CellMap, start: Tensor, *, training: bool) -> Iterator[None]:
        """Look, when a solve ends, whether the cell drew random numbers, and if so whether anything depends on them."""
        if not training or transforms_active():
            yield
            return
        state = generator_states(start.device)
        try:
            yield
        finally:
            drawn = generators_moved(state, start.device) - self.drawn_in_vain
            if drawn:
                with torch.no_grad():
                    self._look_at_draws(packed_map, start, drawn)

    def _look_at_draws(self, packed_map: CellMap, start: Tensor, drawn: frozenset[str]) -> None:
        """Ask often, if it was the cell that drew: Python's generator is moved by tools that check types, too."""
        state = generator_states(start.device)
        at_start = packed_map(start)
        drawn &= generators_moved(state, start.device) | {"torch", "cuda"}
        if drawn:
            _ask_often(packed_map, *_beside(packed_map, start, at_start))
            self.drawn_in_vain |= drawn


def _ask_often(packed_map: CellMap, point: Tensor, first: Tensor) -> None:
    limit = _unfelt(packed_map.rounding) * (first.abs() + _scale(first))
    for _ in range(_ASKED):
        if bool(((packed_map(point) - first).abs() > limit).any()):
            raise InvalidInput(TWO_ANSWERS)


@final
class _Buffers:
    """The floating buffers of some modules, as they were."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._kept = [
            (part, name, value, value.clone())
            for part in {id(part): part for module in modules for part in module.modules()}.values()
            for name, value in part._buffers.items()
            if value is not None and _readable(value)
        ]

    def moved(self) -> str | None:
        """One that holds other numbers now, in words."""
        for part, name, _, value in self._kept:
            now = part._buffers.get(name)
            if now is None or not _same_numbers(now, value):
                return f"buffer {name!r} of {type(part).__name__}"
        return None

    def restore(self) -> None:
        """Put back what they held."""
        with torch.no_grad():
            for part, name, tensor, value in self._kept:
                if not _same_numbers(tensor, value):
                    tensor.copy_(value)
                part._buffers[name] = tensor


def _readable(buffer: Tensor) -> bool:
    """Whether a buffer holds floating numbers that can be compared."""
    if is_lazy(buffer) or buffer.layout != torch.strided or buffer.is_meta:
        return False
    return buffer.is_floating_point()


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device or not _readable(a):
        return False
    return torch.equal(a, b) or torch.allclose(a.double(), b.double(), rtol=0.0, atol=0.0, equal_nan=True)


class _WatchedPrecision(TorchFunctionMode):
    """The coarsest floating numbers that a cell computes, whatever it returns."""

    rounding = 0.0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point():
            self.rounding = max(self.rounding, float(torch.finfo(result.dtype).eps))
        return result


def _noise(packed_map: CellMap, point: Tensor, rounding: float) -> float | None:
    """How much the cell's answers jump along states half a rounding error apart, in units of that error.

    None where it does not answer to all of them.

    The fourth difference leaves nothing of a smooth map over such a distance (Moré and Wild, Estimating Computational
    Noise, SIAM J. Sci. Comput. 33, 1292, 2011, take differences for the same end).
    """
    answers = [_asked(packed_map, point * (1 + rounding / 2 * k)) for k in range(_POINTS)]
    if any(answer is None for answer in answers):
        return None
    values = torch.stack([answer.double() for answer in answers if answer is not None])
    size = float(torch.linalg.vector_norm(values[0]))
    jumps = float(torch.linalg.vector_norm(values.diff(_POINTS - 1, dim=0))) / _UNIT
    return jumps / (rounding * size) if size > 0 else 0.0


def _beside(packed_map: CellMap, start: Tensor, at_start: Tensor) -> tuple[Tensor, Tensor]:
    """A state beside the start and its image; the start where the cell has no answer there (outside its domain)."""
    point = start + _pattern(start)
    image = _asked(packed_map, point)
    if image is None or bool((torch.isfinite(at_start) & ~torch.isfinite(image)).any()):
        return start, at_start
    return point, image


def _asked(packed_map: CellMap, state: Tensor) -> Tensor | None:
    """The answer of the cell to a state of our choice, at which it may refuse to answer."""
    try:
        return packed_map(state)
    except Exception:  # whatever a cell raises outside its domain; within, it has answered at the start
        return None


def _shown(packed_map: CellMap, point: Tensor, coarse: float) -> float:
    """Half precision inside a cell that returns more digits: seen in its dtypes, and believed if it shows."""
    if coarse <= packed_map.rounding:
        return 0.0
    noise = _noise(packed_map, point, coarse)
    return coarse if noise is None or noise > _NOISE else 0.0


def _require_rows_on_their_own(packed_map: CellMap, point: Tensor, first: Tensor, coarse: float) -> None:
    """Move some samples at a time; the rest must not feel it."""
    step = (1 + point.abs().mean()) * _pattern(point).flip(-1)
    limit = _unfelt(coarse) * (_scale(first) + first.abs())
    for moved in _moved_in_turn(point.shape[0], point.device):
        image = _asked(packed_map, torch.where(moved, point + step, point))
        if image is not None and bool((((image - first).abs() > limit) & ~moved).any()):
            raise InvalidInput(
                "the samples of the batch depend on each other in this cell: each is solved on its own, so what one "
                "does must not change another. If they belong together, give the state a leading axis of size one."
            )


def _moved_in_turn(batch: int, device: torch.device) -> Tensor:
    """Masks (turns, batch, 1) such that, of any two samples, each is moved in some turn while the other stays.

    Every sample has its own half of the turns, and no half contains another: so few turns suffice (Sperner).
    """
    turns = next(n for n in itertools.count(2) if math.comb(n, n // 2) >= batch)
    halves = itertools.islice(itertools.combinations(range(turns), turns // 2), batch)
    masks = torch.zeros(batch, turns, dtype=torch.bool)
    masks.scatter_(1, torch.tensor(list(halves)), True)
    return masks.T.unsqueeze(-1).to(device)


def _unfelt(rounding: float) -> float:
    """Relative difference that is no more than rounding, in another order of summation."""
    return min(_ROUNDED * rounding, max(_ALIKE, _HALF_ROUNDED * rounding))


def _scale(image: Tensor) -> float:
    return float(image.abs().nan_to_num().mean()) if image.numel() else 0.0


def _pattern(z: Tensor) -> Tensor:
    return torch.cos(1.0 + 12.9898 * torch.arange(z.shape[-1], dtype=z.dtype, device=z.device))
