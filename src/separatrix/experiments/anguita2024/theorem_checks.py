"""Theorems and algorithms of anguita2024, each measured on its own: one function per statement.

Every closed form is written out as the theorem has it and compared with an integration of the gradient flow of the
layers, which knows no closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..worst_case import highest, lowest
from .layer_flow import follow, gaussian

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def _sigmoids(generator: torch.Generator) -> dict[str, float]:
    """Theorem 2.2.2: strengths of the modes of an aligned network of balance zero, and what stays off the diagonal."""
    import torch

    corr, strengths = gaussian(generator, 4, 4), 0.05 + 0.4 * torch.rand(4, generator=generator, dtype=torch.float64)
    u, s, vh = torch.linalg.svd(corr)
    root = torch.diag(strengths.sqrt())
    error = apart = 0.0
    for t in (0.3, 1.0, 3.0):
        w1, w2 = follow(root @ vh, u @ root, corr, t)
        modes = u.mT @ w2 @ w1 @ vh.mT
        grown = torch.exp(2 * s * t)
        sigmoid = s * grown / (grown - 1 + s / strengths)
        error = highest(error, float((modes.diagonal() - sigmoid).abs().max()))
        apart = highest(apart, float((modes - torch.diag(modes.diagonal())).abs().max()))
    return {"error of the sigmoids": error, "mixing of modes": apart}


def _shallow(generator: torch.Generator) -> dict[str, float]:
    """Theorems 2.2.3 and 4.2.2: one layer from any start, and its singular values from zero."""
    import torch
    from scipy.integrate import solve_ivp

    corr, start = gaussian(generator, 3, 5), gaussian(generator, 3, 5)
    error = modes = 0.0
    for t in (0.4, 2.0):
        for first in (start, torch.zeros_like(start)):
            path = solve_ivp(
                lambda _, w: corr.reshape(-1).numpy() - w, (0, t), first.reshape(-1).numpy(), rtol=1e-11, atol=1e-13
            )
            weight = torch.as_tensor(path.y[:, -1]).reshape(3, 5)
            closed = corr + (first - corr) * math.exp(-t)
            error = highest(error, float((weight - closed).abs().max()))
        values = torch.linalg.svdvals(corr) * (1 - math.exp(-t))
        modes = highest(modes, float((torch.linalg.svdvals(weight) - values).abs().max()))
    return {"error of the product": error, "error of singular values from zero": modes}


def _riccati(generator: torch.Generator) -> dict[str, float]:
    """Theorem 2.2.4 as a formula, where F has an inverse; and with a hidden unit that is empty."""
    import torch

    from separatrix import matrices

    errors = {"error, equal sizes": 0.0, "error, unequal sizes": 0.0, "error, empty hidden unit": 0.0}
    for name, (n_in, n_hidden, n_out) in (
        ("error, equal sizes", (3, 3, 3)),
        ("error, unequal sizes", (2, 2, 3)),
        ("error, empty hidden unit", (3, 3, 3)),
    ):
        corr = gaussian(generator, n_out, n_in)
        w1, w2 = matrices.balanced_pair(0.0, n_in, n_hidden, n_out, scale=0.5, generator=generator)
        if name == "error, empty hidden unit":
            w1, w2 = torch.cat([w1, w1.new_zeros(1, n_in)]), torch.cat([w2, w2.new_zeros(n_out, 1)], 1)
        field = torch.cat(
            [torch.cat([w1.new_zeros(n_in, n_in), corr.mT], 1), torch.cat([corr, w1.new_zeros(n_out, n_out)], 1)]
        )
        start, t = torch.cat([w1.mT, w2]), 0.7
        moved = torch.linalg.matrix_exp(field * t) @ start
        # (e^(Ft) F^-1 e^(Ft) - F^-1)/2 is the integral of e^(2Fs), which exists for every F
        grown = _grown(field, t)
        inner = torch.eye(start.shape[1], dtype=start.dtype) + start.mT @ grown @ start
        after = torch.cat(
            [part.mT if first else part for first, part in zip((True, False), follow(w1, w2, corr, t), strict=True)]
        )
        gap = moved @ torch.linalg.solve(inner, moved.mT) - after @ after.mT
        errors[name] = float(gap.abs().max())
    return errors


def _grown(field: Tensor, t: float) -> Tensor:
    """The integral of exp(2 F s) from 0 to t, from eigenvalues."""
    import torch

    values, vectors = torch.linalg.eigh(field)
    small = values.abs() < 1e-12
    factors = torch.where(
        small, torch.full_like(values, t), torch.expm1(2 * values * t) / torch.where(small, 1.0, 2 * values)
    )
    return (vectors * factors) @ vectors.mT


def _stable_form(generator: torch.Generator) -> dict[str, float]:
    """Theorem 2.2.5: with the inverse and twice the exponent, and with either slip of the print."""
    import torch

    from separatrix import matrices

    corr, t = gaussian(generator, 3, 3), 0.4
    w1, w2 = matrices.balanced_pair(0.0, 3, 3, 3, scale=1.0, generator=generator)
    corr = corr * torch.sign(torch.linalg.det(w2 @ w1) * torch.linalg.det(corr))  # else B has no inverse
    u0, s0, v0h = torch.linalg.svd(w2 @ w1)
    u, s, vh = torch.linalg.svd(corr)
    b, c = u0.mT @ u + v0h @ vh.mT, u0.mT @ u - v0h @ vh.mT
    fade, inverse, eye = torch.exp(-s * t), torch.linalg.inv(b), torch.eye(3, dtype=torch.float64)
    turned = fade[:, None] * (c.mT @ inverse.mT) * fade
    left = torch.cat([vh.mT @ (eye - turned), u @ (eye + turned)])
    common = 4 * fade[:, None] * (inverse @ torch.diag(1 / s0) @ inverse.mT) * fade + torch.diag((1 - fade**2) / s)
    mixed = fade[:, None] * (inverse @ c)
    right, printed = (common - (mixed * ((power - 1) / s)) @ mixed.mT for power in (fade**2, fade))
    after1, after2 = follow(w1, w2, corr, t)
    after = torch.cat([after1.mT, after2])
    size = float((after @ after.mT).abs().max())

    def gap(gram: Tensor) -> float:
        return float((gram - after @ after.mT).abs().max()) / size

    return {
        "corrected": gap(left @ torch.linalg.solve(right, left.mT)),
        "without the inverse": gap(left @ right @ left.mT),
        "with the printed exponent": gap(left @ torch.linalg.solve(printed, left.mT)),
    }


def _shapes_of_learning(generator: torch.Generator) -> dict[str, float]:
    """Theorem 3.2.2: distance of a mode's course from a sigmoid and from an exponential, by balance."""
    import torch

    s, start = 1.0 + float(torch.rand(1, generator=generator)), 0.05
    found = dict[str, float]()
    for name, lam in (("zero", 0.0), ("large", 300.0), ("large negative", -300.0)):
        root = math.sqrt((math.hypot(lam, 2 * start) + abs(lam)) / 2)
        sides = (start / root, root) if lam >= 0 else (root, start / root)
        rate = math.hypot(lam, 2 * s)
        w1, w2 = (torch.tensor([[side]], dtype=torch.float64) for side in sides)
        sigmoid = exponential = 0.0
        for t in (0.5 / rate, 1 / rate, 3 / rate, 6 / rate):
            a1, a2 = follow(w1, w2, torch.tensor([[s]], dtype=torch.float64), t)
            strength, grown = float(a1 * a2), math.exp(rate * t)
            sigmoid = highest(sigmoid, abs(strength - s * grown / (grown - 1 + s / start)) / s)
            exponential = highest(exponential, abs(strength - s - (start - s) / grown) / s)
        found |= {f"distance from a sigmoid, {name}": sigmoid, f"distance from an exponential, {name}": exponential}
    return found


