from __future__ import annotations

import pytest
import torch

from attention_cases import CLUSTERING_POINT, clustering_flow
from separatrix.core import InvalidInput
from separatrix.dynamics import AttentionFlow, find_equilibria, partitions


def test_partitions_are_those_of_the_integer() -> None:
    assert list(partitions(6, 3)) == [(4, 1, 1), (3, 2, 1), (2, 2, 2)]
    assert list(partitions(2, 3)) == []


def test_search_finds_consensus_bipartite_and_clustering(generator: torch.Generator) -> None:
    found = find_equilibria(clustering_flow(), 10, generator=generator, sizes=[(10,), (8, 2)], n_random=24)
    consensus = {item.eigenvector: item.stable for item in found if item.kind == "consensus"}
    assert consensus == {0: True, 1: False, 2: False}
    pairs = {item.eigenvector: item.stable for item in found if item.kind == "bipartite"}
    assert pairs == {0: False, 1: False, 2: False}  # (2, 8) lies outside every stable window here
    clusterings = [item for item in found if item.kind == "clustering" and item.stable]
    assert len(clusterings) == 1
    expected = CLUSTERING_POINT * clusterings[0].clusters[0, 0].sign()
    torch.testing.assert_close(clusterings[0].clusters, expected, rtol=0, atol=1e-7)


def test_known_equilibria_are_not_reported_again(generator: torch.Generator) -> None:
    first = find_equilibria(clustering_flow(), 4, generator=generator, sizes=[(4,)])
    again = find_equilibria(clustering_flow(), 4, generator=generator, sizes=[(4,)], known=first)
    assert first
    assert not again


def test_bad_searches_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match=r"sizes must sum to n_tokens = 5; got \(3, 3\)"):
        find_equilibria(clustering_flow(), 5, generator=generator, sizes=[(3, 3)])
    masked = AttentionFlow.from_coupling(torch.eye(2), torch.eye(2), mask="causal")
    with pytest.raises(InvalidInput, match="one weight instance without mask and bias"):
        find_equilibria(masked, 5, generator=generator)
