"""Gradient flow and gradient descent of layered networks, by integration: the numerical side of the closed forms.

Any depth, any inputs, any start, any activation of the hidden units. Nothing here assumes balance or alignment, and
nothing uses the closed forms of ``theory``. The loss is ``|f(X) - Y|^2 / (2 P)``, with a constant left out when only
the correlations are known: ``tr(W corr_xx W')/2 - tr(W corr_yx')``, plus ``tr(corr_yx corr_xx^+ corr_yx')/2``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_tensor, require_integer, require_number, require_positive
from separatrix.core.names import suggest_options
from separatrix.core.networks.activations import ACTIVATIONS, Activation, Pointwise, find_activation

from .base import AbstractFlow, described, select_leading
from .descent import Descent, descend
from .layers import Chain, LayerTrajectory, chain_product, pack, unpack


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False)
class LinearNetworkFlow(AbstractFlow):
    """``tau dW_l/dt = -rate_l (dL/dW_l + weight_decay W_l)`` for a chain of layers.

    A state of the flow is the chain packed into one token, (*batch, 1, entries): see ``pack`` and ``unpack``.
    ``integrate_layers`` takes and returns the layers themselves.

    Args:
        corr_yx: input-output correlation (*batch, n_out, n_in); for linear networks.
        corr_xx: input correlation (*batch, n_in, n_in), white if left out; for linear networks.
        inputs: samples (P, n_in), instead of the correlations; needed unless the activation is linear.
        targets: (P, n_out), with ``inputs``.
        activation: of the hidden layers, as a name (``"linear"``, ``"relu"``, ...), an object or a function.
        tau: time constant of the flow.
        weight_decay: strength g of ``g/2 |W|^2`` added to the loss.
        learning_rates: one factor per layer, all 1 if left out.
        widths: numbers of units from input to output, which say how a packed state is cut into layers; by default
            one layer. ``for_layers`` sets them.

    Example:
        >>> from separatrix.dynamics import integrate_layers
        >>> one = torch.ones(1, 1, dtype=torch.float64)
        >>> path = integrate_layers(LinearNetworkFlow(2 * one), (0.1 * one, one), [0.0, 1.0, 20.0])
        >>> round(float(path.product[-1]), 6)
        2.0
    """

    corr_yx: Tensor | None = None
    corr_xx: Tensor | None = None
    inputs: Tensor | None = None
    targets: Tensor | None = None
    activation: str | Activation | Pointwise = "linear"
    tau: float = 1.0
    weight_decay: float = 0.0
    learning_rates: tuple[float, ...] | None = None
    widths: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        units = self.activation if isinstance(self.activation, str) else getattr(self.activation, "name", "own")
        facts = [
            f"widths {'-'.join(str(width) for width in self.widths)}" if self.widths else "widths not set",
            f"activation {units}",
            f"{len(self.inputs)} samples" if self.inputs is not None else "correlations",
            f"tau = {self.tau:g}",
            *([f"weight decay {self.weight_decay:g}"] if self.weight_decay else []),
        ]
        return described(self, facts)

    def __post_init__(self) -> None:
        require_positive(self.tau, "tau")
        units = find_activation(self.activation)
        rule = "a finite number that is not negative"
        require_number(self.weight_decay, "weight_decay", at_least=0, rule=rule)
        for name in ("corr_yx", "corr_xx", "inputs", "targets"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_tensor(value, name))
        has_data = self.inputs is not None and self.targets is not None
        if has_data == (self.corr_yx is not None) or (self.inputs is None) != (self.targets is None):
            raise InvalidInput("give either corr_yx (and corr_xx) or both inputs and targets.")
        if units is not ACTIVATIONS["linear"] and not has_data:
            raise InvalidInput(f"activation {units.name!r} needs inputs and targets: correlations do not suffice.")
        if self.widths is not None:
            self._check_widths(self.widths)

    def loss(self, layers: Sequence[Tensor]) -> Float[Tensor, "*batch"]:
        """The loss of the data (or, from correlations, the excess over the best linear map), without weight decay."""
        if self.inputs is not None:
            return self._error(layers).square().sum((-2, -1)) / (2 * self.inputs.shape[0])
        assert self.corr_yx is not None
        if self.corr_xx is None:
            return (chain_product(layers) - self.corr_yx).square().sum((-2, -1)) / 2
        gap = chain_product(layers) - self.corr_yx @ torch.linalg.pinv(self.corr_xx, hermitian=True)
        return ((gap @ self.corr_xx) * gap).sum((-2, -1)) / 2

    def gradient(self, layers: Sequence[Tensor]) -> Chain:
        """Gradient of loss and weight decay with respect to every layer."""
        grads = self._data_gradient(layers) if self.inputs is not None else self._linear_gradient(layers)
        if self.weight_decay:
            grads = tuple(g + self.weight_decay * w for g, w in zip(grads, layers, strict=True))
        return grads

    def layer_velocity(self, layers: Sequence[Tensor]) -> Chain:
        """Time derivative of every layer under gradient flow."""
        rates = self._rates(len(layers))
        return tuple(-rate / self.tau * g for rate, g in zip(rates, self.gradient(layers), strict=True))

    # The chain as one state.

    def for_layers(self, layers: Sequence[Any]) -> LinearNetworkFlow:
        """The same flow with the widths of a chain, which must suit the task."""
        chain = self.checked(layers)
        return dataclasses.replace(self, widths=(chain[0].shape[-1], *(layer.shape[-2] for layer in chain)))

    def pack(self, layers: Sequence[Any]) -> Float[Tensor, "*batch 1 size"]:
        """A chain as a state of the flow."""
        return pack(self.checked(layers))

    def unpack(self, x: Float[Tensor, "*batch 1 size"]) -> Chain:
        """The chain that a state stands for."""
        widths = self.widths or self._ends
        size = sum(before * after for before, after in itertools.pairwise(widths))
        if x.ndim < 2 or x.shape[-2:] != (1, size):
            raise ShapeError(
                f"a chain of widths {widths} is packed as (..., 1, {size}); got {tuple(x.shape)}. See for_layers."
            )
        return unpack(x, widths)

    @property
    def instances(self) -> tuple[int, ...]:
        """Leading axes of the correlations."""
        parts = [part.shape[:-2] for part in (self.corr_yx, self.corr_xx) if part is not None]
        return tuple(torch.broadcast_shapes(*parts))

    def velocity(self, x: Float[Tensor, "*batch 1 size"], t: Tensor | None = None) -> Float[Tensor, "*batch2 1 size"]:
        """Time derivative of a packed chain (``t`` is not used)."""
        return pack(self.layer_velocity(self.unpack(x)))

    def jvp(
        self, x: Float[Tensor, "*batch 1 size"], u: Float[Tensor, "*batch2 1 size"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 1 size"]:
        """Derivative of the velocity, by forward differentiation of the gradient."""
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.func.jvp(self.velocity, (x.expand(shape).contiguous(),), (u.expand(shape).contiguous(),))[
            1
        ]
        return along

    def to(self, dtype: torch.dtype) -> LinearNetworkFlow:
        """The same flow computing in another precision."""
        return self._with(lambda name, tensor: tensor.to(dtype))

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> LinearNetworkFlow:
        """The flow of some elements of a flattened batch; shared tasks stay shared."""

        def chosen(name: str, tensor: Tensor) -> Tensor:
            own = name.startswith("corr") and tensor.ndim > 2
            return select_leading(tensor, batch_shape, index, 2) if own else tensor

        return self._with(chosen)

    def _with(self, change: Callable[[str, Tensor], Tensor]) -> LinearNetworkFlow:
        given = {name: getattr(self, name) for name in ("corr_yx", "corr_xx", "inputs", "targets")}
        changed: dict[str, Any] = {name: change(name, item) for name, item in given.items() if item is not None}
        return dataclasses.replace(self, **changed)

    def descend(self, layers: Sequence[Any], method: Descent, steps: int, *, record_every: int = 1) -> LayerTrajectory:
        """Full-batch gradient descent, momentum or Adam; states at step 0 and every ``record_every`` steps.

        The times of the trajectory are ``lr * step``: plain descent is Euler's method for this flow with step ``lr``.
        """
        start = self.checked(layers)
        rates = tuple(rate / self.tau for rate in self._rates(len(start)))
        return descend(self.gradient, self.loss, start, method, steps, record_every, rates)

    def checked(self, layers: Sequence[Any]) -> Chain:
        """The layers as tensors, refused unless they follow one another and suit the task."""
        checked = tuple(as_tensor(layer, f"layers[{index}]") for index, layer in enumerate(layers))
        if not checked or any(layer.ndim < 2 for layer in checked):
            raise ShapeError("layers must be one or more matrices (..., out, in).")
        sizes = [tuple(layer.shape[-2:]) for layer in checked]
        if any(before[0] != after[1] for before, after in itertools.pairwise(sizes)):
            raise ShapeError(f"layers must follow one another, first layer first; got shapes {sizes}.")
        if len({layer.shape[:-2] for layer in checked}) > 1:
            raise ShapeError("layers must share their batch axes.")
        expected = self._ends
        if (sizes[0][1], sizes[-1][0]) != expected:
            raise ShapeError(
                f"layers map {sizes[0][1]} to {sizes[-1][0]}; the task needs {expected[0]} to {expected[1]}."
            )
        return checked

    @property
    def _ends(self) -> tuple[int, int]:
        """Numbers of inputs and outputs."""
        if self.inputs is not None and self.targets is not None:
            return int(self.inputs.shape[-1]), int(self.targets.shape[-1])
        assert self.corr_yx is not None
        return int(self.corr_yx.shape[-1]), int(self.corr_yx.shape[-2])

    def _check_widths(self, widths: tuple[int, ...]) -> None:
        for width in widths:
            require_integer(width, "widths", at_least=1)
        if len(widths) < 2 or (widths[0], widths[-1]) != self._ends:
            raise ShapeError(f"widths must run from {self._ends[0]} inputs to {self._ends[1]} outputs; got {widths}.")

    def _rates(self, depth: int) -> tuple[float, ...]:
        rates = self.learning_rates or (1.0,) * depth
        if len(rates) != depth:
            raise InvalidInput(f"learning_rates must have one entry per layer ({depth}); got {len(rates)}.")
        return rates

    def _linear_gradient(self, layers: Sequence[Tensor]) -> Chain:
        assert self.corr_yx is not None
        below: list[Tensor | None] = [None]
        for layer in layers[:-1]:
            below.append(layer if below[-1] is None else layer @ below[-1])
        product = layers[-1] if below[-1] is None else layers[-1] @ below[-1]
        signal = (product if self.corr_xx is None else product @ self.corr_xx) - self.corr_yx
        grads: list[Tensor] = []
        for layer, prefix in zip(reversed(layers), reversed(below), strict=True):
            grads.append(signal if prefix is None else signal @ prefix.mT)
            signal = layer.mT @ signal
        return tuple(reversed(grads))

    def _data_gradient(self, layers: Sequence[Tensor]) -> Chain:
        assert self.inputs is not None
        assert self.targets is not None
        slope = find_activation(self.activation).dphi
        states, fields = self._forward(layers)
        signal = (fields[-1] - self.targets) / self.inputs.shape[0]
        grads: list[Tensor] = []
        for index in range(len(layers) - 1, -1, -1):
            grads.append(signal.mT @ states[index])
            if index:
                signal = (signal @ layers[index]) * slope(fields[index - 1])
        return tuple(reversed(grads))

    def _forward(self, layers: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """What enters each layer and what leaves it before the activation, samples as rows."""
        assert self.inputs is not None
        phi = find_activation(self.activation).phi
        states, fields = [self.inputs], [self.inputs @ layers[0].mT]
        for layer in layers[1:]:
            states.append(phi(fields[-1]))
            fields.append(states[-1] @ layer.mT)
        return states, fields

    def _error(self, layers: Sequence[Tensor]) -> Tensor:
        assert self.targets is not None
        return self._forward(layers)[1][-1] - self.targets
