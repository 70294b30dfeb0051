"""Promises that every flow on the sphere keeps. A new flow adds one line to FLOWS."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from separatrix.dynamics import (
    AbstractSphereFlow,
    AttentionFlow,
    OjaFlow,
    Softmax,
    classify,
    find_equilibria,
    integrate,
    random_tokens,
    tangent_basis,
)
from separatrix.dynamics.flows.masks import MASKS
from stranger_flows import CubicMean, Tempered

DIM, N_TOKENS = 4, 5


def matrices(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, DIM, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mask() -> Tensor:
    open_ = torch.rand(N_TOKENS, N_TOKENS, generator=torch.Generator().manual_seed(5)) < 0.5
    return open_ | torch.eye(N_TOKENS, dtype=torch.bool)


def bias() -> Tensor:
    return torch.randn(N_TOKENS, N_TOKENS, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


SIZES = torch.tensor([3.0, 1.0, 2.5, 1.0, 7.0], dtype=torch.float64)
M = 0.5 * matrices(seed=1)
V = torch.linalg.solve(matrices(seed=2), torch.diag(torch.tensor([2.0, 0.5, -0.4, -1.5]).double()) @ matrices(seed=2))
VALUES = torch.stack([V, V + 0.5 * V @ V, 0.3 * V])  # not symmetric, with common real eigenvectors

FLOWS: dict[str, Callable[[], AbstractSphereFlow]] = {
    "softmax": lambda: AttentionFlow.from_coupling(M, V, 1.3),
    "query and key": lambda: AttentionFlow(query=M[:2], key=V[:2], value=V + 2 * V @ V),
    "heads": lambda: AttentionFlow.from_coupling(matrices(3, seed=3), VALUES, 0.7, heads=True),
    "mask": lambda: AttentionFlow.from_coupling(M, V, mask=mask()),
    "position bias": lambda: AttentionFlow.from_coupling(M, V, bias=bias()),
    "affine": lambda: AttentionFlow(query=M, key=M.mT, value=V, query_bias=V[0], value_bias=M[0]),
    "uniform": lambda: AttentionFlow.from_coupling(M, V, normalisation="uniform"),
    "sinkhorn": lambda: AttentionFlow.from_coupling(M, V, normalisation="sinkhorn"),
    "sizes": lambda: AttentionFlow.from_coupling(M, V, sizes=SIZES),
    "sinkhorn sizes": lambda: AttentionFlow.from_coupling(M, V, normalisation="sinkhorn", sizes=SIZES),
    "sinkhorn heads": lambda: AttentionFlow.from_coupling(
        0.4 * matrices(2, seed=3), VALUES[:2], heads=True, normalisation="sinkhorn", sizes=SIZES
    ),
    "normalisation object": lambda: AttentionFlow.from_coupling(M, V, normalisation=Softmax()),
    "stranger's normalisation": lambda: AttentionFlow.from_coupling(M, V, normalisation=Tempered()),
    "stranger's": lambda: CubicMean(V),
    "stranger's sizes": lambda: CubicMean(V, SIZES),
    "oja": lambda: OjaFlow(V),
    "oja sizes": lambda: OjaFlow(V, SIZES),
    **{f"{name} mask": functools.partial(AttentionFlow.from_coupling, M, V, mask=name) for name in MASKS},
}


pytestmark = pytest.mark.sampled(4, across="flow")


@pytest.fixture(params=FLOWS, ids=list(FLOWS))
def flow(request: pytest.FixtureRequest) -> AbstractSphereFlow:
    return FLOWS[request.param]()


@pytest.fixture
def state(generator: torch.Generator) -> Tensor:
    return random_tokens(N_TOKENS, DIM, 3, generator=generator)


def test_velocity_is_tangent(flow: AbstractSphereFlow, state: Tensor) -> None:
    assert (flow.velocity(state) * state).sum(-1).abs().max() < 1e-13


def test_projection_is_idempotent(flow: AbstractSphereFlow, state: Tensor) -> None:
    once = flow.project(3 * state + 0.1)
    torch.testing.assert_close(flow.project(once), once, rtol=0, atol=1e-15)


def test_dense_jacobian_agrees_with_automatic_differentiation(flow: AbstractSphereFlow, state: Tensor) -> None:
    if "sinkhorn" in getattr(flow, "normalisation", object()).__class__.__name__.lower():
        pytest.skip("the Sinkhorn loop is differentiated implicitly; central differences check it below")
    x = state[0]
    automatic = torch.autograd.functional.jacobian(lambda y: flow.velocity(y), x)
    torch.testing.assert_close(flow.ambient_jacobian(x), automatic, rtol=0, atol=1e-12)


def test_jvp_agrees_with_central_differences(flow: AbstractSphereFlow, state: Tensor) -> None:
    u = torch.randn(state.shape, generator=torch.Generator().manual_seed(9), dtype=state.dtype)
    h = 1e-4
    # Richardson extrapolation of central differences: truncation h^4, rounding 1e-16 / h times the Sinkhorn error.
    coarse = (flow.velocity(state + 2 * h * u) - flow.velocity(state - 2 * h * u)) / (4 * h)
    fine = (flow.velocity(state + h * u) - flow.velocity(state - h * u)) / (2 * h)
    torch.testing.assert_close(flow.jvp(state, u), (4 * fine - coarse) / 3, rtol=1e-5, atol=1e-5)


def test_dense_jacobian_agrees_with_jvp_in_both_spaces(flow: AbstractSphereFlow, state: Tensor) -> None:
    x, basis = state, tangent_basis(state)
    c = torch.randn(*x.shape[:-1], DIM - 1, generator=torch.Generator().manual_seed(8), dtype=x.dtype)
    u = (basis @ c.unsqueeze(-1)).squeeze(-1)
    along = flow.jvp(x, u)
    ambient = (flow.jacobian(x, "ambient") @ u.flatten(-2).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(ambient.reshape(x.shape), along, rtol=0, atol=1e-12)
    inside = (basis.mT @ along.unsqueeze(-1)).flatten(-3)
    tangent = (flow.jacobian(x) @ c.flatten(-2).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(tangent, inside, rtol=0, atol=1e-12)


def test_batches_are_independent(flow: AbstractSphereFlow, state: Tensor) -> None:
    alone = torch.stack([flow.velocity(x) for x in state])
    torch.testing.assert_close(flow.velocity(state), alone, rtol=0, atol=1e-14)


def test_selected_elements_keep_their_flow(flow: AbstractSphereFlow, state: Tensor) -> None:
    index = torch.tensor([2, 0])
    chosen = flow.select((3,), index).velocity(state[index])
    torch.testing.assert_close(chosen, flow.velocity(state)[index], rtol=0, atol=1e-14)


def test_precision_changes_only_rounding(flow: AbstractSphereFlow, state: Tensor) -> None:
    single = flow.to(torch.float32).velocity(state.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), flow.velocity(state), rtol=0, atol=2e-4)


def test_consensus_on_an_eigenvector_is_an_equilibrium(flow: AbstractSphereFlow) -> None:
    if isinstance(flow, AttentionFlow) and flow.weights.value_bias is not None:
        pytest.skip("a constant pull moves the consensus points off the eigenvectors")
    values, vectors = torch.linalg.eig(flow.value_sum)
    principal = vectors[:, values.real.argmax()].real  # real, unless the flow has a complex value matrix by design
    x = flow.project(principal.expand(N_TOKENS, DIM))
    assert flow.velocity(x).abs().max() < 1e-9


@pytest.mark.sampled(8)
def test_trajectories_end_and_their_ends_are_certified(flow: AbstractSphereFlow, state: Tensor) -> None:
    run = integrate(flow, state)
    assert run.ok
    ends = classify(flow, run.final)
    assert all(end.stable or end.marginal for end in ends)


@pytest.mark.sampled(6)
def test_equilibria_are_found(flow: AbstractSphereFlow, generator: torch.Generator) -> None:
    if not flow.reducible:
        pytest.skip("a mask or bias tells tokens at one place apart")
    found = find_equilibria(flow, 5, generator=generator, sizes=[(5,)], n_random=8, rounds=2)
    assert found
    point = torch.stack([item.clusters.expand(5, DIM) for item in found])
    assert flow.with_sizes(None).residual(point).max() < 1e-10


def test_antipodal_states_move_antipodally(flow: AbstractSphereFlow, state: Tensor) -> None:
    if isinstance(flow, AttentionFlow) and flow.weights.value_bias is not None:
        pytest.skip("biases of the projections break the antipodal symmetry")
    torch.testing.assert_close(flow.velocity(-state), -flow.velocity(state), rtol=0, atol=1e-13)


def test_clusters_with_sizes_move_like_the_tokens_they_stand_for(flow: AbstractSphereFlow, state: Tensor) -> None:
    if not flow.reducible:
        pytest.skip("a mask or bias tells tokens at one place apart")
    sizes = torch.tensor([2, 1, 3])
    w = state[0, :3]
    full = flow.with_sizes(None).velocity(w.repeat_interleave(sizes, dim=0))
    reduced = flow.with_sizes(sizes.double()).velocity(w)
    torch.testing.assert_close(reduced.repeat_interleave(sizes, dim=0), full, rtol=0, atol=1e-9)
