"""The cell at one input as a map on matrices (batch, d)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput

from .state import State, StateLayout


@final
class CellMap:
    """z -> cell(z, x) on packed states.

    Parametrised weights are computed at the first evaluation and kept for the call. That evaluation is usually the
    solver's, without gradients; it is made with them if the layer is called with them, wherever the weights live.

    Args:
        cell: f(z, x), which returns a state, or with ``has_aux`` a state and something else.
        x: the input.
        layout: of the states.
        has_aux: whether the cell returns a pair.
    """

    def __init__(self, cell: Callable[[Any, Any], Any], x: Any, layout: StateLayout, *, has_aux: bool) -> None:
        self.cell, self.x, self.layout, self.has_aux = cell, x, layout, has_aux
        self.rounding = layout.rounding
        """Relative rounding error of the map, as far as the dtypes of its states show it."""
        self._gradients = torch.is_grad_enabled()
        self._fresh = True
        self._watched: tuple[Tensor, Tensor] | None = None
        self._watching = False
        self._recording = False
        self._recorded: tuple[Tensor, Tensor] | None = None
        self._lower = {device for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)}
        for device in self._lower:
            self.rounding = max(self.rounding, float(torch.finfo(torch.get_autocast_dtype(device)).eps))

    def __call__(self, z: Tensor) -> Tensor:
        """The image of z."""
        if self._recording:
            return self._with_graph(z)
        image = self.layout.pack(self.with_aux(z)[0])
        if self._watching:
            self._watched, self._watching = (z.detach(), image.detach()), False
        return image

    def watch(self) -> None:
        """Remember the next evaluation."""
        self._watching = True

    def record(self, wanted: bool) -> None:
        """Whether the next evaluations are to keep their graph, the last of them, for ``recorded``.

        Nothing is kept where there are no gradients, and inside transforms, which need a graph of their own.
        """
        self._recording = wanted and self._gradients and not transforms_active()

    def recorded(self, z: Tensor) -> tuple[Tensor, Tensor] | None:
        """The leaf and the image, with its graph, of an evaluation at this very tensor; None if there was none."""
        kept, self._recorded = self._recorded, None
        return kept if kept is not None and _same_memory(kept[0], z) else None

    def _with_graph(self, z: Tensor) -> Tensor:
        self._recorded = None  # the graph before it is freed first
        with torch.enable_grad():
            leaf = z.detach().requires_grad_()
            image = self.layout.pack(self.with_aux(leaf)[0])
        self._recorded = leaf, image
        return image.detach()

    @property
    def watched(self) -> tuple[Tensor, Tensor] | None:
        """The state and the image of the evaluation that was to be remembered, if there was one."""
        return self._watched

    def with_aux(self, z: Tensor) -> tuple[State, Any]:
        """The state that the cell returns, and what else it returns."""
        first, self._fresh = self._fresh, False
        with (
            torch.set_grad_enabled(self._gradients) if first else contextlib.nullcontext(),
            # fused attention has no forward derivative, which a transform may ask for
            sdpa_kernel(SDPBackend.MATH) if transforms_active() else contextlib.nullcontext(),
        ):
            result = self.cell(self.layout.unpack(z), self.x)
        if not self.has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise InvalidInput(
                f"with has_aux the cell must return a pair (state, aux); it returned {type(result).__name__}."
            )
        return result[0], result[1]


def _same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are views of the same numbers, in the same order."""
    same = a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
    return same and a.device == b.device and a.data_ptr() == b.data_ptr()
