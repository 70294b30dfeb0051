"""Records between stores: carried in an archive, or taken over from another store.

A record that both have is one record, if both computed the same; then the provenance of the other is added to it. Two
records of one cell with different content are both kept out of each other's way and named.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from separatrix.core.disk import read_regular, why_not, written_whole
from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.core.result import Result

from ..experiment.record import Record
from .records import Store, verified
from .runs import StoredRun, insert_run, run_from_body

MOST_BYTES = 1 << 28
"""No record is larger; an archive that announces more is not read."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Taken(Result):
    """What came of taking records over."""

    n_new: int
    n_equal: int
    """Records that both had, with the same content; their provenances are joined."""
    conflicts: tuple[str, ...]
    """Keys of cells for which the two have different content; what was there before is kept."""
    damaged: tuple[str, ...]
    """Files that are no whole records; they were left out."""


def export_archive(store: Store, path: Path) -> int:
    """Write every record and run of a store into one zip file; says how many records.

    Raises:
        StoreError: the file cannot be written.
    """
    count = 0
    try:
        with written_whole(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for key in sorted(store.keys()):
                record = store.read(key)
                if record is not None:
                    archive.writestr(f"records/{key}.json", record.to_text())
                    count += 1
            for file in sorted((store.folder / "runs").glob("*.json")):
                archive.writestr(f"runs/{file.name}", read_regular(file))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {why_not(error)}.") from error
    return count


def import_archive(store: Store, path: Path) -> Taken:
    """Take over what ``export_archive`` wrote.

    Raises:
        CorruptData: it is no such file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _take(store, _from_archive(archive))
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise CorruptData(f"{path} is not an exported store ({type(error).__name__}: {error}).") from None


def merge(store: Store, other: Store) -> Taken:
    """Take over every record and run of another store, which is left as it is.

    Raises:
        InvalidInput: both are the same store.
    """
    if store.folder.resolve() == other.folder.resolve():
        raise InvalidInput("a store cannot be merged with itself.")
    return _take(store, _from_folder(other.folder))


def _from_archive(archive: zipfile.ZipFile) -> Iterator[tuple[str, str, bytes]]:
    """Kind, name and content of every file; nothing is ever written under the name it has in the archive."""
    for info in archive.infolist():
        kind, _, name = info.filename.partition("/")
        if kind in ("records", "runs") and name.endswith(".json") and "/" not in name:
            if info.file_size > MOST_BYTES:
                raise OSError(None, f"{info.filename} announces {info.file_size} bytes")
            yield kind, name.removesuffix(".json"), archive.read(info)


def _from_folder(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    for kind, pattern in (("records", "*/*.json"), ("runs", "*.json")):
        for path in sorted((folder / kind).glob(pattern)):
            try:
                yield kind, path.stem, read_regular(path)
            except OSError:
                yield kind, path.stem, b""


def _take(store: Store, files: Iterator[tuple[str, str, bytes]]) -> Taken:
    new, equal, conflicts, damaged = 0, 0, list[str](), list[str]()
    for kind, name, content in files:
        try:
            if kind == "runs":
                _take_run(store, name, content)
                continue
            record = verified(content, Path(name), name, None)
        except CorruptData:
            damaged.append(name)
            continue
        own = store.read(name)
        if own is None:
            store.write(record)
            new += 1
        elif own.digest == record.digest:
            _join(store, own, record)
            equal += 1
        else:
            conflicts.append(name)
    return Taken(new, equal, tuple(conflicts), tuple(damaged))


def _take_run(store: Store, name: str, content: bytes) -> None:
    if not (len(name) == 64 and name.isalnum()):
        raise CorruptData("not the name of a run.")
    run: StoredRun = run_from_body(content, name)
    path = store.folder / "runs" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with written_whole(path) as stream:
            stream.write(content)
    with store.database.transaction() as connection:
        insert_run(connection, name, run, newer_only=True)


def _join(store: Store, own: Record, other: Record) -> None:
    """Add the other's provenance to a record, unless it is there already."""
    origins = _origins(own)
    added = [origin for origin in _origins(other) if origin not in origins]
    if added:
        first, *rest = [*origins, *added]
        store.write(Record(own.cell, own.payload, {**first, "also": rest}))


def _origins(record: Record) -> list[dict[str, Any]]:
    first = {name: value for name, value in record.provenance.items() if name != "also"}
    return [json.loads(json.dumps(origin)) for origin in (first, *record.provenance.get("also", []))]
