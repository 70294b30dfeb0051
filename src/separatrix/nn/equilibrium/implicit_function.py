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

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput, SeparatrixError
from separatrix.dynamics.solve.maps.products import graph_nodes, jacobian_product

from .packed_map import CellMap

PackedMap: TypeAlias = Callable[[Tensor], Tensor]
LinearSolve: TypeAlias = Callable[[PackedMap, Tensor], Tensor]
"""Solves v = A v + b from products with A and the vector b."""


def attach_equilibrium(
    packed_map: PackedMap, z_star: Tensor, solve: LinearSolve, *, second_order: bool = False
) -> Tensor:
    """The equilibrium ``z_star`` with derivatives with respect to all that the map closes over.

    One evaluation of the map is kept for the backward pass, the last of the solver where that kept it. If nothing that
    the map closes over has a gradient, the equilibrium has none either. With ``second_order`` two evaluations are kept,
    and second derivatives exist for ``torch.autograd``; without it, and inside ``torch.func``, they raise.
    """
    z_star = z_star.detach()
    coarse = rounding_of(packed_map)
    if transforms_active():
        image, products = torch.func.vjp(packed_map, z_star)[:2]
        rule = _Rule(Product(lambda v: products(v)[0], coarse), packed_map, solve, transformed=True)
        return _carried(image, z_star, rule)
    kept = packed_map.recorded(z_star) if isinstance(packed_map, CellMap) else None
    if kept is not None:
        z_in, image = kept
    else:
        with torch.enable_grad():
            z_in = z_star.requires_grad_()
            image = packed_map(z_in)

    if not has_other_leaves(image, z_in):
        return z_star.detach()

    def pull_back(vector: Tensor) -> Tensor:
        product = _through_kept_graph(image, z_in, vector)
        if product is None:
            require_no_state(packed_map, z_star.detach(), coarse)
            return torch.zeros_like(z_in)
        return product

    product = Product(pull_back, coarse)
    if not second_order:
        return _carried(image, z_star.detach(), _Rule(product, packed_map, solve, transformed=False))
    taken_away = [0.0]
    with torch.enable_grad():
        z = _carried(image, z_star.detach(), _InnerRule(product, packed_map, solve, False, taken_away))
        image_of_z = packed_map(z)
    return _carried_twice(image_of_z, z, lambda linear, rhs: solve(Product(linear, coarse), rhs), taken_away)


def _through_kept_graph(image: Tensor, leaf: Tensor, vector: Tensor) -> Tensor | None:
    """The gradient of one tensor by one leaf, whose graph is kept; None if it does not depend on it.

    ``torch.autograd.grad`` asks a plain tensor thirty microseconds of questions before it hands it to its engine, which
    is as long as a small cell takes; an adjoint equation needs some twenty products of one and the same graph.
    """
    if _ENGINE is None or type(image) is not Tensor or type(vector) is not Tensor:
        return torch.autograd.grad(image, leaf, vector, retain_graph=True, allow_unused=True)[0]
    keep_graph, create_graph = True, False
    found: tuple[Tensor | None, ...] = _ENGINE.run_backward(
        (image,), (vector,), keep_graph, create_graph, (leaf,), allow_unreachable=True, accumulate_grad=False
    )
    return found[0]


_ENGINE: Any = getattr(torch.autograd.Variable, "_execution_engine", None)
"""What ``torch.autograd.grad`` calls; None in a torch that keeps it elsewhere."""


@final
@dataclasses.dataclass(frozen=True)
class Product:
    """A linear map with the relative rounding error of the arithmetic behind it."""

    linear: PackedMap
    rounding: float

    def __call__(self, vector: Tensor) -> Tensor:
        """The image of a vector."""
        return self.linear(vector)


def rounding_of(packed_map: PackedMap) -> float:
    """The relative rounding error that a map declares; zero where it declares none."""
    return packed_map.rounding if isinstance(packed_map, (Product, CellMap)) else 0.0


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
        coarse = rounding_of(self.packed_map)
        return self.solve(
            Product(lambda direction: jacobian_product(self.packed_map, z_star, direction), coarse), tangent
        )


