from __future__ import annotations

from typing import Any

import pytest
import torch

from separatrix import dynamics, theory
from separatrix.core import InvalidInput, spawn
from separatrix.diagnose import Multistability, multistability
from separatrix.diagnose.attention import stable_states

UNSEEN = (
    [[-0.12, -2.46, -2.81], [-0.14, -0.92, 2.35], [0.18, -1.0, -0.68]],
    [[0.67, -1.19, 0.68], [-1.19, 1.41, 0.23], [0.68, 0.23, -1.37]],
)
"""Six starts all end in consensus, though splits from 3 : 7 to 7 : 3 are stable."""

CLUSTERED = (
    [[-0.35, -1.95, -0.3], [-0.59, 5.05, 1.54], [-0.38, 0.69, 0.69]],
    [[-0.6, 0.4, 1.28], [0.4, 0.29, -0.52], [1.28, -0.52, 0.03]],
)
"""No pair of opposite groups is stable, but clusterings of 5 and 1, and of 4 and 2, are."""


def decide(case: Any, n: int, **options: Any) -> Multistability:
    return multistability(*case, n, generator=spawn(0, "test"), **options)


def test_stable_states_that_no_start_reaches_count() -> None:
    flow = dynamics.AttentionFlow.from_coupling(*UNSEEN)
    reached = dynamics.census([flow], n_tokens=10, n_starts=6, seed=0).instances[0]
    assert not reached.reached_several
    decided = decide(UNSEEN, 10, n_pairs=0, n_starts=0)
    assert decided.multistable
    assert "closed form counts" in decided.reason
    window = theory.stable_window(*UNSEEN, 0, 10)
    v = torch.linalg.eigh(torch.tensor(UNSEEN[1], dtype=torch.float64)).eigenvectors[:, -1]
    for n1 in range(int(window.lowest), int(window.highest) + 1):  # by the dense Jacobian
        x = torch.cat([v.expand(n1, 3), -v.expand(10 - n1, 3)])
        assert float(torch.linalg.eigvals(flow.jacobian(x)).real.max()) < 0


def test_stable_clusterings_that_the_closed_form_does_not_know_count() -> None:
    decided = decide(CLUSTERED, 6)
    assert not decided.counted
    assert decided.multistable
    assert "stable clusterings were found" in decided.reason
    flow = dynamics.AttentionFlow.from_coupling(*CLUSTERED)
    for item in decided.clusterings:  # by the dense Jacobian of all tokens
        x = item.clusters[item.labels]
        assert float(flow.residual(x)) < 1e-10
        assert float(torch.linalg.eigvals(flow.jacobian(x)).real.max()) == pytest.approx(item.abscissa, abs=1e-6)
        assert item.abscissa < 0


@pytest.mark.parametrize("search", [{"n_pairs": 0}, {"n_starts": 0}])
def test_either_search_finds_a_clustering_alone(search: dict[str, int]) -> None:
    decided = decide(CLUSTERED, 6, **search)
    assert decided.multistable
    assert bool(decided.pairs) == ("n_starts" in search)
    assert bool(decided.ends) == ("n_pairs" in search)


def test_a_head_with_one_stable_state_is_not_called_multistable() -> None:
    decided = decide((torch.zeros(3, 3), torch.diag(torch.tensor([2.0, 0.5, -1.0]))), 10)
    assert not decided.multistable
    assert "no stable clustering found from 18 pairs of groups and 8 uniform starts" in decided.reason
    assert decide((torch.zeros(2, 2), torch.diag(torch.tensor([2.0, 1.0]))), 1).count.total == 2


def test_a_pair_of_single_tokens_is_one_state_modulo_antipode() -> None:
    pair = theory.count_stable(torch.eye(2), torch.diag(torch.tensor([1.0, -1.0])), 2)
    assert pair.per_eigenvector == [4, 0]  # consensus and the pair, each with its antipode
    assert decide((torch.eye(2), torch.diag(torch.tensor([1.0, -1.0]))), 2).counted


def test_starts_that_rotate_are_counted_as_unsettled() -> None:
    rotating = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]])
    decided = decide((torch.eye(3), rotating), 4)
    assert decided.n_unsettled > 0
    assert not decided.multistable


@pytest.mark.slow
def test_a_found_pair_that_the_closed_form_forbids_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    case = (torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0])))
    assert not decide(case, 10).clusterings

    def unstable(coupling: Any, value: Any, k: int, n1: int, n2: int, beta: float) -> Any:
        return theory.bipartite_spectrum(-torch.as_tensor(coupling), value, k, n1, n2, beta)

    monkeypatch.setattr(stable_states, "bipartite_spectrum", unstable)
    with pytest.raises(dynamics.Contradiction, match="in closed form"):
        decide(case, 10)


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="n_pairs must be an integer"):
        decide(UNSEEN, 10, n_pairs=-1)
    with pytest.raises(InvalidInput, match="n_tokens must be an integer"):
        decide(UNSEEN, 0)
    with pytest.raises(InvalidInput, match="at most 5000 for a search"):
        decide(UNSEEN, 10**6)
    assert decide(UNSEEN, 10**6, n_pairs=0, n_starts=0).multistable
    with pytest.raises(InvalidInput, match="takes one pair of matrices"):
        decide((torch.zeros(2, 3, 3), torch.eye(3).expand(2, 3, 3)), 4)
