"""The public files of the relational games: boards of 36 x 36 pixels with labels and tasks."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from pathlib import Path
from typing import final

import numpy
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from separatrix.core.errors import CorruptData, InvalidInput, MissingData
from separatrix.core.names import choose, suggest_options
from separatrix.core.result import Result

from ..store.location import locate
from .polyominoes import CELL, GRID, as_pictures, to_cells

PUBLIC = ("between_hexos", "between_stripes", "3task_col_patts_hexos", "3task_col_patts_stripes")
"""Parts of the registered data set ``"relations-game"``."""
_ARRAYS = ("images", "labels", "tasks")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PictureProblems(Result):
    """Given problems with their pictures: what a model is asked that was trained on a task of the same form."""

    images: Float[Tensor, "n 3 h w"]
    """Distinct pictures."""
    index: Int[Tensor, "batch t"]
    label: Int[Tensor, " batch"]

    def __len__(self) -> int:
        return len(self.label)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GameFile(Result):
    """The content of one file."""

    name: str
    images: UInt8[Tensor, "n 36 36 3"]
    labels: Int[Tensor, " n"]
    tasks: Int[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.labels)

    def problems(self, task: int | None = None) -> PictureProblems:
        """Boards as indices of their distinct cells; of one task if the file holds several.

        Cost: a sort of all cells.
        """
        chosen = torch.ones(len(self), dtype=torch.bool) if task is None else self.tasks == task
        if not bool(chosen.any()):
            known = ", ".join(map(str, self.tasks.unique().tolist()))
            raise InvalidInput(f"task must be one of those in the file, {known}; got {task}.")
        cells = to_cells(self.images[chosen].numpy())
        rows = cells.reshape(-1, CELL * CELL * 3).numpy()
        keys = numpy.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
        _, first, inverse = numpy.unique(keys, return_index=True, return_inverse=True)
        pictures = as_pictures(torch.from_numpy(rows[first]).reshape(-1, CELL, CELL, 3))
        index = torch.from_numpy(inverse.reshape(-1, GRID * GRID)).to(torch.int64)
        return PictureProblems(pictures, index, self.labels[chosen])


def read_game(path: str | Path, *, n_answers: int = 2) -> GameFile:
    """A ``.npz`` file with the arrays images (N, 36, 36, 3), labels (N, 1) and tasks (N, 1).

    Args:
        path: of the file.
        n_answers: labels must lie below this.

    Raises:
        MissingData: there is no such file.
        CorruptData: an array is missing, has another shape, or labels lie outside.
    """
    place = Path(path)
    if not place.is_file():
        raise MissingData(f"path must be a .npz file of a relational game; there is none at {place}.")
    return _parsed(place.read_bytes(), place.name, n_answers)


def public_game(part: str, *, path: str | Path | None = None, download: bool = False) -> GameFile:
    """A registered file of held-out boards: ``"between_hexos"``, ``"between_stripes"``, ``"3task_col_patts_hexos"``
    or ``"3task_col_patts_stripes"``.

    Raises:
        DatasetUnavailable: the file was found nowhere.
    """
    choose("part", part, PUBLIC)
    located = locate("relations-game", path=path, download=download)
    return _parsed(located.read(part), part, 2)


def _parsed(content: bytes, name: str, n_answers: int) -> GameFile:
    try:
        with numpy.load(io.BytesIO(content), allow_pickle=False) as held:
            given = {key: held[key] for key in held.files}
            arrays = {key: array for key, array in given.items() if isinstance(array, numpy.ndarray)}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CorruptData(f"{name} is no .npz file of arrays: {error}.") from None
    shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "none"
    side = GRID * CELL
    n = len(arrays["labels"]) if "labels" in arrays and arrays["labels"].ndim else -1
    wanted = {"images": (n, side, side, 3), "labels": (n, 1), "tasks": (n, 1)}
    if any(key not in arrays or arrays[key].shape != wanted[key] for key in _ARRAYS) or n < 1:
        raise CorruptData(
            f"{name} must hold the arrays images (N, {side}, {side}, 3), labels (N, 1) and tasks (N, 1); got {shapes}."
        )
    for key in _ARRAYS:
        _require_whole(arrays[key], f"{key} of {name}")
    images, labels = arrays["images"], arrays["labels"]
    if images.min() < 0 or images.max() > 255:
        raise CorruptData(f"images of {name} must lie in 0 to 255; got {images.min()} to {images.max()}.")
    if labels.min() < 0 or labels.max() >= n_answers:
        raise CorruptData(f"labels of {name} must lie in 0 to {n_answers - 1}; got {labels.min()} to {labels.max()}.")
    return GameFile(
        name,
        torch.from_numpy(images.astype(numpy.uint8)),
        torch.from_numpy(labels[:, 0].astype(numpy.int64)),
        torch.from_numpy(arrays["tasks"][:, 0].astype(numpy.int64)),
    )


def _require_whole(array: numpy.ndarray, name: str) -> None:
    """Whole numbers, of whatever type: a share of 255 in [0, 1] would become black."""
    if array.dtype.kind not in "iufb" or not bool(numpy.all(numpy.isfinite(array) & (numpy.floor(array) == array))):
        kind = array.dtype if array.dtype.kind not in "iufb" else f"{array.dtype} with others among them"
        raise CorruptData(f"{name} must be whole numbers; got {kind}.")
