"""Screening policies: what each keeps, and how much of what matters that is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import (
    SCREENINGS,
    AbstractScreening,
    GivenScores,
    Oracle,
    RandomChoice,
    RelRNN,
    Sight,
    replay,
    retention,
    startup_bias,
)
from separatrix.nn.memory.keeping.policies import _scrambled


def marked(batch: int, length: int, count: int) -> Tensor:
    """Random steps that matter, another set for each sample."""
    rows = [torch.randperm(length, generator=seeded(row))[:count] for row in range(batch)]
    marks = torch.zeros(batch, length, dtype=torch.bool)
    return marks.scatter(1, torch.stack(rows), True)


def test_simple_policies_keep_what_they_say() -> None:
    weights = torch.rand(20, generator=seeded(0)).double() + 0.1
    assert replay(weights, 4, 3, screening="recency").relevant[-1] == (1, 2, 3)
    assert replay(weights, 4, 3, screening="fifo").relevant[-1] == (14, 15, 16)
    assert replay(weights, 4, 3, screening="attention_share").relevant == replay(weights, 4, 3, "share").relevant
    scores = torch.rand(20, generator=seeded(1))
    best = sorted((scores[:16].topk(3).indices + 1).tolist())
    assert list(replay(weights, 4, 3, screening=GivenScores(scores)).relevant[-1]) == best


def test_the_largest_attention_counts_and_not_the_sum() -> None:
    played = replay([1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0], 2, 1, screening="attention_max")
    # alone at first, so that its largest share is all of it, which nothing exceeds
    assert played.relevant[-1] == (1,)
    torch.testing.assert_close(played.scores[:4], torch.tensor([1.0, 0.5, 1 / 3, 9 / 11]).double())


def test_heavy_hitters_go_on_collecting() -> None:
    weights = torch.rand(30, generator=seeded(3)).double() + 0.1
    kept: list[int] = []
    score: dict[int, float] = {}
    for t in range(30):
        score[t] = 0.0
        if t >= 3:
            kept.append(t - 3)
            if len(kept) > 4:
                worst = min(kept[:-1], key=lambda j: (score[j], -j))
                kept.remove(worst if score[t - 3] > score[worst] else t - 3)
        memory = [*kept, *range(max(0, t - 2), t + 1)]
        for j in memory:
            score[j] += float(weights[j] / weights[memory].sum())
    assert replay(weights, 3, 4, screening="heavy_hitter").relevant[-1] == tuple(sorted(j + 1 for j in kept))


def test_random_choice_keeps_each_state_equally_often() -> None:
    counts = torch.zeros(12)
    for seed in range(120):
        for time in replay([1.0] * 14, 2, 3, screening=RandomChoice(seed)).relevant[-1]:
            counts[time - 1] += 1
    expected, spread = 30, (120 * 0.25 * 0.75) ** 0.5
    assert float((counts - expected).abs().max()) < 4.5 * spread


def test_surprise_keeps_the_step_before_what_was_not_foreseen() -> None:
    x = torch.ones(2, 40, 3)
    x[0, 21], x[1, 13] = -3.0, -3.0
    network = RelRNN(3, 8, n_buffer=4, n_relevant=2, screening="surprise")
    network(x)
    found = [set(row) for row in network.last.relevant_index.tolist()]
    assert 20 in found[0]
    assert 12 in found[1]


@pytest.mark.parametrize("name", SCREENINGS)
def test_retention_of_every_policy_is_measured_sample_by_sample(name: str) -> None:
    marks = marked(3, 40, 5)
    x = torch.randn(3, 40, 4, generator=seeded(5)) * (1 + 4 * marks.unsqueeze(-1))
    network = RelRNN(4, 8, n_buffer=4, n_relevant=8, screening=name)
    network(x)
    kept = network.last.relevant_index
    share = retention(kept, marks)
    assert bool(((share >= 0) & (share <= 1)).all())
    network(x[1:2])
    assert torch.equal(network.last.relevant_index[0], kept[1])


def test_the_oracle_retains_all_that_has_left_the_buffer() -> None:
    marks = marked(3, 40, 5)
    marks[:, 36:] = False
    network = RelRNN(4, 8, n_buffer=4, n_relevant=5, screening=Oracle(marks))
    network(torch.randn(3, 40, 4, generator=seeded(5)))
    assert torch.equal(retention(network.last.relevant_index, marks), torch.ones(3))
    with pytest.raises(ShapeError, match="is for 3 sequences"):
        network(torch.zeros(2, 40, 4))


def test_even_attention_favours_the_start_and_a_share_does_not() -> None:
    even = replay([1.0] * 60, 10, 10)
    kept = torch.tensor([[time - 1 for time in even.relevant[-1]]])
    biased = startup_bias(even.scores[:50].unsqueeze(0), kept, 10)
    assert float(biased.share_of_first) == 1
    assert abs(float(even.scores[0]) - sum(1 / i for i in range(1, 11))) < 1e-12
    assert float(biased.ratio) > 2
    fair = replay([1.0] * 60, 10, 10, "share")
    assert abs(float(startup_bias(fair.scores[:50].unsqueeze(0), kept, 10).ratio) - 1) < 1e-12


class Shortest(AbstractScreening):
    """A stranger's policy: keeps short states."""

    name = "shortest"
    needs_states = True

    def observe(self, sight: Sight) -> None:
        assert sight.hidden is not None
        sight.scores[:, sight.newest] = -sight.hidden[:, sight.newest].norm(dim=-1)


