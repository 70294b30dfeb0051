from __future__ import annotations

import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

import reference_attention as ref
from helpers import checks
from separatrix.core import OutsideTheory
from separatrix.theory.attention import (
    consensus_cycle,
)


@checks(consensus_cycle, by="monodromy matrix over one period, integrated with the Jacobian by autodiff")
def test_floquet_exponents_of_the_consensus_cycle_are_those_of_the_monodromy_matrix() -> None:
    value = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    coupling = torch.tensor([[0.5, 0.2, 0.0], [-0.1, 0.3, 0.2], [0.4, 0.0, 0.1]], dtype=torch.float64)
    cycle = consensus_cycle(value, 4)
    assert cycle.period == pytest.approx(math.pi, abs=1e-12)
    assert cycle.exponents.tolist() == pytest.approx([0.0, *[-1.0] * 6, -1.5], abs=1e-12)
    assert cycle.stable
    flow = ref.velocity_of(ref.softmax_attention(coupling), value)
    start = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).expand(4, 3).reshape(-1).numpy()

    def extended(_t: float, state: numpy.ndarray) -> numpy.ndarray:
        x = torch.from_numpy(state[:12].copy()).reshape(4, 3)
        jacobian = ref.ambient_jacobian(flow, x).numpy()
        return numpy.concatenate([flow(x).reshape(-1).numpy(), (jacobian @ state[12:].reshape(12, 12)).ravel()])

    state = numpy.concatenate([start, numpy.eye(12).ravel()])
    end = solve_ivp(extended, (0, cycle.period), state, rtol=1e-8, atol=1e-10).y[:, -1]
    assert numpy.abs(end[:12] - start).max() < 1e-6
    basis = ref.tangent_bases(torch.from_numpy(start).reshape(4, 3)).numpy()
    monodromy = basis.T @ end[12:].reshape(12, 12) @ basis
    measured = numpy.sort(numpy.log(numpy.abs(numpy.linalg.eigvals(monodromy))) / cycle.period)
    assert measured == pytest.approx(numpy.sort(cycle.exponents.numpy()), abs=1e-4)


def test_a_real_principal_eigenvalue_has_no_cycle() -> None:
    with pytest.raises(OutsideTheory, match=r"eigenvalue 0 of value is real \(2\): use consensus_spectrum"):
        consensus_cycle(numpy.diag([2.0, 1.0]), 3)
    assert not consensus_cycle([[-1.0, 2.0], [-2.0, -1.0]], 3).stable