def _unequal_field(generator: torch.Generator) -> dict[str, float]:
    """Theorem 3.4.2: eigenvalues of F for unequal sizes and both signs, against a dense eigensolver."""
    import torch

    worst = 0.0
    for n_in, n_out in ((2, 5), (5, 2), (3, 4)):
        for lam in (-1.7, 0.8):
            corr = gaussian(generator, n_out, n_in)
            eye_in, eye_out = (torch.eye(n, dtype=torch.float64) * lam / 2 for n in (n_in, n_out))
            field = torch.cat([torch.cat([-eye_in, corr.mT], 1), torch.cat([corr, eye_out], 1)])
            mu = torch.hypot(torch.linalg.svdvals(corr), torch.tensor(lam / 2, dtype=torch.float64))
            extra = torch.full((abs(n_out - n_in),), math.copysign(1, n_out - n_in) * lam / 2, dtype=torch.float64)
            listed = torch.cat([mu, -mu, extra]).sort().values
            worst = highest(worst, float((torch.linalg.eigvalsh(field) - listed).abs().max()))
    return {"error of the eigenvalues": worst}


def _algorithms(generator: torch.Generator) -> dict[str, float]:
    """Algorithms 1 and 2: balance, alignment with the task, and the size of what is drawn."""
    import torch

    from separatrix import matrices

    found = {"imbalance": 0.0, "imbalance, aligned": 0.0, "off the task's modes": 0.0}
    for lam, sizes in ((2.0, (2, 3, 5)), (-2.0, (5, 3, 2)), (0.0, (3, 4, 3)), (7.0, (3, 3, 3)), (-7.0, (3, 3, 3))):
        n_in, n_hidden, n_out = sizes
        eye = lam * torch.eye(n_hidden, dtype=torch.float64)
        w1, w2 = matrices.balanced_pair(lam, n_in, n_hidden, n_out, scale=0.5, generator=generator)
        found["imbalance"] = highest(found["imbalance"], float((w2.mT @ w2 - w1 @ w1.mT - eye).abs().max()))
        corr = gaussian(generator, n_out, n_in)
        w1, w2 = matrices.aligned_balanced_pair(lam, corr, n_hidden, scale=0.5, generator=generator)
        gap = float((w2.mT @ w2 - w1 @ w1.mT - eye).abs().max())
        found["imbalance, aligned"] = highest(found["imbalance, aligned"], gap)
        u, _, vh = torch.linalg.svd(corr, full_matrices=False)
        product = w2 @ w1
        modes = u.mT @ product @ vh.mT
        lost = product - u @ torch.diag(modes.diagonal()) @ vh
        found["off the task's modes"] = highest(found["off the task's modes"], float(lost.abs().max()))
    return found


