"""The node of the autograd graph that stands for "the equilibrium of this map".

In the forward pass it hands on the equilibrium. A gradient g that arrives becomes the solution of v = J^T v + g, and is
then sent through one evaluation of the map to everything the map closes over. A forward tangent t becomes the solution
of u = J u + t. Both ordinary autograd and the transforms of ``torch.func`` go through here; they differ in where
products with J come from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core.errors import SeparatrixError
from separatrix.core.transforms import transforms_active

PackedMap: TypeAlias = Callable[[Tensor], Tensor]
LinearSolve: TypeAlias = Callable[[PackedMap, Tensor], Tensor]
"""Solves v = A v + b from products with A and the vector b."""


def attach_equilibrium(packed_map: PackedMap, z_star: Tensor, solve: LinearSolve) -> Tensor:
    """The equilibrium ``z_star`` with derivatives with respect to all that the map closes over.

    One evaluation of the map is kept for the backward pass. Second derivatives raise.
    """
    z_star = z_star.detach()
    if transforms_active():
        image, products = torch.func.vjp(packed_map, z_star)[:2]
        return _carried(image, z_star, _Rule(lambda v: products(v)[0], packed_map, solve, transformed=True))
    with torch.enable_grad():
        z_in = z_star.requires_grad_()
        image = packed_map(z_in)

    def pull_back(vector: Tensor) -> Tensor:
        (product,) = torch.autograd.grad(image, z_in, vector, retain_graph=True, allow_unused=True)
        return torch.zeros_like(z_in) if product is None else product

    return _carried(image, z_star.detach(), _Rule(pull_back, packed_map, solve, transformed=False))


@final
@dataclasses.dataclass(frozen=True)
class _Rule:
    """What the node needs to know: products with J^T, the map (for products with J) and how to solve."""

    pull_back: PackedMap
    packed_map: PackedMap
    solve: LinearSolve
    transformed: bool

    def adjoint(self, gradient: Tensor) -> Tensor:
        if self.transformed:  # torch.func always runs backward with gradients enabled, so only a sentinel can tell
            return _refusing(self.solve(self.pull_back, gradient.detach()), gradient, _NO_SECOND)
        if torch.is_grad_enabled():  # create_graph=True: the adjoint would silently be a constant
            raise SeparatrixError(_NO_SECOND)
        return self.solve(self.pull_back, gradient)

    def tangent(self, z_star: Tensor, tangent: Tensor) -> Tensor:
        def push_forward(direction: Tensor) -> Tensor:
            image: Tensor = torch.func.jvp(self.packed_map, (z_star,), (direction,))[1]
            return image

        return self.solve(push_forward, tangent)


_NO_OUTER = (
    "an equilibrium layer inside torch.func.vmap has no derivative outside of it; take the derivative inside vmap, or "
    "put the mapped axis into the batch."
)
_NO_SECOND = "an equilibrium layer has no second derivative; use backward=Unrolled() for that."


class _Equilibrium(torch.autograd.Function):
    """Hands on z_star; see the head of this file."""

    @staticmethod
    def forward(image: Tensor, z_star: Tensor, rule: _Rule) -> Tensor:
        return z_star.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, _Rule], output: Tensor) -> None:
        ctx.rule = inputs[2]
        ctx.z_star = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.rule.adjoint(gradients[0]), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], image: Tensor, z_star: Tensor, rule: _Rule) -> Any:
        # derivatives inside vmap have been dealt with; one taken outside could not know of the mapped axis
        return _refusing(z_star, image, _NO_OUTER), in_dims[1]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        tangent: Tensor = ctx.rule.tangent(ctx.z_star, tangents[0])
        return tangent


class _Refusing(torch.autograd.Function):
    """Hands on its first argument and pretends that it depends on the second in a way nobody can differentiate."""

    @staticmethod
    def forward(value: Tensor, cause: Tensor, reason: str) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
        ctx.reason = inputs[2]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise SeparatrixError(ctx.reason)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], value: Tensor, cause: Tensor, reason: str) -> Any:
        return _refusing(value, cause, reason), in_dims[0]


def _carried(image: Tensor, z_star: Tensor, rule: _Rule) -> Tensor:
    out: Tensor = _Equilibrium.apply(image, z_star, rule)
    return out


def _refusing(value: Tensor, cause: Tensor, reason: str) -> Tensor:
    out: Tensor = _Refusing.apply(value, cause, reason)
    return out
