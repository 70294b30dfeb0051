from __future__ import annotations

import numpy
import pytest
import torch
from hypothesis import given, settings, strategies
from scipy.cluster.hierarchy import fcluster, linkage

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.dynamics import AttentionFlow, cluster_flow, find_clusters, random_tokens


@settings(max_examples=30, deadline=None)
@given(strategies.integers(0, 2**31), strategies.floats(0.05, 1.5))
def test_clusters_equal_single_linkage_of_scipy(seed: int, distance: float) -> None:
    x = random_tokens(9, 3, 2, generator=seeded(seed))
    ours = find_clusters(x, distance)
    for element, labels, count in zip(x, ours.labels, ours.n_clusters, strict=True):
        theirs = fcluster(linkage(element.numpy(), "single"), distance, "distance")
        together = numpy.equal.outer(theirs, theirs)
        assert numpy.array_equal(numpy.equal.outer(labels.numpy(), labels.numpy()), together)
        assert int(count) == len(set(theirs.tolist()))


def test_gap_compares_the_width_of_clusters_with_their_distance() -> None:
    x = torch.tensor([[1.0, 0.0], [1.0, 1e-4], [-1.0, 0.0]], dtype=torch.float64)
    assert float(find_clusters(x).gap) == pytest.approx(2e4, rel=1e-3)


def test_labels_count_clusters_in_the_order_of_their_first_token() -> None:
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert find_clusters(x).labels.tolist() == [0, 1, 0, 2, 1]


def test_cluster_flow_of_a_masked_flow_is_refused() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2), torch.eye(2), mask="causal")
    with pytest.raises(InvalidInput, match="tell tokens at one place apart"):
        cluster_flow(flow, torch.ones(2))
