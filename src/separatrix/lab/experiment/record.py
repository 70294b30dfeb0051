"""A record: the payload of one cell with its provenance, as one file of text that no program can execute.

Payloads hold numbers, strings, lists, dictionaries, tensors and numpy arrays. Arrays are written as base64 of their
bytes, so that a record read back is the same bit for bit. The digest covers the payload and the cell, not the
provenance: two machines that compute the same numbers get the same digest.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, final

import numpy

from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.core.names import suggest_options

from .cell import Cell, canonical_json

FORMAT = 1


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
        return _digest(self.cell, encode(self.payload))

    def to_text(self) -> str:
        """The record as it stands in its file."""
        payload = encode(self.payload)
        body = {
            "format": FORMAT,
            "cell": json.loads(self.cell.to_json()),
            "digest": _digest(self.cell, payload),
            "payload": payload,
            "provenance": encode(dict(self.provenance)),
        }
        return json.dumps(body, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_text(cls, text: str, name: str = "record") -> Record:
        """Read a record and verify its digest; anything truncated or edited is refused by name."""
        try:
            body = json.loads(text)
            if body["format"] > FORMAT:
                raise StoreError(f"{name} was written by a newer version of separatrix; upgrade to read it.")
            cell = Cell(**body["cell"])
            expected, payload = body["digest"], body["payload"]
            found, origin = _digest(cell, payload), decode(body["provenance"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(f"{name} is not a whole record ({type(error).__name__}: {error}).") from None
        if found != expected:
            raise CorruptData(f"{name} was changed: its digest is {found[:12]}, written was {str(expected)[:12]}.")
        return cls(cell, decode(payload), origin)


def _digest(cell: Cell, payload: Any) -> str:
    return hashlib.sha256(canonical_json([cell.identity(), payload]).encode()).hexdigest()


def encode(value: Any) -> Any:
    """A payload as JSON values; arrays become ``{"__array__": dtype, "shape": ..., "base64": ...}``."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"__float__": repr(float(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if hasattr(value, "detach"):  # a torch tensor, without importing torch here
        value = value.detach().cpu().numpy()
    if isinstance(value, numpy.generic):
        return encode(value.item())
    if isinstance(value, numpy.ndarray):
        return _encode_array(value)
    raise InvalidInput(
        f"a payload may hold numbers, strings, lists, dictionaries and arrays; got {type(value).__name__}."
    )


def _encode_array(array: numpy.ndarray) -> dict[str, Any]:
    if array.dtype.kind not in "biufc":
        raise InvalidInput(f"a payload's arrays must hold numbers; got dtype {array.dtype}.")
    little = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    return {"__array__": little.dtype.str, "shape": list(array.shape), "base64": data}


def decode(value: Any) -> Any:
    """The inverse of ``encode``; arrays come back as numpy arrays."""
    if isinstance(value, dict):
        if "__array__" in value:
            flat = numpy.frombuffer(base64.b64decode(value["base64"]), dtype=numpy.dtype(value["__array__"]))
            return flat.reshape(value["shape"]).copy()
        if "__float__" in value:
            return float(value["__float__"])
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value
