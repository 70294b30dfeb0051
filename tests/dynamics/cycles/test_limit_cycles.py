from __future__ import annotations

import math

import pytest
import torch

from attention_cases import clustering_flow
from separatrix.core import Outcome
from separatrix.dynamics import (
    AttentionFlow,
    classify,
    find_periods,
    flow_map,
    integrate,
    limit_cycle,
    lyapunov_exponents,
    random_tokens,
)

ROTATING = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)


def rotating_flow() -> AttentionFlow:
    """Principal pair 1 +- 2i: all tokens merge and rotate in its plane with period pi."""
    return AttentionFlow.from_coupling(torch.eye(3).double(), ROTATING)


@pytest.fixture
def orbit(generator: torch.Generator) -> torch.Tensor:
    return integrate(rotating_flow(), random_tokens(4, 3, generator=generator), t_max=30.0).final


def test_floquet_exponents_of_the_consensus_cycle_are_differences_of_eigenvalues(orbit: torch.Tensor) -> None:
    cycle = limit_cycle(rotating_flow(), orbit)
    assert cycle.outcome == Outcome.CYCLE
    assert cycle.period == pytest.approx(math.pi, abs=1e-8)
    assert cycle.exponents.tolist() == pytest.approx([0.0, *[-1.0] * 6, -1.5], abs=1e-6)
    assert cycle.stable


def test_a_rotating_state_is_classified_as_a_cycle_with_its_period(orbit: torch.Tensor) -> None:
    end = classify(rotating_flow(), orbit)[0]
    assert end.kind == "cycle"
    assert end.period == pytest.approx(math.pi, rel=1e-9)
    assert end.stable
    assert end.index == 0
    assert end.quotient_abscissa == pytest.approx(-1.5, abs=1e-6)
    assert end.transversal_abscissa == pytest.approx(-1.0, abs=1e-6)
    assert end.floquet is not None
    assert end.floquet.abs().tolist() == pytest.approx(
        [1.0, *[math.exp(-math.pi)] * 6, math.exp(-1.5 * math.pi)], abs=1e-6
    )


def test_an_unstable_cycle_is_a_cycle_that_is_not_stable() -> None:
    # Two tokens on the orbit of the pair that is not principal: perturbations towards the third axis grow.
    value = torch.tensor([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    end = classify(flow, torch.tensor([[1.0, 0.0, 0.0]] * 2).double())[0]
    assert (end.kind, end.stable) == ("cycle", False)
    assert end.index == 1
    assert end.quotient_abscissa == pytest.approx(1.0, abs=1e-6)


def test_equilibria_and_transients_are_not_cycles(generator: torch.Generator) -> None:
    x = random_tokens(4, 3, 2, generator=generator)
    assert bool(find_periods(clustering_flow(), x).isnan().all())


def test_without_a_cycle_the_lyapunov_exponent_is_reported(generator: torch.Generator) -> None:
    end = limit_cycle(clustering_flow(), random_tokens(2, 3, generator=generator))
    assert end.outcome == Outcome.OUT_OF_STEPS
    assert math.isnan(end.period)
    assert end.lyapunov < 0  # the motion contracts to an equilibrium


def test_flow_map_derivative_agrees_with_differences(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(3, 3, generator=generator)
    _, derivative = flow_map(flow, x, 0.7)
    u = flow.velocity(x) * 1e-5
    ahead, behind = flow_map(flow, x + u, 0.7)[0], flow_map(flow, x - u, 0.7)[0]
    torch.testing.assert_close(derivative @ u.flatten(), ((ahead - behind) / 2).flatten(), rtol=1e-4, atol=1e-12)


def test_lyapunov_exponents_at_rest_are_the_tangent_eigenvalues() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), torch.diag(torch.tensor([2.0, 0.5]).double()))
    x = torch.tensor([[1.0, 0.0]] * 3).double()
    expected = torch.linalg.eigvals(flow.jacobian(x)).real.sort(descending=True).values
    torch.testing.assert_close(lyapunov_exponents(flow, x, n_exponents=3, duration=10.0), expected, rtol=0, atol=0.15)
