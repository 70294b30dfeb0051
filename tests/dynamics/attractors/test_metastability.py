from __future__ import annotations

import math

import torch

from separatrix.dynamics import AttentionFlow, metastability_record, normalise


def test_a_state_beside_a_saddle_is_a_plateau_with_a_predicted_life() -> None:
    # Consensus on v_2, 1e-4 away: it is left at the rate lambda_1 - lambda_2.
    value = torch.diag(torch.tensor([1.0, 0.8, -1.0]).double())
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    spread = torch.tensor([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]).double()
    x = normalise(torch.tensor([1e-4, 1.0, 0.0]).double() + spread)
    record = metastability_record(flow, x, t_max=110.0, n_frames=150)
    assert record.n_clusters.shape == (3, 150)
    assert bool((record.n_clusters[0] <= record.n_clusters[2]).all())
    first = record.plateaus[0]
    assert first.n_clusters == 1
    assert first.unstable_rate > 0
    # The prediction is logarithmic in the distance: right within a factor of two.
    assert 0.5 < first.predicted_life / first.duration < 2.5
    assert math.isinf(record.plateaus[-1].predicted_life)  # the last one is the attractor
