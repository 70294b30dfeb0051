"""Products of a Jacobian with vectors, for any map that torch can differentiate once or twice."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput, SeparatrixError
from separatrix.core.scalars import in_words


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
        vector = torch.zeros_like(image, requires_grad=True)
        if not image.requires_grad:
            return torch.zeros_like(image)
        (pulled,) = torch.autograd.grad(image, point, vector, create_graph=True, allow_unused=True)
    return torch.zeros_like(image) if pulled is None else _gradient(pulled, vector, direction)


def _through_functions(function: Callable[[Tensor], Tensor], z: Tensor, direction: Tensor) -> Tensor:
    image, pull_back = torch.func.vjp(function, z)[:2]
    product: Tensor = torch.func.vjp(lambda u: pull_back(u)[0], torch.zeros_like(image))[1](direction)[0]
    return product


def _gradient(value: Tensor, point: Tensor, vector: Tensor) -> Tensor:
    if not value.requires_grad:
        return torch.zeros_like(point)
    (product,) = torch.autograd.grad(value, point, vector, allow_unused=True)
    return torch.zeros_like(point) if product is None else product.detach()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
