from __future__ import annotations

import pytest
import torch

from separatrix.tasks import ideal_relations, make_task, shortcut_accuracy


def test_rules_of_thumb_are_worth_what_the_design_says() -> None:
    same = shortcut_accuracy(make_task("same_diff"), 2000)
    assert same.accuracy["some two equal"] == 1.0
    assert same.best[1] == 1.0
    rmts = shortcut_accuracy(make_task("rmts"), 4000).accuracy
    assert max(rmts.values()) < 0.55  # two answers, equally frequent whatever the rules see
    assert shortcut_accuracy(make_task("identity_rules"), 4000).accuracy["majority"] == pytest.approx(0.25, abs=0.04)


def test_ideal_relations_look_at_what_counts() -> None:
    task = make_task("same_diff_colour")
    index = torch.tensor([[3 * 100 + 5, 3 * 100 + 9], [3 * 100 + 5, 4 * 100 + 5]])
    assert ideal_relations(task, index).tolist() == [[[1, 1], [1, 1]], [[1, 0], [0, 1]]]
