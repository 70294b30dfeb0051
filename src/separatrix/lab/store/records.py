"""The store of records: one file each, written whole or not at all, and an index in SQLite.

A file appears under its final name only complete (written beside it, flushed to the disk, renamed), then enters the
index. Whatever is read is verified first: a truncated or edited record is named, set aside and computed again.

```
DIR/index.sqlite
DIR/records/ab/abcdef….json
DIR/runs/123456….json          what was asked for: experiment, scale, parameters
DIR/scratch/abcdef…/           checkpoints of cells being computed
DIR/logs/abcdef….log           what a cell that failed had printed
```
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, final

import platformdirs

from separatrix.core.described import Described
from separatrix.core.disk import flush_folder, read_regular, why_not
from separatrix.core.errors import CorruptData, StoreError
from separatrix.core.names import suggest_options

from ..experiment.cell import canonical_json
from ..experiment.record import Record
from .database import IN_MEMORY, Database, StoreWarning, no_space

WORTH_KEEPING = 0.1
"""Seconds of computing from which on a record is worth waiting for the disk a second time, for its name."""


def default_folder() -> Path:
    """Where records are kept unless ``--store`` says otherwise: the user's data folder."""
    return Path(platformdirs.user_data_dir("separatrix", appauthor=False))


@final
@suggest_options
class Store(Described):
    """Records on disk. Several processes may use one store at once.

    Args:
        folder: where it is or shall be; the user's data folder if not given.
        read_only: change nothing, not even what is found damaged; for commands that only look, and for stores that
            cannot be written.

    Raises:
        StoreError: the folder cannot be made or written (``read_only``: there is no store), or a newer version of the
            package made it.
    """

    def __init__(self, folder: str | Path | None = None, *, read_only: bool = False) -> None:
        self.folder = store_folder(folder)
        self.read_only = read_only
        if read_only and not Store.exists(self.folder):
            raise StoreError(f"there is no store in {self.folder}.")
        try:
            if not read_only:
                (self.folder / "records").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _problem(self.folder, error) from error
        index = self.folder / "index.sqlite"
        if index.exists() and not index.is_file():
            raise StoreError(f"{index} is no file that can be an index; remove it, and it is made anew.")
        self.database = Database(index, read_only) if index.exists() or not read_only else Database(IN_MEMORY)
        if not self.database.covers_files and (not read_only or not index.exists()):
            from .rebuilding import cover_files

            cover_files(self)

    @staticmethod
    def exists(folder: str | Path | None = None) -> bool:
        """Whether a store is already there, so that reading commands need not make one.

        Raises:
            StoreError: none can be there, because what the path leads through is no folder or is closed to us.
        """
        place = store_folder(folder)
        try:
            if (place / "index.sqlite").is_file() or (place / "records").is_dir():
                return True
            found = next(path for path in (place, *place.parents) if path.exists())
        except OSError as error:
            raise _problem(place, error) from error
        if not found.is_dir():
            raise StoreError(f"there can be no store {place}: {found} is no folder; choose another with --store.")
        return False

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; nothing is lost if this is never called."""
        self.database.close()

    def path(self, key: str) -> Path:
        """The file of a record."""
        return self.folder / "records" / key[:2] / f"{key}.json"

    @property
    def scratch(self) -> Path:
        """Where cells that are being computed keep their checkpoints; nothing of lasting worth."""
        return self.folder / "scratch"

    @property
    def logs(self) -> Path:
        """What workers print, and what cells that failed have printed."""
        return self.folder / "logs"

    def log_of(self, key: str) -> Path:
        """What a cell that failed has printed."""
        return self.logs / f"{key}.log"

    def keys(self) -> set[str]:
        """Keys of all records in the index."""
        return {key for (key,) in self.database.query("SELECT key FROM records")}

    def read(self, key: str) -> Record | None:
        """The verified record of a key, or ``None`` if there is none or it had to be set aside (with a warning)."""
        return self._read(key, self.database.query("SELECT sha256, changed FROM records WHERE key = ?", (key,)))

    def read_each(self, keys: Sequence[str]) -> Iterator[Record | None]:
        """The same for several, at most 500, of which the index is asked once."""
        marks = ",".join("?" * len(keys))
        rows = self.database.query(f"SELECT key, sha256, changed FROM records WHERE key IN ({marks})", keys)
        known = {key: [(sha256, changed)] for key, sha256, changed in rows}
        for key in keys:
            yield self._read(key, known.get(key, []))

    def _read(self, key: str, row: Sequence[tuple[Any, ...]]) -> Record | None:
        """The record of a key and of what the index holds of it."""
        path = f"{self.folder}/records/{key[:2]}/{key}.json"
        try:
            content = read_regular(path)
            record = verified(content, path, key, row[0][0] if row else None)
        except FileNotFoundError:
            return self._set_aside(key) if row else None
        except CorruptData:
            return self._set_aside(key)
        except OSError as error:
            if error.errno is None:  # a pipe or a device
                return self._set_aside(key)
            raise _problem(self.folder, error) from error
        # Its writer was killed before indexing it, or it was touched or copied and is still what was written.
        if not self.read_only and (not row or row[0][1] != _changed(path)):
            with self.database.transaction() as connection:
                self.index(connection, record, content)
        return record

    def unchanged(self, keys: Sequence[str]) -> dict[str, str]:
        """Digests of those records that are in the index and whose file has the size and time it was indexed with.

        Cost: one look at each file; none is read.
        """
        wanted, found, folder = set(keys), {}, f"{self.folder}/records"
        for key, digest, size, changed in self.database.each("SELECT key, digest, size, changed FROM records"):
            if key in wanted:
                with contextlib.suppress(OSError, ValueError):
                    state = os.stat(f"{folder}/{key[:2]}/{key}.json")
                    if (state.st_size, state.st_mtime_ns) == (size, changed):
                        found[key] = digest
        return found

    def present(self, keys: Sequence[str]) -> set[str]:
        """Those keys that are in the index and whose file has its size, whenever it was written: a copied store has
        other times. Whether they are whole is found out by reading them.

        Cost: one look at each file; none is read.
        """
        wanted, found, folder = set(keys), set[str](), f"{self.folder}/records"
        for key, size in self.database.each("SELECT key, size FROM records"):
            if key in wanted:
                with contextlib.suppress(OSError, ValueError):
                    if size is None or os.stat(f"{folder}/{key[:2]}/{key}.json").st_size == size:
                        found.add(key)
        return found

    def stage(self, record: Record) -> tuple[Path, bytes]:
        """Write a record to a temporary file on the same disk and flush it; ``promote`` makes it visible."""
        content = record.to_text().encode()
        final_path = self.path(record.cell.key)
        temporary = final_path.with_name(f".{final_path.stem}.{os.getpid()}.tmp")
        try:
            if not final_path.parent.is_dir():
                final_path.parent.mkdir(exist_ok=True)
            for name in os.listdir(final_path.parent):  # of a worker that was killed
                if name.startswith(f".{final_path.stem}.") and name.endswith(".tmp"):
                    (final_path.parent / name).unlink(missing_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _problem(self.folder, error) from error
        return temporary, content

    def promote(self, connection: sqlite3.Connection, record: Record, temporary: Path, content: bytes) -> None:
        """Give a staged record its final name and index it, inside a transaction of ``database``; then ``keep`` it."""
        try:
            os.replace(temporary, self.path(record.cell.key))
        except OSError as error:
            raise _problem(self.folder, error) from error
        self.index(connection, record, content)

    def keep(self, record: Record) -> None:
        """Make the name of a record that was promoted survive a power cut, if computing it again takes longer.

        The disk is waited for outside the transaction, so that no other process waits with us.
        """
        if record.provenance.get("seconds", math.inf) >= WORTH_KEEPING:
            with contextlib.suppress(OSError):  # it stands there; only the power cut is left to chance
                flush_folder(self.path(record.cell.key).parent)

    def index(self, connection: sqlite3.Connection, record: Record, content: bytes) -> None:
        """Take a record that stands under its final name into the index, inside a transaction."""
        cell, origin = record.cell, record.provenance
        with contextlib.suppress(OSError):
            state = os.stat(self.path(cell.key))
            connection.execute(
                """INSERT OR REPLACE INTO records (key, experiment, version, digest, sha256, size, changed, seconds,
                   memory, args) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    cell.key,
                    cell.experiment,
                    cell.version,
                    record.digest,
                    _sha256(content),
                    state.st_size,
                    state.st_mtime_ns,
                    _cost(origin),
                    origin.get("memory"),
                    canonical_json({**cell.args, "seed": cell.seed}),
                ),
            )

    def write(self, record: Record) -> None:
        """Store a record that no job table watches over."""
        temporary, content = self.stage(record)
        with self.database.transaction() as connection:
            self.promote(connection, record, temporary, content)
        self.keep(record)

    def _set_aside(self, key: str) -> Record | None:
        """Forget a missing or corrupt file, unless another process has just put a good one in its place."""
        path = self.path(key)
        if self.read_only:
            state = "is missing" if not os.path.lexists(path) else "is not what was written"
            warnings.warn(f"the record {path} {state}; it counts as not computed.", StoreWarning, stacklevel=3)
            return None
        with self.database.transaction() as connection:
            row = connection.execute("SELECT sha256 FROM records WHERE key = ?", (key,)).fetchone()
            try:
                return verified(read_regular(path), path, key, row[0] if row else None)
            except FileNotFoundError:
                message = f"the record {path} is missing; it will be computed again."
            except (CorruptData, OSError) as error:
                reason = str(error) if isinstance(error, CorruptData) else f"the record {path}: {why_not(error)}."
                aside = path.with_name(f"{path.name}.corrupt")
                os.replace(path, aside)
                message = f"{reason} It was set aside as {aside.name} and will be computed again."
            connection.execute("DELETE FROM records WHERE key = ?", (key,))
        warnings.warn(message, StoreWarning, stacklevel=3)
        return None


