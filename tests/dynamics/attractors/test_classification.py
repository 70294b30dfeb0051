from __future__ import annotations

import collections
import math

import pytest
import torch

from attention_cases import clustering_flow, gaussian_flow
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import AttentionFlow, OjaFlow, Tolerances, classify, integrate, normalise, random_tokens
from stranger_flows import Lorenz, LotkaVolterra, Ring


def diagonal(*values: float) -> torch.Tensor:
    return torch.diag(torch.tensor(values, dtype=torch.float64))


def test_ends_of_the_known_case_have_the_known_classes(generator: torch.Generator) -> None:
    flow = clustering_flow()
    run = integrate(flow, random_tokens(10, 3, 200, generator=generator))
    labels = collections.Counter(end.coarse_label for end in classify(flow, run.final))
    assert set(labels) == {
        "consensus v1",
        "bipartite v1 (4, 6)",
        "bipartite v1 (3, 7)",
        "bipartite v1 (5, 5)",
        "2-clustering (2, 8)",
    }
    # 197 of 400 in an independent run; four standard errors of a proportion near one half from 200 starts.
    assert 0.35 < labels["consensus v1"] / 200 < 0.63


def test_consensus_carries_eigenvector_sign_and_index() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), diagonal(3, 1, -2))
    x = torch.eye(3).double()[:, None, :].expand(3, 4, 3) * torch.tensor([1.0, -1.0, 1.0]).double()[:, None, None]
    first, second, third = classify(flow, x)
    assert (first.kind, first.eigenvector, first.sign, first.stable, first.index) == ("consensus", 0, 1, True, 0)
    assert (second.eigenvector, second.sign, second.stable, second.index) == (1, -1, False, 1)
    assert third.index == 2 + 3 * 2  # two faster eigenvectors, and lambda < 0 lets all tokens part


def test_equal_tokens_off_the_eigenvectors_are_not_a_clustering() -> None:
    # Tokens merge early and creep along the Oja flow: no equilibrium, however slow.
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), diagonal(1, 0.5))
    end = classify(flow, torch.tensor([[0.8, 0.6]]).double().expand(5, 2))[0]
    assert end.kind == "not converged"
    assert not end.stable
    assert math.isnan(end.quotient_abscissa)


def test_creeping_states_are_slow() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), diagonal(1, 0.9999))
    end = classify(flow, torch.tensor([[0.8, 0.6]]).double().expand(5, 2))[0]
    assert end.kind == "slow"


def test_repeated_eigenvalues_give_an_eigenspace() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), diagonal(2, 2, -1))
    end = classify(flow, torch.tensor([[0.6, 0.8, 0.0]]).double().expand(4, 3))[0]
    assert (end.kind, end.eigenvector, end.eigenspace) == ("consensus", None, (0, 1))
    assert end.marginal


def test_polygonal_states_of_the_oja_flow_are_recognised() -> None:
    angles = torch.arange(3).double() * 2 * math.pi / 3 + 1e-9 * torch.tensor([0.0, 1.0, -2.0])
    x = torch.stack([angles.cos(), angles.sin(), torch.zeros(3)], dim=-1)
    end = classify(OjaFlow(diagonal(1.0, 0.4, -1.0)), normalise(x))[0]
    assert end.kind == "polygonal"
    assert not end.stable


def test_bipartite_states_know_their_sizes_and_partition() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), diagonal(2, 0.5), beta=2.0)
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0]).double()
    end = classify(flow, signs[:, None] * torch.tensor([1.0, 0.0]).double())[0]
    assert (end.kind, end.eigenvector, end.sizes, end.stable) == ("bipartite", 0, (3, 2), True)
    assert end.fine_label == "bipartite v1 01100"
    assert end.fine_label == classify(flow, -signs[:, None] * torch.tensor([1.0, 0.0]).double())[0].fine_label


