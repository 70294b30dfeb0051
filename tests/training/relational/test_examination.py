from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.nn import CoRelNet, make_network
from separatrix.tasks import make_task
from separatrix.training import RelationalSettings, examine_relational
from separatrix.training.relational.examination import collapsed
from separatrix.training.relational.leaks import find_leaks

QUICK = RelationalSettings(n_steps=40, batch_size=32, n_test=400, n_curve=100, measure_every=10)


def test_a_sound_network_is_told_to_owe_nothing_to_its_encoder() -> None:
    found = examine_relational(
        lambda seed: CoRelNet(2, 2, generator=seeded(seed)), make_task("same_diff"), QUICK, seeds=(0,), oracle_steps=60
    )
    assert found.accuracy.mean > 0.95
    assert found.oracle == 1.0
    assert found.frozen is not None
    assert found.relation_score is not None
    words = str(found)
    assert "learning to see adds nothing" in words
    assert "'some two equal' alone answers 1.000" in words
    assert found.margin is not None
    assert found.collapses == 0
    assert (found.leaks.shown, found.leaks.by_batch, found.leaks.by_number) == (0.0, 0.0, 0.0)
    assert not any(word in words for word in ("leak", "not learned", "unseen ones", "no number"))


class Looks(nn.Module):
    """A stranger's network that learns the pictures of training by heart and relates nothing."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.see, self.out = nn.Linear(3 * 32 * 32, 32), nn.Linear(64, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(0, 0.05, generator=seeded(seed))

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.see(images.flatten(1)))[index].flatten(1))


def test_a_network_that_learns_by_heart_is_found_out() -> None:
    task = make_task("same_diff", n_shapes=12, holdout=6)
    found = examine_relational(Looks, task, QUICK, seeds=(0,), encoder=lambda n: n.see, oracle_steps=60)
    assert found.accuracy.mean < 0.9
    assert found.relation_score is None
    assert found.encoder_movement is not None
    assert found.encoder_movement > 0
    assert "what fails are the relations or their training" in str(found)


def test_a_collapse_is_found() -> None:
    task = make_task("same_diff", n_shapes=12, holdout=6)
    sound = examine_relational(lambda s: CoRelNet(2, 2, generator=seeded(s)), task, QUICK, seeds=(0,), oracle_steps=5)
    run = dataclasses.replace(sound.runs[0], greatest=1.0, train_accuracy=1.0)
    fallen = dataclasses.replace(run, last=dataclasses.replace(run.last, accuracy=0.75))
    assert collapsed(fallen)
    assert not collapsed(dataclasses.replace(fallen, train_accuracy=0.8))  # it never learned
    assert not collapsed(dataclasses.replace(fallen, greatest=0.78))
    words = str(dataclasses.replace(sound, collapses=1))
    assert "1 of 1 runs lost more than 0.05 on unseen pictures" in words


def test_no_seed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="seeds must hold at least one"):
        examine_relational(lambda seed: CoRelNet(2, 2), make_task("same_diff"), QUICK, seeds=())


def examined(make: Any, task: Any, **more: Any) -> str:
    return str(examine_relational(make, task, QUICK, seeds=(0,), oracle_steps=20, **more))


class OverBatch(Looks):
    """Leaks: subtracts the mean over the batch, so that an answer knows the other problems."""

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        out = super().forward(images, index)
        return out - out.mean(0)


class ByNumber(Looks):
    """Leaks: answers by the number of the first picture."""

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return super().forward(images, index) + 100 * nn.functional.one_hot(index[:, 0] % 2, 2)


class SameNumber(Looks):
    """Leaks: never looks, for equal pictures have equal numbers."""

    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return 0 * super().forward(images, index) + nn.functional.one_hot((index[:, 0] != index[:, 1]).long(), 2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "word"),
    [
        (OverBatch, "change with the other problems"),
        (ByNumber, "change with the numbering"),
        (SameNumber, "change when equal pictures have different numbers"),
        (Looks, None),
    ],
)
def test_an_answer_that_knows_more_than_its_pictures_is_found_out(make: Any, word: str | None) -> None:
    words = examined(make, make_task("same_diff", n_shapes=12, holdout=6))
    assert ("leak" in words) == (word is not None)
    assert word is None or word in words


@pytest.mark.slow
def test_a_test_without_held_out_shapes_is_not_called_one_about_unseen_pictures() -> None:
    words = examined(lambda s: CoRelNet(2, 2, generator=seeded(s)), make_task("same_diff", n_shapes=12, holdout=0))
    assert "100% of test problems show pictures of training alone" in words


def test_what_was_never_learned_is_not_explained() -> None:
    task, never = make_task("identity_rules", n_shapes=12, holdout=6), dataclasses.replace(QUICK, n_steps=1)
    found = examine_relational(lambda s: CoRelNet(9, 4, generator=seeded(s)), task, never, seeds=(0,), oracle_steps=20)
    assert "training problems were not learned" in str(found)
    assert "adds nothing" not in str(found)


@pytest.mark.slow
def test_a_comparison_is_not_said_to_be_undetermined_by_its_training() -> None:
    settings = RelationalSettings(n_steps=120, batch_size=32, n_test=400, n_curve=100)
    found = examine_relational(
        lambda s: CoRelNet(2, 2, temperature="sqrt_d", generator=seeded(s)),
        make_task("comparison", n_shapes=12, holdout=6),
        settings,
        seeds=(0,),
        oracle_steps=20,
    )
    assert found.accuracy.mean > found.oracle + 0.2
    assert "what goes beyond is not owed to sameness" in str(found)
    assert "pictures one by one, no two of them together, answer" in str(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer", "RN", "LSTM"])
def test_networks_of_the_package_do_not_leak(name: str) -> None:
    task = make_task("same_diff", n_shapes=12, holdout=6)
    found = find_leaks(make_network(name, 2, 2, generator=seeded(0)), task)
    assert (found.by_batch, found.by_number, found.by_copy) == (0.0, 0.0, 0.0)


class Rootless(nn.Module):
    def forward(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(index), 2)


class Paired(Looks):
    def forward(self, images: torch.Tensor, index: torch.Tensor) -> Any:
        return super().forward(images, index), None


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda seed: Rootless(), "network must have a parameter to train; Rootless has none"),
        (lambda seed: Looks(seed).requires_grad_(False), "network must have a parameter to train; Looks has none"),
        (lambda seed: nn.LazyLinear(2), "network must have parameters of known shape"),
        (lambda seed: lambda images, index: None, "make must give a torch module; got function"),
        (Paired, "network must give logits, a tensor; got tuple"),
        (Looks(0), "make must be a function from a seed to a new network; got a network"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        examined(make, make_task("same_diff", n_shapes=12, holdout=6))
