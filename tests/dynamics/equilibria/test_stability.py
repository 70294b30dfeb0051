from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies

from attention_cases import CLUSTERING_POINT, clustering_flow
from helpers import seeded
from separatrix.dynamics import AttentionFlow, OjaFlow, cluster_stability, normalise, random_tokens


def matched(ours: torch.Tensor, dense: torch.Tensor) -> float:
    """Largest distance between two multisets of complex numbers, after greedy matching."""
    left = dense.clone()
    worst = 0.0
    for value in ours:
        gap, place = (left - value).abs().min(dim=0)
        worst = max(worst, float(gap))
        left = torch.cat([left[:place], left[place + 1 :]])
    return worst


@settings(max_examples=25, deadline=None)
@given(
    strategies.integers(0, 2**31),
    strategies.integers(2, 4),
    strategies.lists(strategies.integers(1, 3), min_size=1, max_size=3),
    strategies.sampled_from(["softmax", "uniform", "sinkhorn", "heads"]),
)
def test_block_eigenvalues_are_those_of_the_dense_jacobian(seed: int, dim: int, sizes: list[int], kind: str) -> None:
    generator = seeded(seed)
    axes = (2,) if kind == "heads" else ()
    coupling, value = (torch.randn(*axes, dim, dim, generator=generator, dtype=torch.float64) for _ in range(2))
    name = "softmax" if kind == "heads" else kind
    flow = AttentionFlow.from_coupling(coupling, value, 0.7, heads=bool(axes), normalisation=name)
    w = random_tokens(len(sizes), dim, generator=generator)
    counts = torch.tensor(sizes)
    blocks = cluster_stability(flow, w, counts.double())
    dense = torch.linalg.eigvals(flow.jacobian(w.repeat_interleave(counts, dim=0)))
    copies = [blocks.transversal[a].repeat(int(size) - 1) for a, size in enumerate(sizes)]
    ours = torch.cat([blocks.quotient, *copies])
    assert len(ours) == len(dense) == sum(sizes) * (dim - 1)
    # Nearly defective eigenvalues are accurate to the square root of rounding only.
    assert matched(ours, dense) < 1e-6
    assert float(blocks.abscissa) == pytest.approx(float(dense.real.max()), abs=1e-7)
    assert int(blocks.index) == int((dense.real > 1e-9 * float(blocks.rate)).sum())


def test_the_clustering_of_eight_and_two_is_stable_with_known_abscissas() -> None:
    record = cluster_stability(clustering_flow(), normalise(CLUSTERING_POINT), torch.tensor([8.0, 2.0]).double())
    assert float(record.quotient_abscissa) == pytest.approx(-0.1795210544, abs=1e-8)
    assert float(record.transversal_abscissa) == pytest.approx(-0.275604, abs=1e-6)
    assert bool(record.stable)


def test_a_cluster_of_one_token_has_no_transversal_directions() -> None:
    # One token against six: the multiplier of the single token is negative, yet every tangent eigenvalue is negative.
    flow = AttentionFlow.from_coupling(0.6 * torch.eye(2).double(), torch.diag(torch.tensor([1.0, -5.0]).double()))
    w = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    record = cluster_stability(flow, w, torch.tensor([1.0, 6.0]).double())
    everything = sorted([*record.quotient.real.tolist(), *record.transversal[1].real.tolist() * 5])
    assert everything == pytest.approx([-5.842306, -1.316716, *[-0.904401] * 5], abs=1e-6)
    assert bool(record.stable)


def test_balanced_oja_pairs_are_marginal_not_unstable() -> None:
    flow = OjaFlow(torch.diag(torch.tensor([1.0, -1.0, -2.0]).double()))
    w = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], dtype=torch.float64)
    record = cluster_stability(flow, w, torch.ones(2).double())
    assert bool(record.marginal)
    assert not bool(record.stable)
