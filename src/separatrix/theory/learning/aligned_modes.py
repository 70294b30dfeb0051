"""Aligned networks: the weights share the task's singular vectors, so every mode learns by itself, in closed form.

One mode has an input side c and an output side d; its strength is ``a = c d`` and its balance ``d^2 - c^2`` is
conserved. The strength obeys ``tau a' = sqrt(balance^2 + 4 a^2) (s - a)`` with s the task's singular value.
Arguments broadcast.

Inputs that are not white but share the task's input vectors, ``corr_xx = V diag(delta) V'``, are covered mode by mode:
replace ``task_s`` by ``task_s / delta`` and ``tau`` by ``tau / delta``.
"""

from __future__ import annotations

import math
from typing import Any

import scipy.special
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, as_float64, formula
from separatrix.matrices import balanced_singular_values

from .balanced_modes import mode_rates


@formula("anguita2024", "Sec. 3.2, Eqs. (3.4)-(3.8)", erratum="anguita2024-3.2")
def aligned_sides(strength: Any, balance: Any) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Sides ``(c, d)`` of a mode from its strength ``c d`` and balance ``d^2 - c^2``; d is not negative."""
    a, lam = torch.broadcast_tensors(as_float64(strength, "strength"), as_float64(balance, "balance"))
    c, d = balanced_singular_values(a.abs()[..., None], lam)
    return c[..., 0] * torch.where(a < 0, -1.0, 1.0), d[..., 0]


@formula("anguita2024", "Sec. 3.2, Eqs. (3.2)-(3.5)", erratum="anguita2024-3.2")
def aligned_mode(
    t: Any, side_in: Any, side_out: Any, task_s: Any, tau: Any = 1.0
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    r"""Both sides ``(c, d)`` of an aligned mode at time t, without overflow, for any balance and sign.

    .. math:: (c, d) = \frac{(a p + b m E,\; b p - a m E)}{\sqrt{E + p^2 q + m^2 q E}}, \quad
        E = e^{-2\mu t/\tau}, \; q = \frac{1 - E}{2\mu}, \; p = c_0 a + d_0 b, \; m = c_0 b - d_0 a

    with ``(mu, a, b)`` of ``balanced_modes.mode_rates``.
    """
    t, c0, d0, s, tau = _broadcast(t=t, side_in=side_in, side_out=side_out, task_s=task_s, tau=tau)
    if bool((t < 0).any()) or bool((tau <= 0).any()) or bool((s < 0).any()):
        raise InvalidInput("t and task_s must not be negative and tau must be positive.")
    mu, mix_in, mix_out = (x[..., 0] for x in mode_rates(s[..., None], (d0 - c0) * (d0 + c0)))
    grow, decay = c0 * mix_in + d0 * mix_out, c0 * mix_out - d0 * mix_in
    x = 2 * mu * (t / tau)
    fade = torch.exp(-x)
    memory = torch.where(x < 1e-8, t / tau * (1 - x / 2), -torch.expm1(-x) / (2 * mu).clamp_min(1e-300))
    norm = (fade + grow**2 * memory + decay**2 * memory * fade).sqrt().clamp_min(1e-300)
    return (mix_in * grow + mix_out * decay * fade) / norm, (mix_out * grow - mix_in * decay * fade) / norm


@formula("anguita2024", "Theorem 3.2.1, Eq. (3.2)", erratum="anguita2024-3.2")
def aligned_strength(t: Any, strength: Any, task_s: Any, balance: Any, tau: Any = 1.0) -> Float[Tensor, "*batch"]:
    """Strength ``a(t)`` of an aligned mode from its strength at time zero, by ``aligned_mode``.

    Example:
        >>> round(float(aligned_strength(1.0, 0.1, 2.0, balance=0.5)), 6)
        1.70844
    """
    c, d = aligned_mode(t, *aligned_sides(strength, balance), task_s, tau)
    return c * d


@formula("anguita2024", "Theorem 2.2.2, Eq. (2.28)")
def zero_balanced_strength(t: Any, strength: Any, task_s: Any, tau: Any = 1.0) -> Float[Tensor, "*batch"]:
    r"""The limit of balance zero: :math:`a(t) = s / (1 + (s/a_0 - 1) e^{-2st/\tau})`.

    At s = 0 it is :math:`a_0/(1 + 2 a_0 t/\tau)`; a start at zero stays there.
    """
    t, a0, s, tau = _broadcast(t=t, strength=strength, task_s=task_s, tau=tau)
    if bool((a0 < 0).any()) or bool((s < 0).any()):
        raise OutsideTheory("strength and task_s must not be negative; aligned_strength covers a negative start.")
    x = 2 * s * t / tau
    fade = torch.exp(-x)
    memory = torch.where(x < 1e-8, t / tau * (2 - x), -torch.expm1(-x) / s.clamp_min(1e-300))
    return a0 / (fade + a0 * memory)


@formula("anguita2024", "Sec. 3.2, Eq. (3.5) inverted", erratum="anguita2024-3.2")
def time_to_reach(strength: Any, goal: Any, task_s: Any, balance: Any, tau: Any = 1.0) -> Float[Tensor, "*batch"]:
    r"""Time an aligned mode takes from one strength to another on its way to the task's singular value.

    .. math:: t = \frac{\tau\,\mathrm{sgn}\lambda}{K} \Bigl[\ln\frac{K+\lambda+2su}{K-\lambda-2su}\Bigr]_{a_0}^{a},
        \quad K = \sqrt{\lambda^2+4s^2},\; u = \frac{2a\,\mathrm{sgn}\lambda}{\sqrt{\lambda^2+4a^2}+|\lambda|}

    Raises:
        OutsideTheory: the goal does not lie between the start and the task's singular value, or balance zero with a
            start that is not positive.
    """
    a0, a, s, lam, tau = _broadcast(strength=strength, goal=goal, task_s=task_s, balance=balance, tau=tau)
    between = ((a0 <= a) & (a < s)) | ((a0 >= a) & (a > s)) | (a0 == a)
    stuck = (lam == 0) & ((a0 <= 0) | (s <= 0)) & (a0 != a)
    if not bool(between.all()) or bool(stuck.any()):
        raise OutsideTheory(
            "goal must lie between strength and task_s (not on task_s, which takes for ever), "
            "and a mode of balance zero must start above zero with a task above zero."
        )
    size = torch.hypot(lam, 2 * s)
    unbalanced = tau / size * (_entry(a, s, lam) - _entry(a0, s, lam))
    balanced = tau / (2 * s).clamp_min(1e-300) * (_logit(a, s) - _logit(a0, s))
    return torch.where(lam == 0, balanced, unbalanced)


def _entry(a: Tensor, s: Tensor, lam: Tensor) -> Tensor:
    """The bracket of ``time_to_reach`` for ``|balance|``: the path of the strength knows no sign of the balance."""
    lam = lam.abs()
    size, root = torch.hypot(lam, 2 * s), torch.hypot(lam, 2 * a)
    u = 2 * a / (root + lam).clamp_min(1e-300)
    factor = 1 + lam * (s + a) / (s * root + a * size).clamp_min(1e-300)
    close = 4 * s * lam * (s - a) * factor / ((size + lam) * (root + lam)).clamp_min(1e-300)
    gap = torch.where(a > 0, close, size - lam - 2 * s * u)  # size - lam - 2 s u, without cancellation near a = s
    return torch.log(size + lam + 2 * s * u) - torch.log(gap.abs().clamp_min(1e-300))


def _broadcast(**named: Any) -> tuple[Tensor, ...]:
    return torch.broadcast_tensors(*(as_float64(value, name) for name, value in named.items()))


def _logit(a: Tensor, s: Tensor) -> Tensor:
    return a.clamp_min(1e-300).log() - (s - a).abs().clamp_min(1e-300).log()


@formula("separatrix", "balanced chain of any depth, time to reach")
def deep_time_to_reach(strength: float, goal: float, task_s: float, depth: int, tau: float = 1.0) -> float:
    r"""Time a mode of a deep aligned network with equal layers takes from one strength to another.

    .. math:: \tau a' = L\, a^{2-2/L} (s - a), \qquad t = \frac{\tau}{L}\int_{a_0}^{a} \frac{x^{2/L-2}}{s - x}\,dx

    in closed form through the hypergeometric function; depth 2 is ``time_to_reach`` at balance zero.
    """
    if not 0 < strength <= goal < task_s or depth < 1:
        raise OutsideTheory(
            "deep_time_to_reach needs 0 < strength <= goal < task_s and depth >= 1; "
            f"got {strength}, {goal}, {task_s} and depth {depth}."
        )
    if depth == 2:
        return tau / (2 * task_s) * (math.log(goal / (task_s - goal)) - math.log(strength / (task_s - strength)))
    power = 2 / depth - 1
    ends = [
        x**power / (power * task_s) * float(scipy.special.hyp2f1(1, power, power + 1, x / task_s))
        for x in (strength, goal)
    ]
    return tau / depth * (ends[1] - ends[0])


@formula("anguita2024", "Theorem 2.2.3 (white inputs); any inputs ours")
def shallow_product(
    t: Any, weight: Any, corr_yx: Any, corr_xx: Any | None = None, tau: float = 1.0
) -> Float[Tensor, "*lead o i"]:
    r"""One layer, any inputs: :math:`\tau W' = \Sigma - W \Sigma_{xx}` solved in the eigenvectors of ``corr_xx``.

    The lazy yardstick: no depth, no interaction of modes. Singular ``corr_xx`` is allowed.
    """
    times = as_float64(t, "t")
    w, corr = as_float64(weight, "weight"), as_float64(corr_yx, "corr_yx")
    identity = torch.eye(w.shape[-1], dtype=torch.float64)
    delta, basis = torch.linalg.eigh(identity if corr_xx is None else as_float64(corr_xx, "corr_xx"))
    elapsed = (times / tau).reshape(*times.shape, *(1,) * w.ndim)
    x = delta.clamp_min(0.0) * elapsed
    integral = torch.where(x < 1e-8, elapsed * (1 - x / 2), -torch.expm1(-x) / delta.clamp_min(1e-300))
    return ((w @ basis) * torch.exp(-x) + (corr @ basis) * integral) @ basis.mT
