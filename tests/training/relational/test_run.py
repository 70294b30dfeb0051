from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from helpers import elements_computed, seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import CoRelNet, make_network
from separatrix.tasks import make_task
from separatrix.training import RelationalSettings, evaluate_relational, train_relational
from separatrix.training.relational.pictures import distinct_pictures

QUICK = RelationalSettings(n_steps=6, batch_size=16, n_test=100, n_curve=40, measure_every=2)


def test_same_or_different_is_learned_in_a_few_steps_and_carries_over() -> None:
    settings = RelationalSettings(n_steps=60, n_test=1000, n_curve=100)
    run = train_relational(CoRelNet(2, 2, encoder="frozen", generator=seeded(0)), make_task("same_diff"), settings)
    assert run.last.accuracy > 0.99
    assert run.last.by_pattern.keys() == {"same", "different"}
    assert run.encoder_movement == 0.0


def test_a_frozen_run_gives_the_numbers_of_one_that_encodes_every_time() -> None:
    task = make_task("identity_rules")
    kept = train_relational(CoRelNet(9, 4, encoder="frozen", generator=seeded(1)), task, QUICK)
    again = CoRelNet(9, 4, generator=seeded(1))
    again.encoder.requires_grad_(False)
    encoded = train_relational(again, task, QUICK)
    assert kept.curve == encoded.curve
    assert kept.last.loss == pytest.approx(encoded.last.loss, abs=1e-5)


def test_a_step_costs_by_distinct_pictures_and_not_by_occurrences() -> None:
    task = make_task("identity_rules")
    index, _ = task.train_batch(96)
    network = CoRelNet(9, 4, generator=seeded(0))
    images, local = distinct_pictures(task, index)
    assert len(images) == 5
    assert torch.equal(images[local], task.images[index])
    distinct = elements_computed(lambda: network(images, local))
    every = elements_computed(lambda: network(task.images[index]))
    assert every > 20 * distinct


def test_equal_seeds_give_equal_runs_and_other_seeds_other_ones() -> None:
    task = make_task("rmts")
    runs = [train_relational(CoRelNet(6, 2, generator=seeded(0)), task, QUICK, seed=seed) for seed in (0, 0, 1)]
    assert runs[0].last.loss == runs[1].last.loss
    assert runs[0].encoder_movement == runs[1].encoder_movement != runs[2].encoder_movement


def test_a_run_that_was_saved_is_continued(tmp_path: Path) -> None:
    task, path = make_task("rmts"), tmp_path / "run.pt"
    whole = train_relational(CoRelNet(6, 2, generator=seeded(0)), task, QUICK)
    first = train_relational(CoRelNet(6, 2, generator=seeded(0)), task, QUICK, checkpoint=path)
    again = train_relational(CoRelNet(6, 2, generator=seeded(5)), task, QUICK, checkpoint=path)
    assert whole.last.loss == first.last.loss == again.last.loss


def test_the_finite_protocol_takes_its_epochs_from_the_source() -> None:
    task = make_task("same_diff")  # 4 problems, 100 epochs of one batch
    settings = RelationalSettings(protocol="finite", n_test=200, n_curve=40, measure_every=50)
    run = train_relational(CoRelNet(2, 2, encoder="frozen", generator=seeded(0)), task, settings)
    assert run.batch_size == 4
    assert run.steps[-1] == 99


def test_the_finite_protocol_is_for_patterns() -> None:
    network, settings = make_network("CoRelNet", 9, 2, image_size=12), RelationalSettings(protocol="finite")
    with pytest.raises(InvalidInput, match="protocol 'finite' is for tasks made of patterns"):
        train_relational(network, make_task("game_same"), settings)


@pytest.mark.sampled(1, each="encoder")
@pytest.mark.parametrize("name", ["same_diff_colour", "same_diff_separated", "comparison_transitive"])
@pytest.mark.parametrize("encoder", ["learned", "frozen"])
def test_tasks_with_other_pictures_can_be_trained(name: str, encoder: Any) -> None:
    task = make_task(name, n_shapes=12, holdout=6)
    run = train_relational(CoRelNet(task.seq_len, 2, encoder=encoder, generator=seeded(0)), task, QUICK)
    assert run.ending == "finished"


def test_games_can_be_trained_and_say_that_patterns_were_drawn() -> None:
    task = make_task("game_row_matching")
    run = train_relational(make_network("CoRelNet", 9, 2, image_size=12), task, QUICK)
    assert not run.equal_patterns


class Blowing(nn.Module):
    """A network of a stranger whose loss is no number from the third call on."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.calls = nn.Linear(3 * 32 * 32, 2), 0

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        self.calls += self.training
        blown = torch.nan if self.calls > 2 and self.training else 1.0
        return self.out(images.flatten(1)[index].mean(1)) * blown


def test_a_loss_that_is_no_number_ends_the_run_with_a_record() -> None:
    run = train_relational(Blowing(), make_task("same_diff"), QUICK)
    assert run.ending == "diverged"
    assert 0 <= run.last.accuracy <= 1
    assert run.gradient_ratio is None


@pytest.mark.parametrize("bad", [{"n_steps": 0}, {"lr": -1.0}, {"batch_size": 0}, {"n_test": 0}])
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} must be"):
        RelationalSettings(**bad)


def test_a_network_with_too_few_answers_is_told_so() -> None:
    task, quick = make_task("identity_rules"), RelationalSettings(n_steps=1, n_test=9, n_curve=9)
    with pytest.raises(ShapeError, match="with at least 4 answers; got"):
        train_relational(CoRelNet(9, 2), task, quick)
    with pytest.raises(ShapeError, match="with at least 4 answers; got"):
        evaluate_relational(CoRelNet(9, 2), task, 60)