def test_a_strangers_policy_works() -> None:
    network = RelRNN(3, 6, n_buffer=3, n_relevant=4, screening=Shortest())
    output, _ = network(torch.randn(2, 30, 3, generator=seeded(0)))
    expected = output[:, :27].norm(dim=-1).topk(4, largest=False).indices.sort().values
    assert torch.equal(network.last.relevant_index, expected)
    with pytest.raises(InvalidInput, match="looks at hidden states"):
        replay([1.0], 1, 1, screening=Shortest())


def test_a_memory_carried_from_window_to_window_keeps_what_one_run_keeps() -> None:
    x = torch.randn(3, 23, 3, generator=seeded(1), dtype=torch.float64)
    for name in sorted(set(SCREENINGS) - {"surprise"}):
        for places in ((1, 3), (3, 2), (30, 2)):
            core = RelRNN(3, 4, *places, screening=name, carry_memory=True, dtype=torch.float64)
            with torch.no_grad():
                whole, kept, state, parts = core(x)[0], core.last.relevant_index, None, []
                for window in x.split([5, 1, 9, 8], 1):
                    part, state = core(window, state)
                    parts.append(part)
            assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-12), (name, places)
            assert torch.equal(core.last.relevant_index, kept), (name, places)


def test_a_policy_with_a_state_of_its_own_refuses_to_be_carried() -> None:
    with pytest.raises(InvalidInput, match="'surprise', whose own state would be lost between two windows"):
        RelRNN(3, 4, 2, 2, screening="surprise", carry_memory=True)


def test_random_scores_are_even_and_differ_by_seed_and_step() -> None:
    scores = torch.stack([_scrambled(torch.arange(20_000), seed) for seed in (0, 1, 2)])
    assert bool(((scores >= 0) & (scores < 1)).all())
    assert scores.unique().numel() == scores.numel()
    for row in scores:  # four standard errors
        assert abs(float(row.mean()) - 0.5) < 4 * (1 / 12 / 20_000) ** 0.5
        neighbours = torch.corrcoef(torch.stack([row[:-1], row[1:]]))[0, 1]
        assert abs(float(neighbours)) < 4 / 20_000**0.5
    assert abs(float(torch.corrcoef(scores)[0, 1])) < 4 / 20_000**0.5
