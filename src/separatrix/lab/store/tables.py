"""Records as one flat table: a row per record, a column per argument and per number, for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from separatrix.core.disk import why_not, written_whole
from separatrix.core.errors import InvalidInput, MissingExtra, StoreError

from .records import Store

FIXED = ("key", "experiment", "version", "seed", "seconds", "time", "commit")


def record_rows(store: Store, experiments: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """Each record as a flat row: what identifies it, ``args.NAME`` and ``payload.PATH``; longer arrays are left out.

    Args:
        store: where the records are.
        experiments: names of those to take; all if not given.
    """
    for key, experiment in store.database.query("SELECT key, experiment FROM records ORDER BY experiment, key"):
        record = store.read(key) if experiments is None or experiment in experiments else None
        if record is not None:
            origin = record.provenance
            yield {
                "key": key,
                "experiment": experiment,
                "version": record.cell.version,
                "seed": record.cell.seed,
                **{name: origin.get(name) for name in ("seconds", "time", "commit")},
                **{f"args.{name}": _flat(value) for name, value in record.cell.args.items()},
                **dict(_leaves(record.payload, "payload")),
            }


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    elif isinstance(value, numpy.ndarray):
        if value.size == 1 and value.dtype.kind in "biuf":
            yield path, value.reshape(()).item()
    elif not isinstance(value, list):
        yield path, value


def _flat(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def export_table(store: Store, path: Path, experiments: Collection[str] | None = None) -> int:
    """Write ``record_rows`` as CSV or Parquet, by the ending of the name; says how many rows.

    Raises:
        InvalidInput: another ending.
        MissingExtra: Parquet, and pandas or pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidInput(f"the table must be FILE.csv or FILE.parquet; got {path.name!r}.")
    try:
        return (
            _write_csv(store, path, experiments) if path.suffix == ".csv" else _write_parquet(store, path, experiments)
        )
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {why_not(error)}.") from error


def _write_csv(store: Store, path: Path, experiments: Collection[str] | None) -> int:
    """Two passes, one for the columns, so that memory does not grow with the number of records."""
    columns = dict.fromkeys(FIXED)
    for row in record_rows(store, experiments):
        columns.update(dict.fromkeys(row))
    count = 0
    with written_whole(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        writer = csv.DictWriter(text, list(columns), restval="")
        writer.writeheader()
        for row in record_rows(store, experiments):
            writer.writerow(row)
            count += 1
        text.detach()
    return count


def _write_parquet(store: Store, path: Path, experiments: Collection[str] | None) -> int:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "Parquet needs pandas and pyarrow; install them with: pip install separatrix[parquet]"
        ) from None
    rows = list(record_rows(store, experiments))
    names = dict.fromkeys((*FIXED, *(name for row in rows for name in row)))
    frame = pandas.DataFrame({name: pandas.Series(one_kind([row.get(name) for row in rows])) for name in names})
    with written_whole(path) as stream:
        frame.to_parquet(stream, index=False)
    return len(rows)


def one_kind(values: Sequence[Any]) -> list[Any]:
    """The values of one column, which a file of columns keeps in one type: numbers as they are, mixtures as text.

    Example:
        >>> one_kind([1, None, 2.5]), one_kind([True, 2]), one_kind([10**30])
        ([1.0, None, 2.5], ['true', '2'], ['1000000000000000000000000000000'])
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) == 1 and not (kinds == {int} and any(value is not None and abs(value) >= 2**63 for value in values)):
        return list(values)
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
