from __future__ import annotations

import struct
from pathlib import Path

import numpy
import pytest
from hypothesis import given, strategies as st

from separatrix.core import CorruptData
from separatrix.tasks import locate, read_idx


def write_idx(array: numpy.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 255))
def test_round_trip_of_any_shape(shape: list[int], value: int) -> None:
    array = numpy.full(shape, value, dtype=numpy.uint8)
    back = read_idx(write_idx(array))
    assert back.shape == tuple(shape)
    assert (back == array).all()
    back[...] = 0  # the array is the caller's own


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "two zero bytes"),
        (b"\0\1\x08\1", "two zero bytes"),
        (b"\0\0\x0d\1\0\0\0\1\0\0\0\0", "type byte is 0x0d"),
        (b"\0\0\x08\0\7", "at least one dimension"),
        (b"\0\0\x08\2\0\0\0\1", "ends early"),
        (b"\0\0\x08\1\0\0\0\3\1\2", "3 bytes of data must follow; found 2"),
        (b"\0\0\x08\1\0\0\0\1\1\2", "1 bytes of data must follow; found 2"),
    ],
    ids=["empty", "magic", "type", "no dims", "short header", "short data", "trailing bytes"],
)
def test_anything_else_is_refused(content: bytes, match: str) -> None:
    with pytest.raises(CorruptData, match=match):
        read_idx(content, "digits")


@pytest.mark.needs_data
def test_real_digits_have_the_published_sums(data_dir: Path) -> None:
    mnist = locate("mnist", path=data_dir)
    images, labels = read_idx(mnist.read("test-images")), read_idx(mnist.read("test-labels"))
    assert images.shape == (10000, 28, 28)
    assert int(images.sum(dtype=numpy.int64)) == 264_923_200
    assert numpy.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
