"""The cell at one input as a map on matrices (batch, d), which stays the same map for as long as anyone asks.

Derivatives may be computed long after the forward pass, when another pass has drawn other dropout masks and the cache
of parametrised weights is gone. The map remembers both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.errors import SeparatrixError

from ..dropout import VariationalDropout, dropouts_in
from .state import State, StateLayout


@final
class CellMap:
    """z -> cell(z, x) on packed states.

    Args:
        cell: f(z, x), which returns a state, or with ``has_aux`` a state and something else.
        x: the input.
        layout: of the states.
        modules: those that the cell uses.
        has_aux: whether the cell returns a pair.
    """

    def __init__(
        self,
        cell: Callable[[Any, Any], Any],
        x: Any,
        layout: StateLayout,
        modules: list[nn.Module],
        *,
        has_aux: bool = False,
    ) -> None:
        self.cell, self.x, self.layout, self.has_aux = cell, x, layout, has_aux
        self.modules = modules
        self.rounding = layout.rounding
        """Relative rounding error of the map, as far as the dtypes of its states show it."""
        self._gradients = torch.is_grad_enabled()
        self._fresh = True
        self._weights: dict[Any, Tensor] = {}
        self._masks: list[tuple[VariationalDropout, Tensor | None]] = []

    def __call__(self, z: Tensor) -> Tensor:
        """The image of z. The first call computes parametrised weights, with gradients if the layer has any."""
        return self.layout.pack(self.state_and_aux(z)[0])

    def state_and_aux(self, z: Tensor) -> tuple[State, Any]:
        """What the cell returns, as a pair."""
        first, self._fresh = self._fresh, False
        # otherwise weights would be computed in the solver, without gradients, and kept
        with torch.set_grad_enabled(self._gradients) if first else contextlib.nullcontext():
            result = self.cell(self.layout.unpack(z), self.x)
        if not self.has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise SeparatrixError(
                f"with has_aux the cell must return a pair (state, aux); it returned {type(result).__name__}."
            )
        return result[0], result[1]

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """The weights and masks of the forward pass, for derivatives that are computed after it."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(parametrize.cached())
            before = dict(parametrize._cache)
            parametrize._cache.update(self._weights)
            for dropout, mask in self._masks:
                stack.enter_context(dropout.keeping(mask))
            try:
                yield
            finally:
                parametrize._cache.clear()
                parametrize._cache.update(before)

    def keep(self) -> None:
        """Remember the weights and masks of this forward pass; raise if a weight was cached without its gradient."""
        self._weights = {key: value for key, value in parametrize._cache.items() if value is not None}
        self._masks = [(dropout, dropout.mask) for dropout in dropouts_in(*self.modules)]
        if self._gradients and not torch._C._are_functorch_transforms_active():
            for module in self.modules:
                for part in module.modules():
                    self._require_gradients(part)

    def _require_gradients(self, part: nn.Module) -> None:
        for name, free in getattr(part, "parametrizations", {}).items():
            value = self._weights.get((id(part), name))
            if value is None or value.requires_grad or not any(p.requires_grad for p in free.parameters()):
                continue
            raise SeparatrixError(
                f"the parametrised weight {name!r} of {type(part).__name__} was cached without its gradient, before "
                "this layer was called. Call the layer outside of torch.no_grad() and parametrize.cached()."
            )