def store_folder(folder: str | Path | None) -> Path:
    """The folder of a store; an empty name is a mistake, not the present folder."""
    if folder is None:
        return default_folder().absolute()
    if str(folder) in ("", ".") and not (Path(folder) / "records").is_dir():
        raise StoreError(f"a store needs the name of a folder of its own; got {str(folder)!r}.")
    if "\0" in str(folder):
        raise StoreError("the folder of a store holds no NUL character.")
    return Path(folder).absolute()


def verified(content: bytes, path: Path | str, key: str, sha256: str | None) -> Record:
    """The record in a file; one that has the digest with which it was indexed is what was verified then.

    Raises:
        CorruptData: it is not what was written, or not under its own key.
    """
    if sha256 is not None and _sha256(content) != sha256:
        raise CorruptData(f"the record {path} is not what was written: it was truncated or edited.")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise CorruptData(f"the record {path} is not text.") from None
    record = Record.from_text(text, name=f"the record {path}", known=sha256 is not None)
    if sha256 is None and record.cell.key != key:
        raise CorruptData(f"the record {path} belongs to another cell ({record.cell.key[:12]}).")
    return record


def _cost(origin: Mapping[str, Any]) -> float | None:
    """Seconds that a cell like this one takes; not of the first cell of a process, which holds imports."""
    return spent(origin) if origin.get("warm", True) else None


def spent(origin: Mapping[str, Any]) -> float | None:
    """Seconds a cell took: of the processor, since the clock on the wall tells how busy a machine was, but not less
    than a tenth of the time on the wall, for a cell may wait."""
    seconds = origin.get("seconds")
    busy = origin.get("processor_seconds")
    return max(busy, seconds / 10) if busy is not None and seconds is not None else seconds


def _changed(path: Path | str) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns
    return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _problem(folder: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(folder)
    return StoreError(
        f"the store {folder} cannot be written: {error.strerror or error}; choose another folder with --store."
    )