def test_masked_flows_are_certified_by_all_tokens(generator: torch.Generator) -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), diagonal(2, 0.5, -1), mask="causal")
    run = integrate(flow, random_tokens(5, 3, 6, generator=generator))
    ends = classify(flow, run.final)
    dense = torch.linalg.eigvals(flow.jacobian(run.final)).real.amax(dim=-1)
    assert [end.quotient_abscissa for end in ends] == pytest.approx(dense.tolist(), abs=1e-7)


def test_multi_head_consensus_lies_on_eigenvectors_of_the_sum(generator: torch.Generator) -> None:
    couplings = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    values = torch.stack([diagonal(1, 2, -1), diagonal(2, -1, 0.5)])
    end = classify(AttentionFlow.from_coupling(couplings, values, heads=True), torch.eye(3).double()[:1].expand(4, 3))[
        0
    ]
    assert (end.kind, end.eigenvector, end.stable) == ("consensus", 0, True)


def test_every_end_point_of_random_instances_is_certified(generator: torch.Generator) -> None:
    flow = gaussian_flow(3, generator, 12, 1)
    run = integrate(flow, random_tokens(10, 3, 12, 8, generator=generator))
    ends = classify(flow, run.final)
    certified = [end for end in ends if end.is_equilibrium]
    assert len(certified) >= 90
    assert all(end.stable or end.marginal for end in certified)
    assert not any(end.coarse_label.startswith("1-clustering") for end in ends)


def test_tolerances_are_parameters() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), diagonal(2, 0.5))
    x = normalise(torch.tensor([[1.0, 0.0], [1.0, 0.01]]).double())
    assert len(classify(flow, x)[0].sizes) == 2
    assert classify(flow, x, tolerances=Tolerances(distance=0.1))[0].kind == "consensus"


def test_bad_states_are_refused() -> None:
    with pytest.raises(ShapeError, match="states must have tokens of dimension 3"):
        classify(clustering_flow(), torch.eye(2))
    with pytest.raises(InvalidInput, match="states must be unit vectors"):
        classify(clustering_flow(), 2 * torch.eye(3))


