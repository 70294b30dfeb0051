from __future__ import annotations

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

import reference_attention as ref
from helpers import checks
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.theory import oja_bipartite_spectrum, oja_lyapunov, oja_lyapunov_rate, oja_polygonal_spectrum


@checks(oja_bipartite_spectrum, by="autodiff tangent Jacobian of the flow with uniform weights")
def test_oja_spectra_are_those_of_the_dense_jacobian(generator: torch.Generator) -> None:
    for index in range(30):
        value = ref.random_value(2 + index % 3, generator, symmetric=index % 2 == 0)
        real = ref.real_eigenvectors(value)
        if not real:
            continue
        k, n1, n2 = real[index % len(real)], 1 + index % 4, index % 3
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        dense = ref.tangent_spectrum(ref.velocity_of(ref.uniform_attention, value), ref.pattern(value, k, signs))
        # equal groups make defective blocks, which the dense route resolves to the square root of rounding
        assert ref.spectral_distance(oja_bipartite_spectrum(value, k, n1, n2).expand(), dense) < 1e-6


def test_unequal_groups_are_unstable_and_equal_ones_need_not_be() -> None:
    value = numpy.diag([1.0, -1.0, -2.0])
    for k in range(3):
        for n1, n2 in ((1, 2), (3, 1), (4, 2), (5, 6)):
            assert oja_bipartite_spectrum(value, k, n1, n2).abscissa > 0
    balanced = oja_bipartite_spectrum(value, 0, 3, 3)
    assert balanced.marginal is True
    assert sorted(set(balanced.expand().real.round(decimals=9).tolist())) == [-2.0, -1.0, 0.0]


@checks(oja_polygonal_spectrum, by="autodiff tangent Jacobian at a centred configuration")
def test_polygonal_spectrum_is_that_of_the_dense_jacobian(generator: torch.Generator) -> None:
    for symmetric in (True, False):
        value = ref.random_value(3, generator, symmetric=symmetric)
        x = torch.randn(5, 3, dtype=torch.float64, generator=generator)
        for _ in range(3000):
            x = torch.nn.functional.normalize(x - x.mean(0), dim=-1)
        dense = ref.tangent_spectrum(ref.velocity_of(ref.uniform_attention, value), x)
        spectrum = oja_polygonal_spectrum(value, x)
        # seven zeros form Jordan-like blocks in rounding: the square root of 1e-15
        assert ref.spectral_distance(spectrum.expand(), dense) < 1e-6
        assert spectrum.expand().shape == (10,)
    with pytest.raises(OutsideTheory, match="V times the mean token must vanish"):
        oja_polygonal_spectrum(numpy.eye(3), numpy.eye(3))


@checks(oja_lyapunov, oja_lyapunov_rate, by="integration of the flow and finite differences along it")
def test_lyapunov_function_falls_along_the_flow_at_the_stated_rate(generator: torch.Generator) -> None:
    value = ref.random_value(3, generator, symmetric=True)
    flow = ref.velocity_of(ref.uniform_attention, value)
    x0 = torch.nn.functional.normalize(torch.randn(4, 3, dtype=torch.float64, generator=generator), dim=-1)

    def right_side(_t: float, y: numpy.ndarray) -> numpy.ndarray:
        return flow(torch.from_numpy(y.copy()).reshape(4, 3)).reshape(-1).numpy()

    times = numpy.linspace(0, 4, 401)
    path = solve_ivp(right_side, (0, 4), x0.reshape(-1).numpy(), t_eval=times, rtol=1e-10, atol=1e-12).y.T
    states = torch.nn.functional.normalize(torch.from_numpy(path.copy()).reshape(-1, 4, 3), dim=-1)
    level, rate = oja_lyapunov(value, states), oja_lyapunov_rate(value, states)
    assert bool((level.diff() <= 1e-12).all())
    assert float(level.min()) >= 0
    slope = (level[2:] - level[:-2]) / (times[2] - times[0])
    assert float((slope - rate[1:-1]).abs().max()) < 1e-3 * float(rate.abs().max())  # central differences, dt = 0.01


def test_bad_tokens_of_the_oja_flow_are_named() -> None:
    with pytest.raises(InvalidInput, match="norm of token 1 is off by 1"):
        oja_lyapunov(numpy.eye(2), [[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(OutsideTheory, match="value must be symmetric for this formula"):
        oja_lyapunov([[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]])
