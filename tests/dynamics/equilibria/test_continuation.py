from __future__ import annotations

import math

import pytest
import torch

from attention_cases import CLUSTERING_POINT, clustering_flow
from separatrix.core import InvalidInput
from separatrix.dynamics import AttentionFlow, beta_branch, follow, fraction_branch, normalise

V = torch.diag(torch.tensor([3.0, 1.0, -4.0]).double())
M = torch.diag(torch.tensor([0.9, 0.2, -1.1], dtype=torch.float64))


def pair(k: int) -> torch.Tensor:
    v = torch.eye(3, dtype=torch.float64)[k]
    return torch.stack([v, -v])


def test_balanced_pairs_become_stable_at_the_critical_inverse_temperature() -> None:
    # tanh |c| = rho at beta_c = artanh(rho) / |v' M v|: 0.385082 on v_1 and 0.884505 on v_3.
    for k, expected in ((0, math.atanh(1 / 3) / 0.9), (2, math.atanh(3 / 4) / 1.1)):
        branch = beta_branch(AttentionFlow.from_coupling(M, V), pair(k), (50, 50), torch.linspace(0.2, 1.5, 27))
        events = [event for event in branch.events if event.kind == "quotient"]
        assert len(events) == 1
        assert events[0].parameter == pytest.approx(expected, abs=1e-7)
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
    # With a share of about 0.86 the clustering meets another one in a fold: an eigenvalue tends to zero there.
    branch = fraction_branch(clustering_flow(), normalise(CLUSTERING_POINT), [0.8, 0.85, 0.8595, 0.8598, 0.9])
    (event,) = branch.events
    assert event.kind == "end"
    assert event.parameter == pytest.approx(0.85982, abs=1e-4)
    assert len(branch.parameters) == 4
    # The square of the eigenvalue falls linearly in the distance to the fold.
    distance = event.parameter - branch.parameters[2:]
    law = branch.quotient_abscissa[2:].square() / distance
    assert float(law[0] / law[1]) == pytest.approx(1.0, abs=0.1)


def test_towards_equal_shares_the_clustering_joins_the_antipodal_pair() -> None:
    branch = fraction_branch(clustering_flow(), normalise(CLUSTERING_POINT), torch.linspace(0.8, 0.5, 7))
    torch.testing.assert_close(branch.points[-1, 0], -branch.points[-1, 1], rtol=0, atol=1e-9)
    assert (branch.points[0, 0] + branch.points[0, 1]).abs().max() > 0.1


def test_starts_away_from_equilibria_and_bad_parameters_are_refused() -> None:
    flow = clustering_flow()
    with pytest.raises(InvalidInput, match="w must be near an equilibrium at the first parameter 1"):
        follow(lambda _: (flow, torch.ones(3).double()), torch.eye(3), [1.0, 2.0])
    with pytest.raises(InvalidInput, match="betas must be positive"):
        beta_branch(flow, pair(0), (1, 1), [0.0, 1.0])
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        fraction_branch(flow, pair(0), [0.5, 1.0])
