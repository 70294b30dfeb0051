from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.diagnose import beta_sweep
from separatrix.theory import count_stable

M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])).double(), torch.diag(torch.tensor([3.0, 1.0, -4.0])).double()
CLUSTERED = (
    [[2.177, -0.374, -1.305], [-2.376, 1.363, 0.712], [2.747, -0.034, 1.789]],
    [[1.019, 0.896, -0.307], [0.896, 0.167, 0.557], [-0.307, 0.557, -0.017]],
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [10, 11])
def test_followed_pairs_gain_stability_where_the_closed_form_says(n: int) -> None:
    swept = beta_sweep(M, V, torch.linspace(0.2, 1.5, 14), n, clusterings=False)
    assert [state.name for state in swept.states] == ["pair on v1", "pair on v3"]
    for state in swept.states:
        assert state.events == pytest.approx([state.predicted], abs=1e-7)
    assert [count.total for count in swept.counts] == [
        count_stable(M, V, n, beta).total for beta in swept.betas.tolist()
    ]
    rows = swept.table()
    assert all(row["abscissa, pair on v1"] < 0 for row in rows if row["beta"] > swept.states[0].events[0])
    assert len(swept.to_frame()) == 14
    assert [row["closed form"] for row in swept.events()] == [state.predicted for state in swept.states]


def test_clusterings_are_found_at_the_largest_beta_and_followed_down_to_their_end() -> None:
    swept = beta_sweep(*CLUSTERED, torch.linspace(0.2, 1.4, 13), 10)
    (state,) = [state for state in swept.states if "clustering" in state.name]
    assert state.predicted is None
    assert bool(state.branch.stable[0])
    assert [event.kind for event in state.branch.events] == ["end"]
    beyond = [row[f"abscissa, {state.name}"] for row in swept.table() if row["beta"] < state.events[0]]
    assert beyond
    assert all(math.isnan(value) for value in beyond)


def test_a_value_matrix_that_is_not_symmetric_is_swept_without_a_closed_form() -> None:
    skew = V + 0.3 * torch.eye(3).roll(1, 0)
    swept = beta_sweep(M, skew, [0.5, 1.0, 2.0], 8, clusterings=False)
    assert all(state.predicted is None for state in swept.states)
    rotating = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]])
    assert [state.name for state in beta_sweep(M, rotating, [0.5, 1.0], 4, clusterings=False).states] == ["pair on v3"]


def test_bad_betas_are_refused() -> None:
    with pytest.raises(InvalidInput, match="betas must be positive"):
        beta_sweep(M, V, [0.0, 1.0], 4)
    with pytest.raises(InvalidInput, match="betas must be increasing"):
        beta_sweep(M, V, [1.0, 0.5], 4)
