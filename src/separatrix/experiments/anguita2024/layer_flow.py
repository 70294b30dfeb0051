"""Gradient flow of two layers by a general integrator: the independent route of experiments on anguita2024."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def gaussian(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal entries in double precision."""
    import torch

    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def follow(w1: Tensor, w2: Tensor, corr_yx: Tensor, t: float) -> tuple[Tensor, Tensor]:
    """Both layers at time t under w1' = w2' (S - w2 w1), w2' = (S - w2 w1) w1', inputs white."""
    import numpy
    import torch
    from scipy.integrate import solve_ivp

    first, second, task = (matrix.numpy() for matrix in (w1, w2, corr_yx))

    def speed(_: float, flat: Any) -> Any:
        a, b = flat[: first.size].reshape(first.shape), flat[first.size :].reshape(second.shape)
        left = task - b @ a
        return numpy.concatenate([(b.T @ left).reshape(-1), (left @ a.T).reshape(-1)])

    start = numpy.concatenate([first.reshape(-1), second.reshape(-1)])
    end = solve_ivp(speed, (0, t), start, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return (
        torch.as_tensor(end[: first.size].reshape(first.shape)),
        torch.as_tensor(end[first.size :].reshape(second.shape)),
    )