@pytest.mark.parametrize("n_starts", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_an_arbitrary_state_of_a_chaotic_flow_is_on_no_cycle(n_starts: int, generator: torch.Generator) -> None:
    # Unstable orbits are dense in the attractor: one of them always passes somewhere near.
    starts = torch.randn(n_starts, 1, 3, generator=generator, dtype=torch.float64) * 8 + torch.tensor([0.0, 0.0, 25.0])
    on_attractor = integrate(Lorenz(), starts, t_max=10.0).final
    assert {end.kind for end in classify(Lorenz(), on_attractor)} == {"not converged"}


@pytest.mark.slow
def test_states_off_the_chaotic_attractor_are_on_no_cycle_either(generator: torch.Generator) -> None:
    starts = torch.randn(2, 1, 3, generator=generator, dtype=torch.float64) * 8 + torch.tensor([0.0, 0.0, 25.0])
    on_attractor = integrate(Lorenz(), starts, t_max=20.0).final
    assert {end.kind for end in classify(Lorenz(), torch.cat([starts, on_attractor]))} == {"not converged"}


def test_a_state_on_an_unstable_orbit_is_on_its_cycle() -> None:
    # The shortest orbit of the Lorenz flow, x y after Viswanath (2003), z = 27; period 1.5586.
    x = torch.tensor([[-13.763610682134201, -19.578751942451796, 27.0]], dtype=torch.float64)
    end = classify(Lorenz(), x)[0]
    assert (end.kind, end.stable, end.index) == ("cycle", False, 1)
    assert end.period == pytest.approx(1.5586522107162, rel=1e-6)


@pytest.mark.slow
def test_neutral_orbits_and_states_beside_a_stable_cycle_are_cycles() -> None:
    neutral = classify(LotkaVolterra(), torch.tensor([[1.0, 1.7]]).double())[0]
    assert (neutral.kind, neutral.stable, neutral.marginal) == ("cycle", False, True)
    # The period of the orbit through this point by scipy's DOP853 at 1e-13 (crossings of x = 1 upwards).
    assert neutral.period == pytest.approx(6.461778163, rel=1e-6)
    near, far = classify(Ring(twist=1.0), torch.tensor([[[1.02, 0.0]], [[2.5, 0.0]]]).double())
    assert (near.kind, near.stable) == ("cycle", True)
    assert near.period == pytest.approx(2 * math.pi, rel=1e-8)
    assert far.kind == "not converged"


@pytest.mark.parametrize("speed", [pytest.param(3e-3, marks=pytest.mark.slow), 1e-4])
def test_slow_cycles_are_cycles_to_integration_and_classification_alike(
    speed: float, generator: torch.Generator
) -> None:
    value = torch.tensor([[1.0, speed, 0.3], [-speed, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    run = integrate(flow, random_tokens(4, 3, 1, generator=generator))
    for place, end in enumerate(classify(flow, run.final)):
        assert (end.kind, end.stable) == ("cycle", True)
        assert end.period == pytest.approx(float(run.period[place]), rel=1e-6)


def test_a_state_on_a_continuum_of_equilibria_stays_where_it_is(generator: torch.Generator) -> None:
    # every point of the sphere rests: Newton's method divided rounding by rounding and moved by up to 0.2
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), torch.eye(3).double())
    states = random_tokens(1, 3, 200, generator=generator).expand(200, 5, 3)
    ends = classify(flow, states)
    assert {(end.kind, end.marginal) for end in ends} == {("consensus", True)}
    assert max(end.displacement for end in ends) < 1e-9


class Holed(Ring):
    """Its derivative is nowhere defined left of zero, and its velocity right of three."""

    def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return torch.where(x[..., :1] > 3, torch.nan, super().velocity(x))

    def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return torch.where(x[..., :1] < 0, torch.nan, super().jvp(x, u))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_state_that_is_not_finite_leaves_the_others_alone(bad: float, generator: torch.Generator) -> None:
    value = torch.stack([diagonal(3, 1, -2), diagonal(1, 2, 5), diagonal(2, 1, 1)])
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    x = integrate(flow, random_tokens(4, 3, 3, generator=generator)).final
    whole = classify(flow, x)
    x[1, 2, 0] = bad
    first, lost, last = classify(flow, x)
    assert (lost.kind, lost.stable, lost.index) == ("not converged", False, None)
    assert math.isnan(lost.residual)
    for one, same in ((first, whole[0]), (last, whole[2])):
        assert one.fine_label == same.fine_label
        assert one.quotient_abscissa == same.quotient_abscissa


def test_a_flow_that_is_not_finite_at_one_state_leaves_the_others_alone() -> None:
    x = torch.tensor([[[0.6, 0.8]], [[-0.6, 0.8]], [[4.0, 0.0]], [[math.nan, 1.0]]], dtype=torch.float64)
    resting, undefined, lost, absent = classify(Holed(), x)
    assert resting.kind == "equilibrium"
    assert {undefined.kind, lost.kind, absent.kind} == {"not converged"}
    assert math.isnan(lost.residual)


def test_without_values_every_state_rests_and_is_polygonal() -> None:
    # V = 0: all multipliers vanish, which is what a polygonal equilibrium is (altafini2025, Lemma 6).
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), diagonal(0, 0, 0))
    states = torch.eye(3).double()[torch.tensor([[0, 0, 0], [0, 1, 1], [0, 1, 2]])]
    assert [end.kind for end in classify(flow, states)] == ["consensus", "polygonal", "polygonal"]
    assert all(end.marginal for end in classify(flow, states))


@pytest.mark.parametrize("scale", [1e-200, 1e-130, 1e130, 1e200])
def test_values_that_cannot_be_squared_are_refused(scale: float) -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), scale * diagonal(3, 1, -2))
    for call in (classify, integrate):
        with pytest.raises(InvalidInput, match=r"value matrices of flow must be zero, or of norm 1e-100 to 1e\+100"):
            call(flow, torch.eye(3).double()[None])
