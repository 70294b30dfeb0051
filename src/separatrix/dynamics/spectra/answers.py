"""Whether a map has a Jacobian that torch can be asked for: one answer to one question, and a derivative of its own.

Products with a Jacobian are right or wrong in silence. A map that draws its dropout mask anew has another Jacobian at
every product. A map that is detached somewhere, or goes through NumPy, has the derivative of what is left of it: zero.
Neither shows in a spectrum, so both are looked at beforehand, beside the point: at it, a mask of the state may not show
(z = 0), and kinks may lie (the derivative of ReLU at zero is zero to torch, one half to differences).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true, exposed
from separatrix.core.errors import InvalidInput
from separatrix.core.random import generator_states, generators_moved

from ..solve.maps.counted import CountedMap

_ALIKE = 1e-2
"""Difference of two answers, relative to the entries, that nondeterministic kernels may make."""
_ASKED = 64
"""Answers of a map that draws: one entry of 32 that drops out at 0.5 % shows in all but 4e-5 of cases."""
_OFF = 0.1
"""Share of a difference that the derivative may miss, beside what the differences of both sides miss of each other."""
_NOISE = 4.0
"""Rounding error of a difference of two images, in units of the rounding error of the map."""

States = Float[Tensor, "samples d"]


def require_a_jacobian(fixed_point_map: CountedMap, point: States, direction: States) -> None:
    """Refuse a map that answers differently when asked again, or whose derivative is not that of its values.

    Args:
        fixed_point_map: the map.
        point: where its Jacobian is wanted.
        direction: a unit vector per sample, along which the derivative is looked at.

    Raises:
        InvalidInput: it has no Jacobian that torch could find.

    Cost: five evaluations and one product, and 64 evaluations more where random numbers are drawn.
    """
    unit = torch.linalg.vector_norm(point, dim=1, keepdim=True).clamp_min(1.0)
    reach = fixed_point_map.rounding ** (1 / 3) * unit
    beside = point + reach * direction.flip(-1)
    before = generator_states(point.device)
    try:
        image = fixed_point_map(beside)
    except Exception:  # whatever it raises outside of its domain
        beside, image = point, fixed_point_map(point)
    _require_one_answer(fixed_point_map, beside, image, before)
    step = reach / 8 * direction
    try:
        ahead, back = fixed_point_map(beside + step), fixed_point_map(beside - step)
    except Exception:
        return
    change = (ahead - back) / 2
    bend = torch.linalg.vector_norm(ahead - image - (image - back), dim=1)
    noise = _NOISE * fixed_point_map.rounding * torch.linalg.vector_norm(image, dim=1)
    _require_own_derivative(change, fixed_point_map.derivative(beside, step), bend + noise)


def _require_one_answer(fixed_point_map: CountedMap, point: States, first: States, before: dict[str, bytes]) -> None:
    asked = _ASKED if generators_moved(before, point.device) else 1
    limit = _ALIKE * (first.abs() + first.abs().mean(dim=1, keepdim=True))
    for _ in range(asked):
        if any_true((fixed_point_map(point) - first).abs() > limit):
            raise InvalidInput(
                "the map gave two different results for the same state, so it has no Jacobian there: it draws random "
                "numbers, or changes as it is called. Call eval() on what has dropout, or keep one mask for all calls."
            )


def _require_own_derivative(change: States, product: States, blur: Float[Tensor, " samples"]) -> None:
    size = torch.linalg.vector_norm(change, dim=1)
    missing = torch.linalg.vector_norm(change - product, dim=1)
    wrong: Bool[Tensor, " samples"] = (size > blur) & (missing > _OFF * size + blur)
    if not any_true(wrong):
        return
    row = int(exposed(wrong).reshape(-1).long().argmax())
    share = float(exposed(missing / size).reshape(-1)[row])
    raise InvalidInput(
        "the derivative that torch takes of the map is not that of its values: along a random direction it misses "
        f"{share:.0%} of what they do (sample {row % len(size)}). Something in the map is detached, leaves torch "
        "(NumPy, .item()) or has a gradient of its own, so that torch cannot tell its Jacobian."
    )


def require_transposed(stretch: Float[Tensor, " samples"], pulled: Float[Tensor, " samples"]) -> None:
    """Refuse a J^T that does not belong to its J: for u = J v / |J v|, the number |J v| is also v^T (J^T u).

    Args:
        stretch: |J v|.
        pulled: v^T (J^T u).
    """
    if any_true((stretch - pulled).abs() > _OFF * stretch):
        raise InvalidInput(
            "the map is not differentiable backwards as it is forwards: products with the transposed Jacobian miss a "
            "part of it. Something in it switches gradients off (torch.no_grad), or has a backward of its own."
        )
