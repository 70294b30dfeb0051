"""Products of a Jacobian with vectors, for any map that torch can differentiate once or twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true, transforms_active
from separatrix.core.errors import InvalidInput, SeparatrixError
from separatrix.core.scalars import in_words

_LOST = 0.1
"""Part of a product that may be missing before double backward is refused, in units of what two random vectors share:
more than rounding in half precision takes away, and far less than an operation whose derivative is lost."""
_NOT_LINEAR = "a backward in it is not differentiable, or not linear in the gradient"


def jacobian_product(function: Callable[[Tensor], Tensor], z: Tensor, direction: Tensor) -> Tensor:
    """J(z) times a direction, by forward differentiation: one evaluation.

    Where an operation has no forward rule (fused attention, many custom functions), by differentiating J^T u with
    respect to u, with attention in its plain form, whose derivative has a derivative.

    Example:
        >>> z = torch.tensor([[0.0, 1.0]])
        >>> jacobian_product(lambda z: z.square(), z, torch.ones(1, 2))
        tensor([[0., 2.]])
    """
    _require_floating(z=z, direction=direction)
    try:
        image: Tensor = torch.func.jvp(function, (z,), (direction,))[1]
    except (NotImplementedError, RuntimeError) as missing:
        return _twice_backward(function, z, direction, missing)
    return image


def transposed_product(function: Callable[[Tensor], Tensor], z: Tensor, vector: Tensor) -> Tensor:
    """J(z)^T times a vector, by reverse differentiation.

    Example:
        >>> weight = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
        >>> transposed_product(lambda z: z @ weight.mT, torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
        tensor([[1., 2.]])
    """
    _require_floating(z=z, vector=vector)
    if transforms_active():
        product: Tensor = torch.func.vjp(function, z)[1](vector)[0]
        return product
    with torch.enable_grad():
        point = z.detach().requires_grad_()
        image = _image(function, point)
    return _gradient(image, point, vector)


def _require_floating(**given: Tensor) -> None:
    for name, value in given.items():
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
            raise InvalidInput(f"{name} must be a tensor of floating numbers; got {in_words(value)}.")


def _image(function: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    """The value of a map, which must be a tensor."""
    image = function(point)
    if not isinstance(image, Tensor):
        raise InvalidInput(f"function must return a tensor; got {in_words(image)}.")
    return image


def _twice_backward(function: Callable[[Tensor], Tensor], z: Tensor, direction: Tensor, missing: Exception) -> Tensor:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    try:
        with sdpa_kernel(SDPBackend.MATH):
            return (
                _through_functions(function, z, direction)
                if transforms_active()
                else _through_graph(function, z, direction)
            )
    except (NotImplementedError, RuntimeError) as failure:
        raise SeparatrixError(
            "products with the Jacobian need a map with forward derivatives or with second derivatives, and this one "
            f"has neither: {_first_line(missing)}; {_first_line(failure)}."
        ) from failure


def _through_graph(function: Callable[[Tensor], Tensor], z: Tensor, direction: Tensor) -> Tensor:
    with torch.enable_grad():
        point = z.detach().requires_grad_()
        image = _image(function, point)
        vector = _varied(image).requires_grad_()
        if not image.requires_grad:
            return torch.zeros_like(image)
        (pulled,) = torch.autograd.grad(image, point, vector, create_graph=True, allow_unused=True)
    if pulled is None:
        return torch.zeros_like(image)
    require_second_derivatives(pulled)
    product = torch.autograd.grad(pulled, vector, direction, allow_unused=True)[0] if pulled.requires_grad else None
    if product is None:
        if any_true(pulled.detach() != 0):
            raise NotImplementedError(_NOT_LINEAR)
        return torch.zeros_like(image)
    _require_adjoint(pulled.detach(), direction, vector.detach(), product.detach())
    return product.detach()


def _through_functions(function: Callable[[Tensor], Tensor], z: Tensor, direction: Tensor) -> Tensor:
    image, pull_back = torch.func.vjp(function, z)[:2]
    vector = _varied(image)
    pulled, push = torch.func.vjp(lambda u: pull_back(u)[0], vector)[:2]
    product: Tensor = push(direction)[0]
    _require_adjoint(pulled, direction, vector, product)
    return product


def _varied(image: Tensor) -> Tensor:
    """A vector to differentiate at: J^T u is linear in u, so any will do, and one that is not zero shows whether."""
    place = torch.arange(image.numel(), dtype=torch.float32, device=image.device)
    return torch.cos(1.0 + 12.9898 * place).to(image.dtype).reshape(image.shape)


def require_second_derivatives(pulled: Tensor) -> None:
    """Refuse a J^T u through an operation whose backward is marked as once differentiable: it would count as zero.

    torch ends the graph there with a node that raises, but is never asked, since it leads nowhere.
    """
    if any(node.name() == "torch::autograd::Error" for node in graph_nodes(pulled)):
        raise NotImplementedError("an operation in it is marked as once_differentiable")


def graph_nodes(tensor: Tensor) -> Iterator[Any]:
    """The nodes of the graph that a tensor was made by, each once."""
    stack: list[Any] = [tensor.grad_fn]
    seen: set[Any] = {None}
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(part for part, _ in node.next_functions)


def _require_adjoint(pulled: Tensor, direction: Tensor, vector: Tensor, product: Tensor) -> None:
    """Refuse a J v that does not belong to the J^T u that it was made of: u^T (J v) is v^T (J^T u)."""
    (one, other), limit = _both_ways(pulled, direction, vector, product)
    if any_true((one - other).abs() > limit):
        raise NotImplementedError(_NOT_LINEAR)


def _both_ways(
    pulled: Tensor, direction: Tensor, vector: Tensor, product: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """v^T (J^T u) and u^T (J v), in units of the largest entry, and how far apart they may lie."""
    largest = torch.maximum(pulled.abs().amax(), product.abs().amax())
    unit = torch.where(largest > 0, largest, 1.0)  # else the squares of a tiny Jacobian are zero
    inner, sizes = [], []
    for a, b in ((pulled / unit, direction), (vector, product / unit)):
        inner.append((a.conj() * b).real.sum())
        sizes.append(torch.linalg.vector_norm(a) * torch.linalg.vector_norm(b))
    return (inner[0], inner[1]), _LOST * (sizes[0] + sizes[1]) / vector.numel() ** 0.5


def _gradient(value: Tensor, point: Tensor, vector: Tensor) -> Tensor:
    if not value.requires_grad:
        return torch.zeros_like(point)
    (product,) = torch.autograd.grad(value, point, vector, allow_unused=True)
    return torch.zeros_like(point) if product is None else product.detach()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
