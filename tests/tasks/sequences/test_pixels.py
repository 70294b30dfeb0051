from __future__ import annotations

import numpy
import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.tasks import load_mnist, sequential_digits, sequential_mnist


def test_digits_keep_their_pixels_in_another_order() -> None:
    plain, mixed = sequential_digits(permuted=False), sequential_digits()
    assert plain.length == mixed.length == 64
    assert len(plain.train_y) + len(plain.valid_y) + len(plain.test_y) == 1797
    assert torch.equal(plain.train_y, mixed.train_y)
    assert torch.equal(plain.train_x.sort(1).values, mixed.train_x.sort(1).values)
    assert not torch.equal(plain.train_x, mixed.train_x)
    # one order for all images and parts
    order = torch.tensor(
        [int((plain.train_x[:, :, 0] == mixed.train_x[:, k]).all(0).nonzero()[0]) for k in range(20, 30)]
    )
    assert torch.equal(plain.test_x[:, order], mixed.test_x[:, 20:30])


def test_upsampling_repeats_pixels() -> None:
    small, large = sequential_digits(permuted=False), sequential_digits(permuted=False, upsample=3)
    assert large.length == 64 * 9
    assert torch.equal(large.train_x.reshape(-1, 24, 24)[:, ::3, ::3], small.train_x.reshape(-1, 8, 8))


def test_a_validation_part_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="n_valid must be below 1437"):
        sequential_digits(n_valid=1437)
    assert len(sequential_digits(n_valid=0).valid_y) == 0


@pytest.mark.needs_data
def test_mnist_has_the_published_order_and_split(monkeypatch: pytest.MonkeyPatch) -> None:
    mnist = load_mnist()  # once: unpacking it takes longer than all the rest
    monkeypatch.setattr("separatrix.tasks.sequences.pixels.load_mnist", lambda *_, **__: mnist)
    data = sequential_mnist(n_train=100)
    assert data.length == 784
    assert (len(data.valid_y), len(data.test_y)) == (10000, 10000)
    draws = numpy.random.RandomState(1234)
    order, split = draws.permutation(784), draws.permutation(60000)
    expected = mnist.train_images[split[7]].flatten()[order].float() / 255
    assert torch.equal(data.train_x[7, :, 0], expected)
    assert int(data.valid_y[0]) == int(mnist.train_labels[split[50000]])
    plain = sequential_mnist(n_train=100, permuted=False, pool=2)
    assert plain.length == 196


def test_more_training_images_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidInput, match="n_train must be at most 50000"):
        sequential_mnist(n_train=50001)
