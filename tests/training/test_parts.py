from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forged_checkpoints as forged
from separatrix.core import CorruptData
from separatrix.training import load_checkpoint, save_checkpoint


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_share_of_forged_checkpoints_ends_in_one_sentence(seed: int) -> None:
    answer = forged.tried(0.01, seed)
    assert answer["tried"] > 20
    assert not answer["raw"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_forged_checkpoint_ends_in_one_sentence() -> None:
    answer = forged.tried(1.0, 0)
    assert answer["tried"] > 5000
    assert not answer["raw"]


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (("members", "resting"), [True], "which of its members rest"),
        (("members", "diverged_at"), [4], "when its members diverged"),
        (("members", "good"), [], "last good parameters"),
        (("members", "good_buffers"), {}, "last good buffers"),
        (("optimiser", "param_groups", 0, "params"), [1, 0, 2, 3, 4, 5], "in another order"),
        (("measured",), 7, "none of its steps"),
        (("watch", "factor"), float("nan"), "factor of its learning rates"),
        (("watch", "best", "value"), "x", "best state is none"),
        (("history", 1, "step"), 0, "no list of measurements"),
        (("history", 1, "loss"), [1.0, 2.0], "no loss of each member at step 1"),
    ],
)
def test_a_part_that_cannot_be_is_named(tmp_path: Path, way: tuple[Any, ...], value: Any, sentence: str) -> None:
    path = tmp_path / "run.pt"
    forged.single(path, 5)
    content = load_checkpoint(path)
    inside: Any = content
    for name in way[:-1]:
        inside = inside[name]
    inside[way[-1]] = value
    save_checkpoint(path, {name: part for name, part in content.items() if name != "format"})
    with pytest.raises(CorruptData, match=sentence):
        forged.single(path)
