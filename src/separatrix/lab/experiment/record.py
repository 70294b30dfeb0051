"""A record: the payload of one cell with its provenance, as one file of text that no program can execute.

Payloads hold numbers, strings, lists, dictionaries, tensors and numpy arrays. Arrays are written as base64 of their
bytes, so that a record read back is the same bit for bit. The digest covers the payload and the cell, not the
provenance: two machines that compute the same numbers get the same digest.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, final

import numpy

from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.core.names import suggest_options
from separatrix.core.result import brief

from .cell import Cell, canonical_json

FORMAT = 1
_SHORT_BITS = 13_000
"""An integer of so many bits has fewer than 4000 digits; the power of ten need not be computed for it."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Record:
    """What one cell computed, and how."""

    cell: Cell
    payload: dict[str, Any]
    provenance: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of cell and payload."""
        return self._written[0]

    def to_text(self) -> str:
        """The record as it stands in its file."""
        return self._written[1]

    @functools.cached_property
    def _written(self) -> tuple[str, str]:
        """Digest and text, made once: they are asked for when a cell ends, when it is published and when indexed."""
        payload = encode(self.payload)
        digest = _digest(self.cell, payload)
        body = {
            "format": FORMAT,
            "cell": json.loads(self.cell.to_json()),
            "digest": digest,
            "payload": payload,
            "provenance": encode(dict(self.provenance)),
        }
        return digest, json.dumps(body, indent=1, allow_nan=False) + "\n"

    @property
    def size(self) -> int:
        """Characters of its text."""
        return len(self._written[1])

    @property
    def is_plain(self) -> bool:
        """Whether its payload is JSON as it is: no arrays, no numbers that are not finite."""
        return not any(mark in self._written[1] for mark in _RESERVED)

    @classmethod
    def from_text(cls, text: str, name: str = "record", *, known: bool = False) -> Record:
        """Read a record and verify its digest; anything truncated or edited is refused by name.

        Args:
            text: as ``to_text`` gave it.
            name: of the record, as errors call it.
            known: whether the text is already known to be what was written, so that its digest need not be made again.
        """
        try:
            body = json.loads(text)
            if body["format"] > FORMAT:
                raise StoreError(f"{name} was written by a newer version of separatrix; upgrade to read it.")
            cell = Cell(**body["cell"])
            expected = body["digest"]
            found = expected if known else _digest(cell, body["payload"])
            payload, origin = body["payload"], body["provenance"]
            if any(mark in text for mark in _RESERVED):
                payload, origin = decode(payload), decode(origin)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
            raise CorruptData(f"{name} is not a whole record ({type(error).__name__}: {brief(str(error))}).") from None
        if found != expected:
            raise CorruptData(f"{name} was changed: its digest is {found[:12]}, written was {str(expected)[:12]}.")
        record = cls(cell, payload, origin)
        vars(record)["_written"] = (expected, text)
        return record


def _digest(cell: Cell, payload: Any) -> str:
    return hashlib.sha256(canonical_json([cell.identity(), payload]).encode()).hexdigest()


def encode(value: Any) -> Any:
    """A payload as JSON values, from which ``decode`` makes the same again.

    Arrays become ``{"__array__": dtype, "shape": ..., "base64": ...}``, numbers that are not finite
    ``{"__float__": "nan"}``, and a dictionary of the payload with keys of that kind ``{"__items__": [[key, value],
    ...]}``. Tuples come back as lists, tensors and NumPy numbers as arrays and numbers of Python.

    Raises:
        InvalidInput: something that would not come back: other objects, keys that are no strings, dictionaries in
            themselves, strings that are no text.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise InvalidInput("a payload must not be nested so deeply, nor contain itself.") from None


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, int):
        return _encode_integer(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"__float__": repr(float(value))}
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if hasattr(value, "detach"):  # a torch tensor, without importing torch here
        value = _as_array(value)
    if isinstance(value, numpy.generic):
        return _encode_scalar(value)
    if isinstance(value, numpy.ndarray):
        return _encode_array(value)
    raise InvalidInput(
        f"a payload may hold numbers, strings, lists, dictionaries and arrays; got {type(value).__name__}."
    )


def _encode_text(value: str) -> str:
    text = str.__str__(value)  # the characters, of a member of an enumeration too
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"a payload's strings must be text that can be written; got {text!a}.") from None
    return text


def _encode_integer(value: int) -> int:
    number = int(value)
    if number.bit_length() > _SHORT_BITS and abs(number) >= 10**4000:  # longer ones cannot be read back
        raise InvalidInput("a payload's integers must have at most 4000 digits.")
    return number


def _encode_scalar(value: numpy.generic) -> Any:
    plain = value.item()
    if isinstance(plain, complex) or plain is value:  # long doubles are no numbers of Python
        return _encode_array(numpy.asarray(value))
    return _encode(plain)


def _encode_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise InvalidInput(f"a payload's dictionaries must have strings as keys; got {brief(key)}.")
    encoded = {_encode_text(key): _encode(item) for key, item in value.items()}
    if len(encoded) != len(value):
        raise InvalidInput("a payload's dictionary has two keys that are written alike.")
    if any(key in _RESERVED for key in encoded):
        return {"__items__": [[key, item] for key, item in encoded.items()]}
    return encoded


_RESERVED = ("__array__", "__float__", "__items__")


def _as_array(tensor: Any) -> numpy.ndarray:
    try:
        array: numpy.ndarray = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"a payload's tensors must be dense and of a type that NumPy has: {reason}.") from None
    return array


def _encode_array(array: numpy.ndarray) -> dict[str, Any]:
    if array.dtype.kind not in "biufc":
        raise InvalidInput(f"a payload's arrays must hold numbers; got dtype {array.dtype}.")
    little = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    return {"__array__": little.dtype.str, "shape": list(array.shape), "base64": data}


def decode(value: Any) -> Any:
    """The inverse of ``encode``; arrays come back as numpy arrays.

    Raises:
        ValueError, KeyError, TypeError: it was not made by ``encode``.
    """
    if isinstance(value, dict):
        if "__array__" in value:
            flat = numpy.frombuffer(base64.b64decode(value["base64"]), dtype=numpy.dtype(value["__array__"]))
            return flat.reshape(value["shape"]).copy()
        if "__float__" in value:
            return float(value["__float__"])
        if "__items__" in value:
            return {key: decode(item) for key, item in value["__items__"]}
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value