def _representations(generator: torch.Generator) -> dict[str, float]:
    """Theorem 4.1.1 at any time and for both signs: eigenvalues from the product and the balance."""
    import torch

    from separatrix import matrices

    found = {
        "error of the paired eigenvalues": 0.0,
        "error with n_hidden - rank extra ones": 0.0,
        "error as printed": 0.0,
    }
    for lam, (n_in, n_hidden, n_out) in ((2.0, (2, 3, 5)), (-2.0, (5, 3, 2)), (1.5, (3, 3, 3)), (-1.5, (3, 3, 3))):
        corr = gaussian(generator, n_out, n_in)
        w1, w2 = matrices.balanced_pair(lam, n_in, n_hidden, n_out, scale=0.5, generator=generator)
        for t in (0.0, 0.4, 1.5, 6.0):
            a1, a2 = follow(w1, w2, corr, t) if t else (w1, w2)
            strengths, rank = torch.linalg.svdvals(a2 @ a1), min(n_in, n_hidden, n_out)
            root = torch.hypot(torch.tensor(lam, dtype=torch.float64), 2 * strengths[:rank])
            heavy = torch.linalg.eigvalsh(a2 @ a2.mT if lam > 0 else a1.mT @ a1).flip(0)
            light = torch.linalg.eigvalsh(a1.mT @ a1 if lam > 0 else a2 @ a2.mT).flip(0)
            big, small = (root + abs(lam)) / 2, (root - abs(lam)) / 2
            pairs = max(float((heavy[:rank] - big).abs().max()), float((light[:rank] - small).abs().max()))
            rest = heavy[rank:]
            ours, printed = (
                abs(lam) * (torch.arange(len(rest)) < count).double() for count in (n_hidden - rank, abs(n_out - n_in))
            )
            for name, gap in (
                ("error of the paired eigenvalues", pairs),
                ("error with n_hidden - rank extra ones", float((rest - ours).abs().max()) if len(rest) else 0.0),
                ("error as printed", float((rest - printed).abs().max()) if len(rest) else 0.0),
            ):
                found[name] = highest(found[name], gap)
    return found


