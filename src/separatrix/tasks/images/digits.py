"""Handwritten digits of 8 x 8 pixels: the optical digits that scikit-learn brings along, so no download is needed."""

from __future__ import annotations

import dataclasses
import importlib
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

N_DIGITS = 1797
N_CLASSES = 10


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Digits:
    """Training and test images, pixels in [0, 1], and their classes."""

    train_x: Float[Tensor, "p d"]
    train_y: Int[Tensor, " p"]
    test_x: Float[Tensor, "q d"]
    test_y: Int[Tensor, " q"]


def load_digits(
    n_train: int, *, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32
) -> Digits:
    """The 1797 digits in a random order; the first ``n_train`` for training, the rest for testing.

    Args:
        n_train: size of the training set, below 1797.
        generator: decides the order.
        dtype: of the images.

    Raises:
        InvalidInput: a training set that leaves nothing to test on.
        MissingExtra: scikit-learn is not installed.
    """
    generator = default_generator(generator)
    require_integer(n_train, "n_train", at_least=1)
    if n_train >= N_DIGITS:
        raise InvalidInput(f"n_train must be below {N_DIGITS}, the number of digits; got {n_train}.")
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError as error:
        raise MissingExtra("the 8 x 8 digits come with scikit-learn: install scikit-learn.") from error
    pixels, classes = datasets.load_digits(return_X_y=True)
    order = torch.randperm(N_DIGITS, generator=generator)
    x = torch.as_tensor(pixels / 16.0, dtype=dtype)[order]
    y = torch.as_tensor(classes, dtype=torch.int64)[order]
    return Digits(x[:n_train], y[:n_train], x[n_train:], y[n_train:])
