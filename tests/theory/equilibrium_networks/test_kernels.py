from __future__ import annotations

import math

import pytest
import torch

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.core.networks.activations import find_activation
from separatrix.matrices.ensembles import GOE, AbstractEnsemble, Elliptic, Gaussian, Haar, SymmetricOrthogonal
from separatrix.theory import finite_width_tangent_kernel, kernels, readout_gradient, resolvent_moment


def equilibrium(w: torch.Tensor, x: torch.Tensor, name: str) -> torch.Tensor:
    phi, z = find_activation(name), x.clone()
    for _ in range(400):
        z = (z + phi.phi(z @ w.mT) + x) / 2
    return z


@checks(readout_gradient, finite_width_tangent_kernel, by="automatic differentiation through the iteration")
def test_gradient_and_kernel_match_automatic_differentiation(generator: torch.Generator) -> None:
    width = 7
    w = GOE().sample(width, 0.1, generator=generator).requires_grad_(True)
    x = torch.randn(2, width, generator=generator, dtype=torch.float64)
    z = equilibrium(w, x, "tanh")
    slopes = (1 - torch.tanh(z @ w.mT) ** 2).detach()
    points, total = z.detach(), torch.zeros((), dtype=torch.float64)
    for unit in range(width):  # readouts e_i / sqrt(width) average over v ~ N(0, 1 / width)
        v = torch.eye(width, dtype=torch.float64)[unit]
        grads = [torch.autograd.grad(z[k] @ v, w, retain_graph=True)[0] for k in (0, 1)]
        torch.testing.assert_close(readout_gradient(w.detach(), slopes[0], points[0], v), grads[0])
        total = total + (grads[0] * grads[1]).sum() / width
    kernel = finite_width_tangent_kernel(w.detach(), slopes[0], slopes[1], points[0], points[1])
    torch.testing.assert_close(kernel, total)


@pytest.mark.sampled(4)
@checks(kernels, by="sampled networks")
@pytest.mark.parametrize(
    ("ensemble", "name", "v"),
    [(Gaussian(), "tanh", 0.5), (GOE(), "tanh", 0.15), (Elliptic(-0.5), "hardtanh", 0.25), (Gaussian(), "relu", 0.5)],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize("correlation", [0.6, -0.4])
def test_kernels_match_sampled_networks(ensemble: AbstractEnsemble, name: str, v: float, correlation: float) -> None:
    generator = seeded(9)
    width, count = 150, 12
    w = ensemble.sample(width, v, generator=generator, batch=(count,))
    draws = torch.randn(count, 2, width, generator=generator, dtype=torch.float64)
    # orthonormal inputs, so that their correlation is exact and does not add noise
    first = draws[:, 0] / draws[:, 0].square().mean(-1, keepdim=True).sqrt()
    other = draws[:, 1] - (draws[:, 1] * first).mean(-1, keepdim=True) * first
    other = other / other.square().mean(-1, keepdim=True).sqrt()
    x = torch.stack([first, correlation * first + math.sqrt(1 - correlation**2) * other], 1)
    z = equilibrium(w, x, name)
    d = find_activation(name).dphi(z @ w.mT)
    sampled = (z[:, 0] * z[:, 1]).mean(-1), finite_width_tangent_kernel(w, d[:, 0], d[:, 1], z[:, 0], z[:, 1]) / width
    theory = kernels(ensemble, name, weight_var=v, input_var=1.0, correlation=correlation)
    for values, expected in zip(sampled, (theory.nngp, theory.ntk), strict=True):
        error = float(values.std()) / math.sqrt(count)
        assert float(values.mean()) == pytest.approx(expected, abs=4 * error + 0.03 * abs(expected) + 0.005)


@pytest.mark.parametrize(("ensemble", "v"), [(GOE(), 0.15), (Haar(), 0.5), (Elliptic(-0.5), 0.3)])
def test_linear_tangent_kernel_is_the_squared_second_moment(ensemble: AbstractEnsemble, v: float) -> None:
    result = kernels(ensemble, "linear", weight_var=v, correlation=0.3)
    assert result.ntk == pytest.approx(0.3 * resolvent_moment(ensemble, v) ** 2, rel=1e-9)
    assert result.nngp == pytest.approx(0.3 * resolvent_moment(ensemble, v), rel=1e-9)


def test_equal_inputs_give_the_diagonal() -> None:
    result = kernels(GOE(), "hardtanh", weight_var=0.2, correlation=1.0)
    assert (result.nngp, result.ntk) == pytest.approx((result.nngp_diagonal, result.ntk_diagonal), rel=1e-9)


def test_odd_activation_gives_odd_kernels() -> None:
    plus = kernels(Gaussian(), "tanh", weight_var=0.5, correlation=0.5)
    minus = kernels(Gaussian(), "tanh", weight_var=0.5, correlation=-0.5)
    assert minus.nngp == pytest.approx(-plus.nngp, rel=1e-9)


def test_refusals() -> None:
    with pytest.raises(OutsideTheory, match="weight_var must be below the critical scale"):
        kernels(GOE(), "hardtanh", weight_var=4.0)
    with pytest.raises(OutsideTheory, match="bi-invariant and Gaussian families"):
        kernels(SymmetricOrthogonal(), "tanh", weight_var=0.1)
    with pytest.raises(InvalidInput, match=r"correlation must lie in \[-1, 1\]"):
        kernels(GOE(), "tanh", weight_var=0.1, correlation=1.5)
