"""Images read one pixel at a time, in order or permuted: sequential MNIST and the small digits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import final

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn

from ..images.digits import N_CLASSES, N_DIGITS, load_digits
from ..images.mnist import load_mnist, pixel_vectors

MNIST_SEED = 1234
"""Of the published permutation, and after it of the split."""
N_TRAINING = 50000
DIGITS_TEST = 360


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class PixelSequences:
    """Images as sequences of one number in [0, 1] a step, in three parts, with their classes."""

    name: str
    train_x: Float[Tensor, "p t 1"]
    train_y: Int[Tensor, " p"]
    valid_x: Float[Tensor, "q t 1"]
    valid_y: Int[Tensor, " q"]
    test_x: Float[Tensor, "r t 1"]
    test_y: Int[Tensor, " r"]
    sha256: str = ""
    """Digest of the files, for the record of a run; empty for images that come with a package."""

    n_classes: int = N_CLASSES

    @property
    def length(self) -> int:
        """Steps of a sequence."""
        return self.train_x.shape[1]


def sequential_mnist(
    *,
    permuted: bool = True,
    pool: int = 1,
    n_train: int = N_TRAINING,
    path: str | Path | None = None,
    download: bool = False,
) -> PixelSequences:
    """MNIST pixel by pixel: 784 steps, 50,000 images for training, 10,000 for validation, 10,000 for the test.

    Permutation and split are the published ones: numpy's ``RandomState(1234)`` draws first ``permutation(784)``, then
    ``permutation(60000)``, whose last 10,000 are for validation. They are drawn also where the order is not permuted,
    so that the split is the same.

    Args:
        permuted: whether all images have their pixels in the same random order.
        pool: average squares of ``pool`` x ``pool`` pixels first; 2 gives 196 steps, with a permutation of their own.
        n_train: use the first so many of the training images.
        path: a folder that holds the files; else they are looked for as ``locate`` does.
        download: whether missing files may be fetched.

    Raises:
        DatasetUnavailable: the files were found nowhere.

    Source: kerg2022, appendix A.1.2.

    Cost: half a second and 4 bytes a pixel.
    """
    require_integer(n_train, "n_train", at_least=1)
    if n_train > N_TRAINING:
        raise InvalidInput(f"n_train must be at most {N_TRAINING}; got {n_train}.")
    mnist = load_mnist(path, download=download)
    images, labels = mnist.train_images, mnist.train_labels
    n_pixels = (images.shape[-1] // pool) ** 2 if pool > 0 else 0
    draws = numpy.random.RandomState(MNIST_SEED)
    order = torch.from_numpy(draws.permutation(max(n_pixels, 1)))
    split = torch.from_numpy(draws.permutation(len(images)))
    n_valid = len(images) // 6
    train, valid = split[: len(images) - n_valid][:n_train], split[len(images) - n_valid :]
    if not permuted:
        order = torch.arange(n_pixels)

    def steps(chosen: Tensor) -> Tensor:
        return pixel_vectors(chosen, pool=pool)[:, order].unsqueeze(-1)

    return PixelSequences(
        "permuted MNIST" if permuted else "sequential MNIST",
        steps(images[train]),
        labels[train],
        steps(images[valid]),
        labels[valid],
        steps(mnist.test_images),
        mnist.test_labels,
        mnist.sha256,
    )


def sequential_digits(*, permuted: bool = True, upsample: int = 1, n_valid: int = 237, seed: int = 0) -> PixelSequences:
    """The 8 x 8 digits of scikit-learn pixel by pixel: ``64 upsample^2`` steps, nothing to download.

    Args:
        permuted: whether all images have their pixels in the same random order.
        upsample: every pixel becomes a square of so many pixels a side.
        n_valid: images taken from the 1437 for training; 360 are always for the test.
        seed: of the split and of the order of pixels.

    Example:
        >>> data = sequential_digits(upsample=2)
        >>> data.train_x.shape, len(data.test_y)
        (torch.Size([1200, 256, 1]), 360)
    """
    require_integer(upsample, "upsample", at_least=1)
    require_integer(n_valid, "n_valid", at_least=0)
    n_train = N_DIGITS - DIGITS_TEST - n_valid
    if n_train < 1:
        raise InvalidInput(f"n_valid must be below {N_DIGITS - DIGITS_TEST}; got {n_valid}.")
    digits = load_digits(N_DIGITS - DIGITS_TEST, generator=spawn(seed, "digits", "split"))
    n_pixels = 64 * upsample**2
    order = torch.randperm(n_pixels, generator=spawn(seed, "digits", "pixels", upsample))
    if not permuted:
        order = torch.arange(n_pixels)

    def steps(vectors: Tensor) -> Tensor:
        square = vectors.reshape(-1, 8, 8).repeat_interleave(upsample, 1).repeat_interleave(upsample, 2)
        return square.flatten(1)[:, order].unsqueeze(-1)

    return PixelSequences(
        "permuted digits" if permuted else "sequential digits",
        steps(digits.train_x[:n_train]),
        digits.train_y[:n_train],
        steps(digits.train_x[n_train:]),
        digits.train_y[n_train:],
        steps(digits.test_x),
        digits.test_y,
    )
