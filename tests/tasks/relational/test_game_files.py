from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from separatrix.core import CorruptData, InvalidInput, MissingData
from separatrix.tasks import GameTask, read_game


def good() -> dict[str, Any]:
    task = GameTask("between")
    index, label = task.test_batch(8)
    return {
        "images": task.canvas(index).numpy().astype(numpy.int64),
        "labels": label.numpy()[:, None],
        "tasks": numpy.repeat([[0], [1]], 4, axis=0),
    }


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "game.npz", "w") as archive:
        archive.writestr("read me.txt", "no arrays")
    with pytest.raises(CorruptData, match=r"game\.npz must hold the arrays"):
        read_game(tmp_path / "game.npz")


def written(folder: Path, arrays: dict[str, Any]) -> Path:
    path = folder / "game.npz"
    numpy.savez(path, **arrays)
    return path


def test_a_file_becomes_problems_with_the_same_boards(tmp_path: Path) -> None:
    arrays = good()
    file = read_game(written(tmp_path, arrays))
    found = file.problems()
    boards = (found.images[found.index] * 255).round().to(torch.uint8)
    again = boards.reshape(8, 3, 3, 3, 12, 12).permute(0, 1, 4, 2, 5, 3).reshape(8, 36, 36, 3)
    assert numpy.array_equal(again.numpy(), arrays["images"])
    assert found.label.tolist() == arrays["labels"][:, 0].tolist()
    assert len(file.problems(task=1)) == 4
    with pytest.raises(InvalidInput, match="task must be one of those in the file, 0, 1; got 5"):
        file.problems(task=5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tasks": None}, r"must hold the arrays .* got images \(8, 36, 36, 3\), labels \(8, 1\)\."),
        ({"images": numpy.zeros((8, 12, 12, 3))}, r"got images \(8, 12, 12, 3\)"),
        ({"labels": numpy.zeros(8)}, r"labels \(8,\)"),
        ({"labels": numpy.full((8, 1), 2)}, "labels of game.npz must lie in 0 to 1; got 2 to 2"),
        ({"images": numpy.full((8, 36, 36, 3), 300)}, "must lie in 0 to 255"),
        ({"images": numpy.full((8, 36, 36, 3), 0.5)}, "images of game.npz must be whole numbers"),
        ({"labels": numpy.full((8, 1), numpy.nan)}, "labels of game.npz must be whole numbers"),
        ({"labels": numpy.array([["a"]] * 8)}, "labels of game.npz must be whole numbers; got <U1"),
    ],
)
def test_a_file_of_another_form_is_answered_with_what_was_found(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    arrays = {key: value for key, value in {**good(), **change}.items() if value is not None}
    with pytest.raises(CorruptData, match=words):
        read_game(written(tmp_path, arrays))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="there is none"):
        read_game(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(CorruptData, match=r"is no \.npz file"):
        read_game(tmp_path / "bad.npz")
