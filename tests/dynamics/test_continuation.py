from __future__ import annotations

import math

import pytest
import torch

from attention_cases import CLUSTERING_POINT, clustering_flow
from separatrix.core import InvalidInput
from separatrix.dynamics import AttentionFlow, beta_branch, follow, fraction_branch, normalise

V = torch.diag(torch.tensor([3.0, 1.0, -4.0]).double())
M = torch.diag(torch.tensor([0.9, 0.2, -1.1]).double())


def pair(k: int) -> torch.Tensor:
    v = torch.eye(3, dtype=torch.float64)[k]
    return torch.stack([v, -v])


def test_balanced_pairs_become_stable_at_the_critical_inverse_temperature() -> None:
    # tanh |c| = rho at beta_c = artanh(rho) / |v' M v|: 0.385082 on v_1 and 0.884505 on v_3.
    for k, expected in ((0, math.atanh(1 / 3) / 0.9), (2, math.atanh(3 / 4) / 1.1)):
        branch = beta_branch(AttentionFlow.from_coupling(M, V), pair(k), (50, 50), torch.linspace(0.2, 1.5, 27))
        events = [event for event in branch.events if event.kind == "quotient"]
        assert len(events) == 1
        assert events[0].parameter == pytest.approx(expected, abs=1e-8)
        assert events[0].stable_after
        assert bool(branch.stable[-1])
        assert not bool(branch.stable[0])


def test_bipartite_states_lose_stability_at_the_edge_of_their_window() -> None:
    branch = fraction_branch(AttentionFlow.from_coupling(M, V), pair(0), torch.linspace(0.5, 0.9, 41))
    edge = 1 / (1 + math.exp(-1.387226))  # h* of the stable window on v_1
    event = next(event for event in branch.events if event.kind == "quotient")
    assert event.parameter == pytest.approx(edge, abs=1e-5)


def test_a_clustering_is_followed_through_the_shares_of_its_tokens() -> None:
    branch = fraction_branch(clustering_flow(), normalise(CLUSTERING_POINT), torch.linspace(0.8, 0.84, 5))
    assert len(branch.parameters) == 5
    assert bool(branch.stable.all())
    assert (branch.points[1:] - branch.points[:-1]).abs().max() < 0.2


def test_a_branch_ends_where_its_equilibrium_disappears() -> None:
    # Towards equal shares the clustering meets another one in a fold, or joins the antipodal pair.
    branch = fraction_branch(clustering_flow(), normalise(CLUSTERING_POINT), torch.linspace(0.8, 0.98, 91))
    assert any(event.kind == "end" for event in branch.events) or len(branch.parameters) == 91
    assert all(0.8 <= event.parameter <= 0.98 for event in branch.events)


def test_starts_away_from_equilibria_and_bad_parameters_are_refused() -> None:
    flow = clustering_flow()
    with pytest.raises(InvalidInput, match="w must be near an equilibrium at the first parameter 1"):
        follow(lambda _: (flow, torch.ones(3).double()), torch.eye(3), [1.0, 2.0])
    with pytest.raises(InvalidInput, match="betas must be positive"):
        beta_branch(flow, pair(0), (1, 1), [0.0, 1.0])
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        fraction_branch(flow, pair(0), [0.5, 1.0])