def _random_layers(generator: torch.Generator, n_samples: int) -> dict[str, float]:
    """Figure 3.1 (sizes 40, 200, 80): off-diagonal entries against the diagonal, and eigenvalues against their mean."""
    import torch

    found = {"off the diagonal over the diagonal": 0.0, "spread of eigenvalues over their mean": math.inf}
    n_in, n_hidden, n_out = 40, 200, 80
    for v1, v2 in ((1 / 40, 1 / 200), (2 / 40, 2 / 200), (2 / 240, 2 / 280)):  # LeCun, He, Glorot
        balances = []
        for _ in range(max(n_samples // 100, 2)):
            w1, w2 = (
                math.sqrt(v1) * gaussian(generator, n_hidden, n_in),
                math.sqrt(v2) * gaussian(generator, n_out, n_hidden),
            )
            balances.append(w2.mT @ w2 - w1 @ w1.mT)
        stack = torch.stack(balances)
        mean = float(stack.diagonal(dim1=-2, dim2=-1).mean())
        off = stack - torch.diag_embed(stack.diagonal(dim1=-2, dim2=-1))
        ratio = math.sqrt(float(off.square().sum()) / (len(stack) * n_hidden * (n_hidden - 1))) / abs(mean)
        spread = float((torch.linalg.eigvalsh(stack) - mean).square().mean().sqrt()) / abs(mean)
        found["off the diagonal over the diagonal"] = highest(found["off the diagonal over the diagonal"], ratio)
        found["spread of eigenvalues over their mean"] = lowest(found["spread of eigenvalues over their mean"], spread)
    return found


def _extreme_ratios(generator: torch.Generator, n_samples: int) -> dict[str, float]:
    """Table 3.3 by sampled layers at ratios of 1 to 400: furthest mean, in units of its room."""
    found = {"corrected": 0.0, "printed": 0.0}
    k = 2.0
    cases = {  # n_in, n_hidden, n_out for r = k, r -> 0, r -> inf, k -> inf, k -> 0 (the other ratio is k)
        "r = k": (20, 40, 40),
        "r -> 0": (400, 800, 1),
        "r -> inf": (2, 4, 800),
        "k -> inf": (2, 800, 4),
        "k -> 0": (400, 1, 800),
    }
    limits = {
        "lecun": {"r = k": 0.0, "r -> 0": -1.0, "k -> inf": -1.0},
        "he": {"r = k": 0.0, "r -> 0": -2.0, "k -> inf": -2.0},
        "glorot": {
            "r = k": (k - 1) / (k + 1),
            "r -> 0": -2 / (k + 1),
            "r -> inf": 2 * k / (k + 1),
            "k -> inf": 0.0,
            "k -> 0": 0.0,
        },
    }
    printed = {
        **limits,
        "glorot": {"r = k": 0.0, "r -> 0": 2.0, "r -> inf": 2.0, "k -> inf": 0.0, "k -> 0": -2 / (k + 1)},
    }
    for scheme, own in limits.items():
        for case, limit in own.items():
            n_in, n_hidden, n_out = cases[case]
            v1, v2 = {
                "lecun": (1 / n_in, 1 / n_hidden), "he": (2 / n_in, 2 / n_hidden),
                "glorot": (2 / (n_in + n_hidden), 2 / (n_hidden + n_out)),
            }[scheme]  # fmt: skip
            # only one diagonal entry at a time is needed: |column of w2|^2 - |row of w1|^2
            row, column = gaussian(generator, n_samples, n_in), gaussian(generator, n_samples, n_out)
            entries = v2 * column.square().sum(1) - v1 * row.square().sum(1)
            mean, error = float(entries.mean()), float(entries.std()) / math.sqrt(n_samples)
            room = 5 * error + 0.03
            found["corrected"] = highest(found["corrected"], abs(mean - limit) / room)
            found["printed"] = highest(found["printed"], abs(mean - printed[scheme][case]) / room)
    return found


DRAWN: dict[str, Callable[[Any], dict[str, float]]] = {
    "sigmoids": _sigmoids,
    "shallow": _shallow,
    "riccati": _riccati,
    "stable form": _stable_form,
    "shapes of learning": _shapes_of_learning,
    "unequal field": _unequal_field,
    "algorithms": _algorithms,
    "representations": _representations,
}
SAMPLED: dict[str, Callable[[Any, int], dict[str, float]]] = {
    "random layers": _random_layers,
    "extreme ratios": _extreme_ratios,
}
LEAST = (
    "without the inverse",
    "with the printed exponent",
    "distance from an exponential, zero",
    "distance from a sigmoid, large",
    "distance from a sigmoid, large negative",
    "spread of eigenvalues over their mean",
    "error as printed",
)
"""Quantities whose worst value is the smallest."""
