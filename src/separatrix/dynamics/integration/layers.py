"""Gradient flow of a chain of layers, by the one integrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from separatrix.core import InvalidInput, as_float64

from ..flows.layers import LayerTrajectory
from ..flows.linear_network import LinearNetworkFlow
from .integrate import integrate
from .methods.base import AbstractMethod
from .methods.named import find_method
from .methods.tableau import Tableau


def integrate_layers(
    flow: LinearNetworkFlow,
    layers: Sequence[Any],
    times: Any,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    method: str | Tableau | AbstractMethod = "dop853",
    max_steps: int = 100_000,
) -> LayerTrajectory:
    """Follow a chain of layers to the given times (not descending), each network with its own step size.

    An element that needs more than ``max_steps`` steps, or meets NaN, holds NaN from there on; ``outcome`` says so.

    Args:
        flow: the task and the network.
        layers: matrices (*batch, out, in), first layer first.
        times: when the layers are wanted.
        rtol: relative tolerance of every weight.
        atol: absolute tolerance of every weight.
        method: as in ``integrate``.
        max_steps: attempted steps per network.

    Cost: 12 gradients a step with DOP853; a stiff network (large balance or long times) needs many steps.
    """
    wanted = as_float64(times, "times").reshape(-1)
    if wanted.numel() and (bool((wanted < 0).any()) or bool((wanted.diff() < 0).any())):
        raise InvalidInput("times must not be negative and must not descend.")
    chain = flow.checked(layers)
    own = flow.for_layers(chain).to(torch.float64)
    own.layer_velocity([layer.double() for layer in chain])  # refuses learning rates of another depth
    frames, place = torch.unique(wanted, sorted=True, return_inverse=True)
    if not len(frames):
        frames = wanted.new_zeros(1)
    run = integrate(
        own,
        own.pack(chain).double(),
        times=frames,
        method=find_method(method),
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
    )
    assert run.states is not None
    path = own.unpack(run.states.movedim(-3, 0)[place])
    dtype = chain[0].dtype
    return LayerTrajectory(
        wanted, tuple(layer.to(dtype) for layer in path), own.loss(path).to(dtype), run.outcome, run.evaluations
    )
