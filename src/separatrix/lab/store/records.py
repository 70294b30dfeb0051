"""The store of records: one file each, written whole or not at all, and an index in SQLite.

A file appears under its final name only complete (written beside it, flushed to the disk, renamed), then enters the
index. Whatever is read is verified first: a truncated or edited record is named, set aside and computed again.

```
DIR/index.sqlite
DIR/records/ab/abcdef….json
DIR/scratch/abcdef…/           checkpoints of cells being computed
```
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import warnings
from pathlib import Path
from types import TracebackType
from typing import final

import platformdirs

from separatrix.core.errors import CorruptData, StoreError
from separatrix.core.names import suggest_options

from ..experiment.record import Record
from .database import Database, StoreWarning, no_space


def default_folder() -> Path:
    """Where records are kept unless ``--store`` says otherwise: the user's data folder."""
    return Path(platformdirs.user_data_dir("separatrix", appauthor=False))


@final
@suggest_options
class Store:
    """Records on disk. Several processes may use one store at once.

    Args:
        folder: where it is or shall be; the user's data folder if not given.

    Raises:
        StoreError: the folder cannot be made or written, or a newer version of the package made it.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = (default_folder() if folder is None else Path(folder)).absolute()
        try:
            (self.folder / "records").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _problem(self.folder, error) from error
        self.database = Database(self.folder / "index.sqlite")

    @staticmethod
    def exists(folder: str | Path | None = None) -> bool:
        """Whether a store is already there, so that reading commands need not make one.

        Raises:
            StoreError: none can be there, because what the path leads through is no folder or is closed to us.
        """
        place = (default_folder() if folder is None else Path(folder)).absolute()
        try:
            if (place / "index.sqlite").is_file():
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

    def keys(self) -> set[str]:
        """Keys of all records in the index."""
        return {key for (key,) in self.database.query("SELECT key FROM records")}

    def read(self, key: str) -> Record | None:
        """The verified record of a key, or ``None`` if there is none or it had to be set aside (with a warning)."""
        row = self.database.query("SELECT sha256 FROM records WHERE key = ?", (key,))
        try:
            content = self.path(key).read_bytes()
            record = _verified(content, self.path(key), key, row[0][0] if row else None)
        except FileNotFoundError:
            return self._set_aside(key) if row else None
        except CorruptData:
            return self._set_aside(key)
        except OSError as error:
            raise _problem(self.folder, error) from error
        if not row:  # its writer was killed between renaming and indexing
            with self.database.transaction() as connection:
                _index(connection, record, content)
        return record

    def stage(self, record: Record) -> tuple[Path, bytes]:
        """Write a record to a temporary file on the same disk and flush it; ``promote`` makes it visible."""
        content = record.to_text().encode()
        final_path = self.path(record.cell.key)
        temporary = final_path.with_name(f".{final_path.stem}.{os.getpid()}.tmp")
        try:
            final_path.parent.mkdir(exist_ok=True)
            for left_over in final_path.parent.glob(f".{final_path.stem}.*.tmp"):  # of a worker that was killed
                left_over.unlink(missing_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _problem(self.folder, error) from error
        return temporary, content

    def promote(self, connection: sqlite3.Connection, record: Record, temporary: Path, content: bytes) -> None:
        """Give a staged record its final name and index it, inside a transaction of ``database``."""
        final_path = self.path(record.cell.key)
        try:
            os.replace(temporary, final_path)
            _flush_folder(final_path.parent)
        except OSError as error:
            raise _problem(self.folder, error) from error
        _index(connection, record, content)

    def write(self, record: Record) -> None:
        """Store a record that no job table watches over."""
        temporary, content = self.stage(record)
        with self.database.transaction() as connection:
            self.promote(connection, record, temporary, content)

    def _set_aside(self, key: str) -> Record | None:
        """Forget a missing or corrupt file, unless another process has just put a good one in its place."""
        path = self.path(key)
        with self.database.transaction() as connection:
            row = connection.execute("SELECT sha256 FROM records WHERE key = ?", (key,)).fetchone()
            try:
                return _verified(path.read_bytes(), path, key, row[0] if row else None)
            except FileNotFoundError:
                message = f"the record {path} is missing; it will be computed again."
            except CorruptData as error:
                aside = path.with_name(f"{path.name}.corrupt")
                os.replace(path, aside)
                message = f"{error} It was set aside as {aside.name} and will be computed again."
            connection.execute("DELETE FROM records WHERE key = ?", (key,))
        warnings.warn(message, StoreWarning, stacklevel=3)
        return None


def _index(connection: sqlite3.Connection, record: Record, content: bytes) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO records (key, experiment, version, digest, sha256) VALUES (?, ?, ?, ?, ?)",
        (record.cell.key, record.cell.experiment, record.cell.version, record.digest, _sha256(content)),
    )


def _verified(content: bytes, path: Path, key: str, sha256: str | None) -> Record:
    if sha256 is not None and _sha256(content) != sha256:
        raise CorruptData(f"the record {path} is not what was written: it was truncated or edited.")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise CorruptData(f"the record {path} is not text.") from None
    record = Record.from_text(text, name=f"the record {path}")
    if record.cell.key != key:
        raise CorruptData(f"the record {path} belongs to another cell ({record.cell.key[:12]}).")
    return record


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _problem(folder: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(folder)
    return StoreError(
        f"the store {folder} cannot be written: {error.strerror or error}; choose another folder with --store."
    )
