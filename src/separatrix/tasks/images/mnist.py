"""MNIST from its idx files, found and verified through the registry."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import final

import numpy
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn import functional

from separatrix.core.errors import CorruptData, InvalidInput
from separatrix.core.names import suggest_options

from ..store.location import Located, locate
from .idx import read_idx

SIDE = 28
N_CLASSES = 10


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Mnist:
    """Images as stored (0 to 255) and their classes."""

    train_images: UInt8[Tensor, "p 28 28"]
    train_labels: Int[Tensor, " p"]
    test_images: UInt8[Tensor, "q 28 28"]
    test_labels: Int[Tensor, " q"]
    sha256: str
    """Digest of the files, for the record of a run."""


def load_mnist(path: str | Path | None = None, *, download: bool = False) -> Mnist:
    """The 60000 training and 10000 test images.

    Args:
        path: a folder that holds the files; else they are looked for as ``locate`` does.
        download: whether missing files may be fetched.

    Raises:
        DatasetUnavailable: the files were found nowhere.
        CorruptData: a file has another content than registered.

    Cost: half a second and 55 MB.
    """
    located = locate("mnist", path=path, download=download)
    parts = {split: _read(located, split) for split in located.paths}
    for half in ("train", "test"):
        if len(parts[f"{half}-images"]) != len(parts[f"{half}-labels"]):
            raise CorruptData(f"mnist has {len(parts[f'{half}-images'])} {half} images and another number of labels.")
    return Mnist(
        train_images=torch.from_numpy(parts["train-images"]),
        train_labels=torch.from_numpy(parts["train-labels"]).long(),
        test_images=torch.from_numpy(parts["test-images"]),
        test_labels=torch.from_numpy(parts["test-labels"]).long(),
        sha256=located.digest,
    )


def _read(located: Located, split: str) -> numpy.ndarray:
    return read_idx(located.read(split), located.paths[split].name)


def pixel_vectors(
    images: UInt8[Tensor, "p side side"], *, pool: int = 1, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "p d"]:
    """Images as vectors with entries in [0, 1], averaged over squares of ``pool`` x ``pool`` pixels.

    Example:
        >>> pixel_vectors(torch.full((2, 28, 28), 255, dtype=torch.uint8), pool=2).shape
        torch.Size([2, 196])
    """
    side = images.shape[-1]
    if pool < 1 or side % pool:
        raise InvalidInput(f"pool must divide the side of the image, {side}; got {pool}.")
    scaled = images.to(dtype) / 255
    return functional.avg_pool2d(scaled.unsqueeze(1), pool).flatten(1) if pool > 1 else scaled.flatten(1)
