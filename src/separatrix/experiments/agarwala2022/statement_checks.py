"""Statements of agarwala2022 without a figure, each measured on sampled matrices: one function per statement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..worst_case import highest, lowest

if TYPE_CHECKING:
    import torch
    from torch import Tensor


MATRICES, DRAWS, PART = 400, 4000, 100
"""Matrices of which the share that diverges is taken, those from which the law of a coordinate is known (to 1.95 over
the root of their number, but once in a thousand), and how many of them are there at a time: all would take a gigabyte.
"""


def _gaussian(generator: torch.Generator, *shape: int) -> Tensor:
    import torch

    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _finite_steps(generator: torch.Generator, width: int) -> dict[str, float]:
    """Eqs. (7), (48): variance of a coordinate over matrices after t steps from zero, inputs of ones."""
    import torch

    v, count, found = 0.5, 400, {"corrected": 0.0, "printed": math.inf}
    weights = math.sqrt(v / width) * _gaussian(generator, count, width, width)
    x = torch.ones(width, 1, dtype=torch.float64)
    z = torch.zeros(count, width, 1, dtype=torch.float64)
    for t in range(1, 6):
        z = weights @ z + x
        if t in (3, 5):
            variance = float((z - x).square().mean())
            right, printed = sum(v**k for k in range(1, t)), t * v**t
            found["corrected"] = highest(found["corrected"], abs(variance / right - 1))
            found["printed"] = lowest(found["printed"], abs(variance / printed - 1))
    return {f"relative error, {name}": value for name, value in found.items()}


def _divergence(generator: torch.Generator, width: int) -> dict[str, int]:
    """Section 2.1.1: matrices with V at 0.9 of its critical value under which the terms of the series grow without end,
    narrow and wide, with independent entries (critical at 1) and symmetric (at 1/4).

    Iteration from zero adds W^k x at its k-th step, so that it diverges if these terms grow; steps 512 and 1024 are
    compared.
    """
    found: dict[str, int] = {}
    for kind in ("", "symmetric and "):
        for name, size in (("narrow", width // 10), ("wide", width)):
            parts = [_that_grow(generator, size, symmetric=bool(kind)) for _ in range(MATRICES // PART)]
            found[f"{kind}{name} that diverge"] = sum(parts)
    return {**found, "matrices": MATRICES}


def _that_grow(generator: torch.Generator, size: int, *, symmetric: bool) -> int:
    """How many of a part of the matrices let the terms of the series grow."""
    power = math.sqrt(0.9 / size) * _gaussian(generator, PART, size, size)
    if symmetric:
        power = (power + power.mT) / math.sqrt(8)
    x = _gaussian(generator, PART, size, 1)
    for _ in range(9):
        power = power @ power
    before = power @ x
    return int(((power @ before).norm(dim=(-2, -1)) > before.norm(dim=(-2, -1))).sum())


def _length_variance(generator: torch.Generator, width: int) -> dict[str, float]:
    """Lemma 2.2: the variance of z.z over Gaussian inputs against 2/N tr (M'M)^2, divided by N^2 and by N."""
    import torch

    matrix = torch.linalg.inv(
        torch.eye(width, dtype=torch.float64) - math.sqrt(0.3 / width) * _gaussian(generator, width, width)
    )
    lengths = (_gaussian(generator, 40_000, width) @ matrix.mT).square().sum(-1)
    trace = 2 / width * float((matrix.mT @ matrix).square().sum() / width)
    variance = float(lengths.var())
    return {
        "relative error over N^2": abs(variance / width**2 / trace - 1),
        "relative error over N": abs(variance / width / trace - 1),
    }


def _spectrum(generator: torch.Generator, width: int) -> dict[str, float]:
    """Theorem 3.2: smallest over largest modulus of an eigenvalue of the Jacobian."""
    import torch

    from separatrix.matrices.ensembles import Haar

    slopes = 1 - torch.tanh(_gaussian(generator, width)).square()
    independent = slopes[:, None] * _gaussian(generator, width, width) / math.sqrt(width)
    orthogonal = Haar().sample(width, 1.0, generator=generator)
    ratios = [torch.linalg.eigvals(matrix).abs() for matrix in (independent, orthogonal)]
    first, second = (float(moduli.min() / moduli.max()) for moduli in ratios)
    return {"independent": first, "orthogonal and linear": second}


def _powers(generator: torch.Generator, width: int) -> dict[str, float]:
    """Section 5.1: normalised traces of the second and fourth power; second moments of the two other families."""
    import torch

    from separatrix.matrices.ensembles import GOE, Gaussian, Haar

    width = 3 * width
    eye, found, moments = torch.eye(width, dtype=torch.float64), {"others": 0.0}, []
    for family in (GOE(), Gaussian(), Haar()):
        matrix = family.sample(width, 0.2, generator=generator)
        square = matrix @ matrix
        traces = float(square.trace()) / width / 0.2, float((square @ square).trace()) / width / 0.04
        if family.name == "goe":
            found["symmetric"] = max(abs(traces[0] - 1), abs(traces[1] / 2 - 1))
        else:
            found["others"] = highest(found["others"], *map(abs, traces))
            moments.append(float(torch.linalg.inv(eye - matrix).square().sum()) / width)
    return {**found, "gap of the other families": abs(moments[0] / moments[1] - 1)}


def _normal_coordinates(generator: torch.Generator, width: int) -> dict[str, float]:
    """Theorem A.2: distance of the law of one coordinate from a Gaussian, at two and at many units."""
    import torch

    from separatrix.core.arithmetic import linear_systems

    found, count, v = {}, DRAWS, 0.5
    for name, size in (("two", 2), ("many", width)):
        x = _gaussian(generator, size)
        eye = torch.eye(size, dtype=torch.float64)
        parts = []
        for _ in range(count // PART):
            weights = math.sqrt(v / size) * _gaussian(generator, PART, size, size)
            parts.append(linear_systems.solve(eye - weights, x.expand(PART, size)[..., None])[:, 0, 0])
        z = torch.cat(parts)
        standard = ((z - x[0]) / math.sqrt(v / (1 - v) * float(x.square().mean()))).sort().values
        normal = 0.5 * (1 + torch.erf(standard / math.sqrt(2)))
        steps = torch.arange(count + 1, dtype=torch.float64) / count
        found[f"distance, {name} units"] = float(torch.maximum(steps[1:] - normal, normal - steps[:-1]).max())
    return found


def _response(w: Tensor, x: Tensor) -> Tensor:
    """The equilibrium z = tanh(W z) + x by iteration, differentiable."""
    import torch

    z = torch.zeros_like(x)
    for _ in range(150):
        z = torch.tanh(w @ z) + x
    return z


def _gradients(generator: torch.Generator, width: int) -> dict[str, float]:
    """Eqs. (93) to (95): gradient of a readout, and the kernel that pairs two inputs, against differentiation."""
    import torch

    n = 8
    w, v = 0.4 * _gaussian(generator, n, n) / math.sqrt(n), _gaussian(generator, n)
    inputs = _gaussian(generator, 2, n)
    eye = torch.eye(n, dtype=torch.float64)

    def gradient(x: Tensor, readout: Tensor) -> Tensor:
        return torch.func.grad(lambda m: readout @ _response(m, x))(w)

    z = [_response(w, x) for x in inputs]
    d = [1 - torch.tanh(w @ state) ** 2 for state in z]
    first, second = (gradient(x, v) for x in inputs)
    right = torch.outer(d[0] * torch.linalg.solve(eye - w.mT * d[0], v), z[0])
    slopes = 1 - torch.tanh(z[0]) ** 2  # phi'(z*), as printed
    printed = torch.outer(torch.linalg.solve((eye - slopes[:, None] * w).mT, v), slopes * z[0])
    step = 1e-5  # what a step of descent on the second input does to the first output
    moved = float(v @ (_response(w + step * second, inputs[0]) - _response(w - step * second, inputs[0]))) / (2 * step)
    total = sum(float((gradient(inputs[0], unit) * gradient(inputs[1], unit)).sum()) for unit in eye)
    r = [torch.linalg.inv(eye - slope[:, None] * w) for slope in d]
    closed = float((r[0] @ torch.diag(d[0] * d[1]) @ r[1].mT).trace() * (z[0] @ z[1]))
    other = float((r[0].mT @ r[1]).trace() * ((d[0] * z[0]) @ (d[1] * z[1])))
    return {
        "(93) corrected": float((right - first).norm() / first.norm()),
        "(93) printed": float((printed - first).norm() / first.norm()),
        "(94) corrected": abs(float((first * second).sum()) / moved - 1),
        "(94) printed": abs(float((first * first).sum()) / moved - 1),
        "(95) corrected": abs(closed / total - 1),
        "(95) printed": abs(other / total - 1),
    }


def _projection(generator: torch.Generator, width: int) -> dict[str, float]:
    """Appendix C.1: the resolvent trace of a projected symmetric matrix against both signs."""
    import torch

    from separatrix.matrices.ensembles import GOE

    p, z = 0.6, torch.tensor(1.2 + 0.3j, dtype=torch.complex128)
    size = 4 * width
    matrix = GOE().sample(size, 1.0, generator=generator)
    kept = torch.arange(size) < round(p * size)
    values = torch.linalg.eigvalsh(matrix * kept[:, None] * kept)
    measured = (1 / (z - values)).mean()
    root = torch.sqrt(z - 2 * p**0.5) * torch.sqrt(z + 2 * p**0.5)
    right, printed = ((1 - p) / z + sign * (z - root) / 2 for sign in (1, -1))
    return {"corrected": float((measured - right).abs()), "printed": float((measured - printed).abs())}


def _blocks(generator: torch.Generator, width: int) -> dict[str, float]:
    """Appendix C.2: block traces of the linearised (1 - W)'(1 - W), mean of ten, against Eqs. (128) and (180)."""
    import torch

    from separatrix.core.arithmetic import linear_systems

    v, z, n, count = 0.4, 3 + 2j, width, 10
    w = (math.sqrt(v / n) * _gaussian(generator, count, n, n)).to(torch.complex128)
    eye = torch.eye(n, dtype=torch.complex128).expand(count, n, n)
    middle = torch.cat([-eye, eye - w - w.mT, w.mT], -1)
    pencil = torch.cat([torch.cat([z * eye, -eye, 0 * eye], -1), middle, torch.cat([0 * eye, w, -eye], -1)], -2)
    inverse = linear_systems.inv(pencil).reshape(count, 3, n, 3, n)
    g = torch.einsum("cikjk->ij", inverse) / (count * n)
    closed = 1 + v * (2 * g[1, 1] - 3 * g[1, 2] + g[2, 2]) * g[1, 1]
    # (128): the corner of [[z, -V], [-Q, -P]]^-1 with V = Q = 1 here and P = -(1 - W)'(1 - W)
    corner = z * eye - linear_systems.inv((eye - w).mT @ (eye - w))

    def mean_trace(matrices: Tensor) -> Tensor:
        return matrices.diagonal(dim1=-2, dim2=-1).mean()

    return {
        "(128) corrected": float((mean_trace(linear_systems.inv(corner)) - g[0, 0]).abs()),
        "(128) printed": float((mean_trace(corner) - g[0, 0]).abs()),
        "(180) corrected": float((-g[0, 1] + g[1, 1] - closed).abs()),
        "(180) printed": float((g[0, 1] + g[1, 1] - closed).abs()),
    }


CHECKS: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "finite steps": _finite_steps,
    "divergence": _divergence,
    "length variance": _length_variance,
    "spectrum": _spectrum,
    "powers": _powers,
    "coordinates": _normal_coordinates,
    "gradients": _gradients,
    "projection": _projection,
    "blocks": _blocks,
}
LEAST = (
    "relative error, printed",
    "relative error over N",
    "orthogonal and linear",
    "distance, two units",
    "printed",
    "(93) printed",
    "(94) printed",
    "(95) printed",
    "(128) printed",
    "(180) printed",
)
"""Quantities whose worst value is the smallest."""
TOTALS = (
    *(f"{kind}{size} that diverge" for kind in ("", "symmetric and ") for size in ("narrow", "wide")),
    "matrices",
)
