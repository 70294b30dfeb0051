from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from separatrix.core import CorruptData, InvalidInput, spawn
from separatrix.training import TrainingSettings, load_checkpoint, save_checkpoint, train
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
    torch.save({"format": 99}, tmp_path / "run.pt")
    with pytest.raises(CorruptData, match="checkpoint format 99; this version reads 2"):
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