@final
@dataclasses.dataclass(frozen=True)
class _InnerRule(_Rule):
    """For the equilibrium below one with second derivatives: what arrives in a first backward pass is nothing.

    ``taken_away`` is the size of the two terms whose difference arrives.
    """

    taken_away: list[float] = dataclasses.field(default_factory=list)

    def adjoint(self, gradient: Tensor) -> Tensor:
        if float(torch.linalg.vector_norm(gradient.detach())) <= 1e-5 * self.taken_away[0]:
            return torch.zeros_like(gradient)
        if torch.is_grad_enabled():
            raise SeparatrixError(_NO_THIRD)
        self.taken_away[0] = 0.0
        return self.solve(self.pull_back, gradient)


def require_no_state(packed_map: PackedMap, z: Tensor, rounding: float) -> None:
    """Refuse a map whose values depend on the state although its graph does not: J would be zero in silence."""
    with torch.no_grad():
        here, beside = packed_map(z), packed_map(z + _STEP * (1 + z.abs()))
        limit = _FELT * max(rounding, torch.finfo(z.dtype).eps) * (1 + here.abs())
        if bool(((beside - here).abs() > limit).any()):
            raise InvalidInput(_DETACHED)


def has_other_leaves(image: Tensor, leaf: Tensor) -> bool:
    """Whether a gradient of the image would arrive anywhere but at this leaf."""
    if image.grad_fn is None:  # the cell returned a tensor as it was given: its input, a parameter, or the state
        return image.requires_grad and image is not leaf
    variables = (getattr(node, "variable", None) for node in graph_nodes(image))
    return any(variable is not None and variable is not leaf for variable in variables)


_STEP, _FELT = 0.1, 1e2
"""How far a state is moved, relative to its entries, and the change by it, in units of rounding, that counts as one."""
_DETACHED = (
    "the cell depends on its state, and its graph does not: the state is detached in it or leaves torch (NumPy, "
    ".item()), so that the gradient of the equilibrium would be wrong. Keep the state in the graph, or use "
    "backward=OneStep(), which leaves that dependence out on purpose."
)
_NO_OUTER = (
    "an equilibrium layer inside torch.func.vmap has no derivative outside of it; take the derivative inside vmap, or "
    "put the mapped axis into the batch."
)
_NO_THIRD = "an equilibrium layer has first and second derivatives only; use backward=Unrolled() for higher ones."
_NO_SECOND = (
    "an equilibrium layer has no second derivative unless asked for: use backward=Implicit(second_order=True) with "
    "torch.autograd, or backward=Unrolled() inside torch.func."
)


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


class _TwiceDifferentiable(torch.autograd.Function):
    """Hands on z, itself an equilibrium with first derivatives, from which ``image`` was computed.

    The gradient v^T df/dtheta is taken at z, not at a constant, so that it can be differentiated further. What flows
    back from the image to z, J^T v, is taken away again: it is part of v already. v solves v = J^T v + g, a linear map
    that depends on z, on theta and on g, and is attached as an equilibrium in its turn.
    """

    @staticmethod
    def forward(image: Tensor, z: Tensor, solve: LinearSolve, taken_away: list[float]) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, LinearSolve, list[float]], output: Tensor) -> None:
        ctx.solve, ctx.taken_away = inputs[2:]
        ctx.save_for_backward(inputs[0], inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        image, z = ctx.saved_tensors
        further = torch.is_grad_enabled()

        def pull_back(vector: Tensor, keep: bool = False) -> Tensor:
            (product,) = torch.autograd.grad(image, z, vector, retain_graph=True, create_graph=keep, allow_unused=True)
            return torch.zeros_like(z) if product is None else product

        v = ctx.solve(pull_back, gradients[0].detach())
        if further:
            v = attach_equilibrium(lambda v: pull_back(v, keep=True) + gradients[0], v, ctx.solve)
        back = pull_back(v, keep=further)
        ctx.taken_away[0] = float(torch.linalg.vector_norm(back.detach()))
        return v, -back, None, None


def _carried_twice(image: Tensor, z: Tensor, solve: LinearSolve, taken_away: list[float]) -> Tensor:
    out: Tensor = _TwiceDifferentiable.apply(image, z, solve, taken_away)
    return out


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
