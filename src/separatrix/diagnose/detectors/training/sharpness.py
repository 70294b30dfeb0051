"""The largest curvature of the loss, by Lanczos on differences of gradients.

Power iteration would find the largest modulus, which at the start of training is often a negative eigenvalue; the
largest Ritz value is the largest eigenvalue, and the last component of its Ritz vector bounds its error.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from separatrix.core import stream_seed

from ...findings.finding import Certainty, Finding, Place
from ...recording.observed import Observed
from ...recording.passes import parameter_gradients
from ...recording.protection import moved
from ...recording.subject import as_left

_STEPS = 10
_WIDE = 5_000_000
"""Parameters beyond which vectors are single precision and only two of them are kept."""
_LARGEST = 300_000_000
_THEORY = "gradient descent is stable on a quadratic for rates below 2 / lambda_max"


def sharpness(facts: Observed) -> list[Finding]:
    """lambda_max of the Hessian of the loss with the residual as its error. Cost: 20 forwards and backwards."""
    if facts.loss is None or not facts.subject.trainable or not bool(torch.isfinite(facts.loss)):
        return []
    size = sum(value.numel() for value in facts.subject.trainable.values())
    estimate = estimated_seconds(facts)
    if size > _LARGEST:
        facts.skip("sharpness", f"more than {_LARGEST:,} parameters")
        return []
    if not facts.budget.allows(estimate):
        facts.skip("sharpness", "no time left", f"about {estimate:.0f} more seconds")
        return []
    value, error = curvature(facts)
    if not (math.isfinite(value) and value > 0):
        return []
    facts.measures["sharpness"] = value
    said = f"largest curvature {value:.3g}: plain SGD steps above {2 / value:.2g} are unstable at first order"
    optimiser = facts.subject.optimizer
    if isinstance(optimiser, torch.optim.SGD):
        said += f", yours is {float(optimiser.param_groups[0]['lr']):.3g}"
    return [
        Finding(
            "sharpness", "note", Place("loss"), value, said + ".", theory=_THEORY,
            certainty=Certainty("se", se=error, n=_STEPS), unit="curvature",
            evidence="training often survives a rate above it at the start: information, no accusation",
        )
    ]  # fmt: skip


def estimated_seconds(facts: Observed) -> float:
    """What the products take."""
    return 2 * _STEPS * 3.5 * facts.forward_seconds


def curvature(facts: Observed) -> tuple[float, float]:
    """Largest eigenvalue of the Hessian of the loss with its residual, once for every diagnosis."""
    if not hasattr(facts, "_curvature"):
        size = sum(value.numel() for value in facts.subject.trainable.values())
        facts._curvature = _lanczos(facts, size)  # type: ignore[attr-defined]
    return facts._curvature  # type: ignore[attr-defined]


def _lanczos(facts: Observed, size: int) -> tuple[float, float]:
    """Largest Ritz value and its residual."""
    device = next(iter(facts.subject.trainable.values())).device
    generator = torch.Generator().manual_seed(stream_seed(facts.subject.seed, "check", "sharpness"))
    kind, kept = (torch.float64, _STEPS + 1) if size <= _WIDE else (torch.float32, 2)
    q = torch.randn(size, generator=generator, dtype=kind).to(device)
    basis, alphas, betas = [q / q.norm()], [], []
    for _ in range(min(_STEPS, size)):
        w = _product(facts, basis[-1])
        alphas.append(float(w @ basis[-1]))
        basis = basis[-kept:]
        for vector in basis:
            w -= (w @ vector) * vector
        betas.append(float(w.norm()))
        if betas[-1] < 1e-8 * max(abs(alphas[0]), 1e-30):
            break
        basis.append(w / betas[-1])
    t = torch.diag(torch.tensor(alphas, dtype=torch.float64))
    off = torch.tensor(betas[: len(alphas) - 1], dtype=torch.float64)
    t = t + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(t)
    if kept > 2:
        found = sum(float(part) * q for part, q in zip(vectors[:, -1], basis, strict=False))
        facts.sharpest = found / found.norm() if isinstance(found, Tensor) else None
    return float(values[-1]), abs(betas[-1] * float(vectors[-1, -1]))


def curvature_along(facts: Observed, direction: Tensor) -> float:
    """v . H v for a unit vector."""
    return float(_product(facts, direction.clone()) @ direction)


def _product(facts: Observed, direction: Tensor) -> Tensor:
    """Hessian times a unit vector: central difference of gradients, a step of 1e-3 sqrt(max(|theta|, 1))."""
    trainable = facts.subject.trainable
    norm = math.sqrt(sum(float(value.detach().double().square().sum()) for value in trainable.values()))
    step = 1e-3 * math.sqrt(max(norm, 1.0))
    plus, minus = (_gradient_at(facts, sign * step * direction) for sign in (1, -1))
    return plus.sub_(minus).div_(2 * step)


def _gradient_at(facts: Observed, change: Tensor) -> Tensor:
    subject, place, values = facts.subject, 0, {}
    trainable = subject.trainable
    for value in trainable.values():
        part = change[place : place + value.numel()].view(value.shape)
        values[value] = (value.detach().to(part.dtype) + part).to(value.dtype)
        place += value.numel()
    with moved(values), as_left(subject.model):
        output, _ = subject.forward()
        found = parameter_gradients(subject, output)
    return torch.cat(
        [
            (torch.zeros_like(trainable[name]) if gradient is None else gradient).to(change.dtype).flatten()
            for name, gradient in found.items()
        ]
    )
