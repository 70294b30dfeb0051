from __future__ import annotations

import errno
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from separatrix.core import CorruptData, InvalidInput, spawn
from separatrix.training import CheckpointWarning, TrainingSettings, load_checkpoint, save_checkpoint, train
from separatrix.training.checkpoint import restore_streams, stream_states
from short_training import run, small_model


def test_a_checkpoint_holds_all_that_decides_the_rest(tmp_path: Path) -> None:
    run(tmp_path / "run.pt", n_steps=6)
    content = load_checkpoint(tmp_path / "run.pt")
    assert set(content) >= {"settings", "model", "optimiser", "streams", "n_done", "history"}
    assert content["n_done"] == 6
    assert any(name.endswith("_extra_state") for name in content["model"])  # the stream of dropout masks
    assert not list(tmp_path.glob(".*"))  # nothing half-written is left


def test_a_truncated_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    save_checkpoint(path, {"numbers": torch.arange(1000)})
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(CorruptData, match=r"run\.pt is not a whole checkpoint"):
        load_checkpoint(path)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('code from a file was executed')",))


@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_a_file_that_would_run_code_is_refused_unexecuted(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "run.pt"
    if writer == "pickle":
        path.write_bytes(pickle.dumps(Trap()))
    else:
        torch.save({"format": 1, "model": Trap()}, path)
    with pytest.raises(CorruptData, match="not a whole checkpoint"):
        load_checkpoint(path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "run.pt", {"format": 99})
    with pytest.raises(CorruptData, match="checkpoint format 99; this version reads 3"):
        load_checkpoint(tmp_path / "run.pt")


def test_a_checkpoint_without_a_digest_is_refused(tmp_path: Path) -> None:
    torch.save({"format": 2}, tmp_path / "run.pt")
    with pytest.raises(CorruptData, match=r"not a whole checkpoint \(it ends without a digest"):
        load_checkpoint(tmp_path / "run.pt")


def test_a_run_is_not_continued_under_other_settings(tmp_path: Path) -> None:
    run(tmp_path / "run.pt", n_steps=6)
    with pytest.raises(InvalidInput, match=r"n_steps must be 6, as in the checkpoint .*got 7"):
        run(tmp_path / "run.pt", n_steps=7)


def test_a_run_may_be_continued_with_other_times_to_save(tmp_path: Path) -> None:
    run(tmp_path / "run.pt", n_steps=6)
    assert run(tmp_path / "run.pt", n_steps=6, save_every=1).resumed_at == 6


def test_streams_continue_where_they_were_and_must_have_the_same_names() -> None:
    stream = spawn(0, "a")
    torch.randn(3, generator=stream)
    saved = stream_states({"noise": stream})
    expected = torch.randn(3, generator=stream)
    again = spawn(1, "b")
    restore_streams({"noise": again}, saved)
    assert torch.equal(torch.randn(3, generator=again), expected)
    with pytest.raises(InvalidInput, match=r"streams must be named \['noise'\]"):
        restore_streams({"masks": again}, saved)


def test_asking_again_for_a_finished_run_computes_nothing(tmp_path: Path) -> None:
    first = run(tmp_path / "run.pt", n_steps=6)
    again = run(tmp_path / "run.pt", n_steps=6)
    assert again.resumed_at == 6
    assert again.history.records == first.history.records


def test_the_global_stream_can_be_kept_too(tmp_path: Path) -> None:
    settings = TrainingSettings(n_steps=4, lr=0.1)

    def draw(model: torch.nn.Module, batch: int) -> torch.Tensor:
        return torch.nn.functional.dropout(model[0].weight, 0.5).square().sum()  # draws from torch's global stream

    with torch.random.fork_rng():
        torch.manual_seed(3)
        whole = train(small_model(), int, draw, settings)
        torch.manual_seed(3)
        streams = {"torch": torch.default_generator}
        stop = StopAfter(2, draw)
        with pytest.raises(KeyboardInterrupt):
            train(small_model(), int, stop, TrainingSettings(n_steps=4, lr=0.1, save_every=1),
                  streams=streams, checkpoint=tmp_path / "r")  # fmt: skip
        torch.manual_seed(99)
        rest = train(small_model(), int, draw, TrainingSettings(n_steps=4, lr=0.1, save_every=1),
                     streams=streams, checkpoint=tmp_path / "r")  # fmt: skip
    assert rest.resumed_at == 2
    assert rest.history.records == whole.history.records


class StopAfter:
    """A loss that is interrupted by force after some calls."""

    def __init__(self, calls: int, loss: object) -> None:
        self.left, self.loss = calls, loss

    def __call__(self, model: torch.nn.Module, batch: int) -> torch.Tensor:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return self.loss(model, batch)  # type: ignore[operator, no-any-return]


def test_no_flipped_bit_loads(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    run(path, n_steps=6)
    whole, chooser = path.read_bytes(), random.Random(0)
    for place in [*chooser.sample(range(8 * len(whole)), 300), *range(8 * len(whole) - 800, 8 * len(whole), 8)]:
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(CorruptData, match=r"run\.pt is not a whole checkpoint .*Move it away to start anew"):
            load_checkpoint(path)
    path.write_bytes(whole)
    assert load_checkpoint(path)["n_done"] == 6
    assert torch.load(path, weights_only=True)["n_done"] == 6  # still a file that torch reads


def test_the_checkpoint_of_another_model_is_refused_and_the_model_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "run.pt", n_steps=6)
    settings = TrainingSettings(**{**load_checkpoint(tmp_path / "run.pt")["settings"], "groups": ()})
    wider, other = torch.nn.Linear(5, 9), small_model()
    other[0] = wider
    before = wider.weight.clone()
    for model, sentence in (
        (other, r"belongs to another model: 0\.bias has shape \(8,\) there and \(9,\) here"),
        (torch.nn.Linear(5, 1), r"belongs to another model: .* has no '0\.bias'"),
        (small_model().double(), r"another model: 0\.bias is float32 there and float64 here"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            train(model, int, never, settings, streams={"noise": spawn(0)}, checkpoint=tmp_path / "run.pt")
    assert torch.equal(wider.weight, before)


def test_a_checkpoint_that_is_none_of_a_run_is_refused_by_name(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "run.pt", {"settings": {}, "numbers": torch.arange(3)})
    with pytest.raises(CorruptData, match=r"run\.pt is not the checkpoint of a training run: it has no 'model'"):
        run(tmp_path / "run.pt", n_steps=6)
    save_checkpoint(tmp_path / "run.pt", dict.fromkeys(load_keys(tmp_path), 3))
    with pytest.raises(CorruptData, match=r"run\.pt is not the checkpoint of a training run: "):
        run(tmp_path / "run.pt", n_steps=6)


@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "sgd"])
def test_an_optimiser_that_has_forgotten_its_averages_does_not_go_on(tmp_path: Path, optimiser: str) -> None:
    path = tmp_path / "run.pt"
    model, settings = small_model(), TrainingSettings(n_steps=3, lr=0.01, optimiser=optimiser, beta1=0.9, save_every=1)
    train(model, int, lambda net, _: net(torch.ones(2, 5)).square().mean(), settings, checkpoint=path)
    whole = load_checkpoint(path)
    for state, sentence in (
        ({}, "kept nothing of the steps that were done"),
        ({place: {} for place in whole["optimiser"]["state"]}, "has lost [a-z_]+ of a parameter"),
    ):
        save_checkpoint(path, {**whole, "optimiser": {**whole["optimiser"], "state": state}})
        with pytest.raises(CorruptData, match=sentence):
            train(small_model(), int, never, settings, checkpoint=path)


def load_keys(tmp_path: Path) -> list[str]:
    run(tmp_path / "other.pt", n_steps=6)
    return [name for name in load_checkpoint(tmp_path / "other.pt") if name != "format"]


def test_a_checkpoint_that_cannot_be_written_is_known_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "run.pt", tmp_path / ("x" * 300) / "run.pt", "/proc/run.pt"):
        with pytest.raises(InvalidInput, match=r"^checkpoint "):
            train(small_model(), int, never, TrainingSettings(n_steps=3, lr=0.1), checkpoint=place)


