from __future__ import annotations

from pathlib import Path

import pytest
import torch

from separatrix import tasks
from separatrix.core import DatasetUnavailable, InvalidInput


@pytest.mark.needs_data
def test_mnist_has_its_known_sums_and_classes(data_dir: Path) -> None:
    mnist = tasks.load_mnist()
    train, test = mnist.train_images, mnist.test_images
    assert (tuple(train.shape), tuple(test.shape)) == ((60000, 28, 28), (10000, 28, 28))
    assert (int(train.sum()), int(test.sum())) == (1567298545, 264923200)
    assert int(train.sum()) / train.numel() / 255 == pytest.approx(0.130660, abs=5e-7)
    shade, often = torch.arange(256).double(), train.flatten().bincount(minlength=256).double()
    spread = (often * (shade - int(train.sum()) / train.numel()).square()).sum() / (train.numel() - 1)
    assert spread.sqrt().item() / 255 == pytest.approx(0.308108, abs=5e-7)
    assert int(test.sum()) / test.numel() / 255 == pytest.approx(0.132515, abs=5e-7)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert mnist.train_labels.bincount().tolist() == counts
    assert mnist.test_labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert mnist.sha256 == tasks.find_dataset("mnist").sha256


def test_missing_files_are_said_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    monkeypatch.setattr("separatrix.tasks.store.location.cache_folder", lambda: tmp_path / "none")
    with pytest.raises(DatasetUnavailable, match=r"^mnist was not found\. Looked in"):
        tasks.load_mnist()


def test_pooling_averages_squares(generator: torch.Generator) -> None:
    images = torch.randint(256, (3, 28, 28), generator=generator, dtype=torch.uint8)
    pooled = tasks.pixel_vectors(images, pool=2, dtype=torch.float64)
    assert pooled.shape == (3, 196)
    assert pooled[1, 15].item() == pytest.approx(images[1, 2:4, 2:4].double().mean().item() / 255)
    assert torch.equal(tasks.pixel_vectors(images), images.flatten(1) / 255)


def test_a_pool_that_does_not_divide_the_side_is_refused() -> None:
    with pytest.raises(InvalidInput, match="pool must divide the side of the image, 28; got 3"):
        tasks.pixel_vectors(torch.zeros(1, 28, 28, dtype=torch.uint8), pool=3)
