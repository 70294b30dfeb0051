from __future__ import annotations

import pytest
import torch
from torch import nn

from helpers import seeded
from separatrix.nn import CoRelNet
from separatrix.tasks import GameTask, PictureProblems, make_task
from separatrix.training import evaluate_relational
from separatrix.training.relational.evaluation import area_under_curve, wilson


class Knows(nn.Module):
    """Answers same or different by looking at pixels."""

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        pixels = images.flatten(1)[index]
        same = (pixels[:, 0] == pixels[:, 1]).all(1).float()
        return torch.stack([same, 1 - same], 1)


def test_a_network_that_knows_is_always_right_and_patterns_are_told() -> None:
    found = evaluate_relational(Knows(), make_task("same_diff"), 500)
    assert found.accuracy == 1.0
    assert found.by_pattern == {"same": 1.0, "different": 1.0}
    assert found.low == pytest.approx(wilson(1.0, 500)[0])


def test_given_problems_are_asked_as_drawn_ones_are() -> None:
    task = GameTask("same")
    problems = task.problems("test", 300, generator=seeded(0))
    network = CoRelNet(9, 2, image_size=12, generator=seeded(1))
    given = evaluate_relational(network, PictureProblems(task.images, problems.index, problems.label))
    drawn = evaluate_relational(network, task, 300, generator=seeded(0))
    assert given.accuracy == drawn.accuracy


def test_the_area_under_the_curve_is_the_share_of_ordered_pairs() -> None:
    scores = torch.randint(5, (60,), generator=seeded(2)).double()
    positive = torch.rand(60, generator=seeded(3)) < 0.4
    above = scores[positive].unsqueeze(1) - scores[~positive].unsqueeze(0)
    expected = float(((above > 0).double() + 0.5 * (above == 0).double()).mean())
    assert area_under_curve(scores, positive) == pytest.approx(expected)


@pytest.mark.parametrize(("share", "n"), [(0.0, 10), (0.5, 40), (1.0, 1)])
def test_wilson_bounds_solve_their_quadratic(share: float, n: int) -> None:
    z = 1.959963984540054
    for end in wilson(share, n):
        gap = (share - end) ** 2 * n - z * z * end * (1 - end)
        assert abs(gap) < 1e-9 or end in (0.0, 1.0)


def test_a_part_that_its_owner_froze_stays_frozen() -> None:
    network, task = CoRelNet(seq_len=2, n_answers=2), make_task("same_diff", holdout=90, seed=0)
    network.encoder.eval()
    evaluate_relational(network, task, 8)
    assert network.training
    assert not network.encoder.training