def test_a_full_disk_costs_the_checkpoint_and_not_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = run(None, n_steps=6)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(CheckpointWarning, match=r"run\.pt could not be written: No space left on device") as warned:
        hindered = run(tmp_path / "run.pt", n_steps=6)
    assert len(warned) == 1  # once, not at every step
    assert hindered.history.records == calm.history.records
    assert hindered.unsaved == "No space left on device"
    assert "its checkpoint could not be written: No space left on device" in hindered.message()
    assert list(tmp_path.iterdir()) == []
    assert calm.unsaved is None


def never(model: torch.nn.Module, batch: int) -> torch.Tensor:
    raise AssertionError("a step was made")


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        (("n_done",), 9, "n_done is none of its 8 steps"),
        (("n_done",), None, "n_done is none of its 8 steps"),
        (("history",), {}, "its history is no list"),
        (("measured",), "x", "what it measured last is no number"),
        (("members", "resting"), 3, "which of its members rest"),
        (("optimiser", "param_groups", 0, "betas"), (0.1, 0.2), "another betas"),
        (("optimiser", "state", 0, "exp_avg"), torch.zeros(3, 3), "has not the shape of its parameter"),
        (("optimiser", "state", 0, "step"), torch.tensor(-1.0), "count of steps is none"),
    ],
)
def test_a_forged_part_is_named_although_the_digest_is_right(
    tmp_path: Path, part: tuple[Any, ...], value: Any, sentence: str
) -> None:
    path = tmp_path / "run.pt"
    run(path, n_steps=8, interrupt_at=5)
    content = load_checkpoint(path)
    inside = content
    for name in part[:-1]:
        inside = inside[name]
    inside[part[-1]] = value
    save_checkpoint(path, {name: kept for name, kept in content.items() if name != "format"})
    with pytest.raises(CorruptData, match=sentence):
        run(path, n_steps=8)
