"""The idx format of MNIST: two zero bytes, a type byte, the number of dimensions, their sizes, then the data."""

from __future__ import annotations

import math
import struct

import numpy

from separatrix.core.errors import CorruptData

_UINT8 = 0x08


def read_idx(content: bytes, name: str = "idx file") -> numpy.ndarray:
    """The uint8 array in the decompressed content of an idx file; anything that is not exactly one is refused.

    Args:
        content: the decompressed bytes.
        name: what to call the file in an error.

    Raises:
        CorruptData: a wrong magic number or type, or a length that does not match the dimensions.

    Example:
        >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
        [7, 8, 9]
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise CorruptData(f"{name} is not an idx file: it must begin with two zero bytes, a type and a dimension byte.")
    kind, n_dims = content[2], content[3]
    if kind != _UINT8:
        raise CorruptData(f"{name} must hold uint8 (type byte 0x08); its type byte is 0x{kind:02x}.")
    start = 4 + 4 * n_dims
    if n_dims == 0 or len(content) < start:
        raise CorruptData(f"{name} must give the size of at least one dimension; it announces {n_dims} and ends early.")
    shape = struct.unpack(f">{n_dims}I", content[4:start])
    expected, found = math.prod(shape), len(content) - start
    if expected != found:
        raise CorruptData(f"{name} announces {shape}, so {expected} bytes of data must follow; found {found}.")
    return numpy.frombuffer(content, dtype=numpy.uint8, offset=start).reshape(shape).copy()
