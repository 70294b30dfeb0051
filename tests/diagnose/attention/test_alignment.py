from __future__ import annotations

import pytest
import scipy.linalg
import torch

from attention_models import bert_state
from separatrix.core import InvalidInput, spawn
from separatrix.diagnose import alignments, attention_layers, dominant_subspace, token_geometry
from separatrix.diagnose.attention.alignment import energy
from separatrix.diagnose.attention.token_geometry import Interval, effective_rank, mean_cosine


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_dominant_subspace_is_that_of_the_ordered_schur_form(rank: int) -> None:
    value = torch.randn(12, 12, generator=spawn(rank, "schur"), dtype=torch.float64)
    basis = dominant_subspace(value, rank)
    real = torch.linalg.eigvals(value).real.sort(descending=True).values
    edge = float(real[basis.shape[1] - 1] + real[basis.shape[1]]) / 2
    _, q, found = scipy.linalg.schur(value.numpy(), output="real", sort=lambda re, im: re > edge)
    assert found == basis.shape[1]
    assert basis.shape[1] - rank in (0, 1)
    other = torch.from_numpy(q[:, :found].copy())
    assert torch.linalg.matrix_norm(basis @ basis.mT - other @ other.mT) < 1e-9
    assert torch.allclose(basis @ (basis.mT @ value @ basis), value @ basis, atol=1e-9)


def test_random_layer_and_random_tokens_have_energy_at_chance() -> None:
    layers = [attention_layers(bert_state(40, seed=1000 * i), n_heads=4).layers[0] for i in range(3)]
    generator = spawn(1, "chance")
    texts = [torch.randn(120, 40, generator=generator, dtype=torch.float64) for _ in range(10)]
    found = alignments(layers, [texts] * 3, rank=4, n_null=60, n_rotated=2, generator=generator)
    for tokens, _, _ in found:
        error = (tokens.energy.high - tokens.energy.low) / 3.9  # standard error: half the interval over about 2
        assert abs(tokens.energy.mean - tokens.chance) < 4 * error
        # A null draw averages 1200 tokens, whose energies are Beta(2, 18): standard deviation 0.066 / sqrt(1200).
        assert tokens.random.mean == pytest.approx(tokens.chance, abs=5 * 0.066 / 1200**0.5)
        assert tokens.random.low < tokens.chance < tokens.random.high
        assert not tokens.above_chance


def test_update_of_random_weights_exceeds_random_subspaces_but_not_rotated_layers() -> None:
    layers = [attention_layers(bert_state(24, seed=1000 * i), n_heads=2).layers[0] for i in range(8)]
    generator = spawn(2, "update")
    texts = [torch.randn(40, 24, generator=generator, dtype=torch.float64) for _ in range(3)]
    found = alignments(layers, [texts] * 8, rank=3, n_null=40, n_rotated=20, generator=generator)
    updates = [update for _, update, _ in found]
    assert sum(u.energy.mean > u.random.mean for u in updates) == 8  # a matrix amplifies its own directions
    # Gaussian weights and rotated ones have one distribution: about 9 of 10 lie within the middle of 20 draws.
    assert sum(u.rotated.low < u.energy.mean < u.rotated.high for u in updates) >= 5
    assert sum(u.above_chance for u in updates) <= 1


def test_tokens_in_the_dominant_subspace_are_found_beyond_every_null() -> None:
    layers = [attention_layers(bert_state(20, seed=1000 * i), n_heads=2).layers[0] for i in range(2)]
    basis = dominant_subspace(layers[0].value_sum, 3)
    generator = spawn(3, "leaning")
    noise = [torch.randn(30, 20, generator=generator, dtype=torch.float64) for _ in range(6)]
    texts = [tokens + 3 * (tokens @ basis) @ basis.mT for tokens in noise]
    tokens, _, _ = alignments(layers, [texts, noise], rank=3, n_null=50, n_rotated=10, generator=generator)[0]
    assert tokens.above_chance
    assert tokens.energy.low > 2 * tokens.chance


def test_energy_is_one_inside_and_zero_outside_a_subspace() -> None:
    eye = torch.eye(5, dtype=torch.float64)
    assert energy(eye[:2], eye[:, :2]) == pytest.approx(1)
    assert energy(eye[2:], eye[:, :2]) == pytest.approx(0)


def test_likeness_of_equal_orthogonal_and_shifted_tokens() -> None:
    eye = torch.eye(6, dtype=torch.float64)
    equal = torch.ones(4, 6, dtype=torch.float64)
    assert mean_cosine(eye) == pytest.approx(0, abs=1e-14)
    assert effective_rank(eye) == pytest.approx(6)
    assert mean_cosine(equal) == pytest.approx(1)
    assert effective_rank(equal) == pytest.approx(1)
    shifted = token_geometry("shifted", [eye + 2, eye + 2])
    assert shifted.cosine.mean > 0.9
    assert shifted.centred_cosine.mean == pytest.approx(-1 / 5)


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    draws = torch.randn(2000, 6, generator=spawn(4, "cover"), dtype=torch.float64)
    covered = [interval.low < 0 < interval.high for interval in map(Interval.over, draws.tolist())]
    assert sum(covered) / 2000 == pytest.approx(0.95, abs=5 * (0.95 * 0.05 / 2000) ** 0.5)
    assert Interval.over([1.0]).n_texts == 1
    assert Interval.over([1.0]).low != Interval.over([1.0]).low


def test_rank_must_leave_something_out() -> None:
    with pytest.raises(InvalidInput, match="rank must be smaller than the dimension 4"):
        dominant_subspace(torch.eye(4, dtype=torch.float64), 4)
