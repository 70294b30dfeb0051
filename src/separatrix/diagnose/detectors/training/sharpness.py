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
from ...optimisers import learning_rates
from ...recording.observed import Observed
from ...recording.passes import parameter_gradients
from ...recording.protection import moved, write
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
    if any(value.is_complex() for value in facts.subject.trainable.values()):
        facts.skip("sharpness", "complex parameters")
        return []
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
    if isinstance(optimiser, torch.optim.SGD) and (rates := learning_rates(optimiser)):
        said += f", yours is {rates[-1]:.3g}"
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
    if any(value.is_complex() for value in facts.subject.trainable.values()):
        return math.nan, math.nan  # directions are real
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
        for vector in basis:
            w.add_(vector, alpha=-float(w @ vector))
        betas.append(float(w.norm()))
        if betas[-1] < 1e-8 * max(abs(alphas[0]), 1e-30):
            break
        basis = [*basis, w.div_(betas[-1])][-kept:]
    if not all(math.isfinite(value) for value in (*alphas, *betas)):
        return math.nan, math.nan
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
    product = torch.zeros_like(direction)
    for sign in (1, -1):
        _add_gradient(facts, direction, sign * step, product, sign / (2 * step))
    return product


def _add_gradient(facts: Observed, direction: Tensor, length: float, total: Tensor, share: float) -> None:
    """Add a share of the gradient at a place ``length`` along a direction; one copy of the parameters is kept."""
    subject, trainable = facts.subject, facts.subject.trainable
    own = {value: value.detach() for value in trainable.values()}
    parts = direction.split([value.numel() for value in trainable.values()])
    with moved(own), as_left(subject.model):
        for value, part in zip(own, parts, strict=True):
            held = value.detach().to(part.dtype)
            write({value: held + length * part.view(value.shape)})
        output, _ = subject.forward()
        found = parameter_gradients(subject, output)
    for name, sums in zip(list(found), total.split([value.numel() for value in trainable.values()]), strict=True):
        gradient = found.pop(name)
        if gradient is not None:
            sums.add_(gradient.to(sums.dtype).flatten(), alpha=share)
