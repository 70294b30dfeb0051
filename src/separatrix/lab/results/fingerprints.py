"""What a published file keeps of each record: its digest, and a few numbers by which another machine can check it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from ..experiment.record import Record

N_NUMBERS = 8
"""Numbers kept of each record."""
MOST_RECORDS = 2000
"""Records of one run of which a published file keeps any: those with the smallest keys, which are digests of the cells
and so as good as drawn at random, before anything was computed. The file stays small however large the run."""


def fingerprint(record: Record) -> dict[str, Any]:
    """Arguments, seed and digest of a record, with up to ``N_NUMBERS`` of its finite numbers by their path.

    Which numbers are kept follows from the key of the cell and the paths, not from the values.
    """
    found = dict(numbers(record.payload))
    order = sorted(found, key=lambda path: hashlib.sha256(f"{record.cell.key} {path}".encode()).digest())
    return {
        "args": dict(record.cell.args),
        "seed": record.cell.seed,
        "digest": record.digest,
        "numbers": {path: found[path] for path in sorted(order[:N_NUMBERS])},
    }


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every finite real number of a payload with its path; the entries of arrays by their flat index."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from numbers(item, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from numbers(item, f"{path}/{index}")
    elif isinstance(value, bool | str) or value is None:
        return
    elif isinstance(value, int | float):
        if numpy.isfinite(value):
            yield path, float(value)
    else:
        array = numpy.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if array.dtype.kind in "iuf":
            flat = array.reshape(-1)
            yield from ((f"{path}/{index}", float(x)) for index, x in enumerate(flat) if numpy.isfinite(x))
