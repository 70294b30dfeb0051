from __future__ import annotations

import pytest
import torch

from helpers import checks
from separatrix.core import OutsideTheory
from separatrix.matrices.ensembles import Gaussian
from separatrix.theory.free_probability import (
    iid_resolvent_density,
    iid_resolvent_moment_function,
    semicircular_resolvent,
)

POINTS = torch.tensor([3 + 2j, 0.7 + 0.01j, 5 + 0.1j], dtype=torch.complex128)


def iid_pencil(z: torch.Tensor, weight_var: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Eqs. (154)-(158) of agarwala2022: blocks 2X, -W, -W^T with X the symmetric part of W."""
    constant = torch.zeros(*z.shape, 3, 3, dtype=torch.complex128)
    constant[..., 0, 0] = z
    constant[..., 0, 1] = constant[..., 1, 0] = constant[..., 2, 2] = -1
    constant[..., 1, 1] = 1
    covariance = torch.zeros(3, 3, 3, 3, dtype=torch.float64)
    blocks = {(1, 1): "x", (1, 2): "w", (2, 1): "t"}
    values = {"xx": 2, "xw": -1, "wx": -1, "xt": -1, "tx": -1, "wt": 1, "tw": 1, "ww": 0, "tt": 0}
    for (i, k), first in blocks.items():
        for (m, j), second in blocks.items():
            covariance[i, k, m, j] = weight_var * values[first + second]
    return constant, covariance


@checks(semicircular_resolvent, by="closed form of the symmetric case")
def test_warm_up_case_has_the_documents_closed_form() -> None:
    v = 0.15
    constant = torch.zeros(3, 2, 2, dtype=torch.complex128)
    constant[:, 0, 0] = POINTS
    constant[:, 0, 1] = constant[:, 1, 0] = -1
    constant[:, 1, 1] = 1
    covariance = torch.zeros(2, 2, 2, 2, dtype=torch.float64)
    covariance[1, 1, 1, 1] = v
    moment = POINTS * semicircular_resolvent(constant, covariance)[:, 0, 0] - 1
    residual = v * POINTS**2 * moment**2 - (POINTS - 1) * moment + 1  # Eq. (138)
    torch.testing.assert_close(residual, torch.zeros_like(residual), atol=1e-9, rtol=0)


@checks(semicircular_resolvent, iid_resolvent_moment_function, by="each other, and a sampled matrix")
def test_cubic_operator_equation_and_sampled_matrix_agree(generator: torch.Generator) -> None:
    v = 0.5
    solved = POINTS * semicircular_resolvent(*iid_pencil(POINTS, v))[:, 0, 0] - 1
    cubic = iid_resolvent_moment_function(POINTS, v)
    torch.testing.assert_close(solved, cubic, atol=1e-8, rtol=0)
    system = torch.eye(500, dtype=torch.float64) - Gaussian().sample(500, v, generator=generator)
    values = torch.linalg.svdvals(system) ** -2
    sampled = (values / (POINTS[0] - values)).mean()
    torch.testing.assert_close(cubic[0], sampled, atol=0.03, rtol=0)


@checks(iid_resolvent_density, by="its first two moments")
def test_moments_of_the_cubic_are_the_resolvent_moments() -> None:
    v = 0.3
    x = torch.linspace(-3, 3.5, 800, dtype=torch.float64).exp()
    density = iid_resolvent_density(x, v)
    assert float(torch.trapezoid(density * x, x)) == pytest.approx(1 / (1 - v), rel=1e-3)
    assert float(torch.trapezoid(density * x * x, x)) == pytest.approx((1 - v) ** -4, rel=1e-3)


def test_arguments_are_checked() -> None:
    with pytest.raises(OutsideTheory, match=r"weight_var must lie in \(0, 1\)"):
        iid_resolvent_moment_function(POINTS, 1.0)
