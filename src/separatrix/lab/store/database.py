"""The index of a store: one SQLite file that survives kill -9, shared by every process that works on the store.

Each process keeps one connection, guarded by a lock so that the thread which renews leases may use it too.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from separatrix.core.errors import StoreError

STORE_FORMAT = 2
BUSY_SECONDS = 10.0
SHARED_BYTES = 1 << 17
"""What SQLite wants beside an index for its lists of pages; without that much it speaks of an error of the disk."""
IN_MEMORY = Path(":memory:")
"""The path of an index that is made for looking alone and left nowhere."""

_WANTS = (
    """CREATE TABLE wants (session TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL,
       ended INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, position)) WITHOUT ROWID""",
    "CREATE INDEX wants_by_key ON wants (key)",
    "CREATE INDEX wants_ended ON wants (session, position) WHERE ended",
)
_REPORTS = "CREATE TABLE reports (run TEXT PRIMARY KEY, digest TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID"
_SCHEMA = (
    """CREATE TABLE records (key TEXT PRIMARY KEY, experiment TEXT NOT NULL, version INTEGER NOT NULL,
       digest TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER, changed INTEGER, seconds REAL, memory REAL,
       args TEXT) WITHOUT ROWID""",
    "CREATE INDEX records_by_experiment ON records (experiment)",
    """CREATE TABLE jobs (key TEXT PRIMARY KEY, cell TEXT NOT NULL, state TEXT NOT NULL, worker TEXT,
       beat INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, starts INTEGER NOT NULL DEFAULT 0,
       error TEXT) WITHOUT ROWID""",
    "CREATE INDEX jobs_by_state ON jobs (state)",
    *_WANTS,
    """CREATE TABLE runs (id TEXT PRIMARY KEY, experiment TEXT NOT NULL, version INTEGER NOT NULL, scale TEXT NOT NULL,
       params TEXT NOT NULL, keys TEXT NOT NULL, command TEXT NOT NULL, time REAL NOT NULL, code TEXT) WITHOUT ROWID""",
    _REPORTS,
)
_FROM_1_TO_2 = (
    *(f"ALTER TABLE records ADD COLUMN {column}" for column in ("size INTEGER", "changed INTEGER")),
    *(f"ALTER TABLE records ADD COLUMN {column}" for column in ("seconds REAL", "memory REAL", "args TEXT")),
    "CREATE INDEX records_by_experiment ON records (experiment)",
    "ALTER TABLE jobs ADD COLUMN beat INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN code TEXT",
    "DROP TABLE wants",
    *_WANTS,
    _REPORTS,
)
"""What a store of an earlier version of the package lacks; which cells a run waits for matters to that run alone."""


class StoreWarning(UserWarning):
    """Something about a store that a person should know, though the work can go on."""


@final
class Database:
    """The SQLite file of a store, made on first use.

    Args:
        path: the file.
        read_only: change nothing; where the folder does not even allow SQLite to read (a read-only disk), a copy is
            read instead.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            if read_only:
                self._connection = self._opened_for_reading()
                return
            _require_writable(path)
            self._connection = _connect(path)
        except sqlite3.Error as error:
            raise self._problem(error) from error
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _opened_for_reading(self) -> sqlite3.Connection:
        try:
            if not os.access(self.path, os.W_OK):  # SQLite would leave files of ours beside it, which bar its owner
                raise sqlite3.OperationalError("another user's")
            connection = self._checked(_connect(f"{self.path.as_uri()}?mode=ro", uri=True))
        except sqlite3.OperationalError:
            self._copy = tempfile.TemporaryDirectory(prefix="separatrix-index-")
            for name in (self.path.name, f"{self.path.name}-wal"):
                if (self.path.parent / name).exists():
                    shutil.copyfile(self.path.parent / name, Path(self._copy.name) / name)
            connection = self._checked(_connect(Path(self._copy.name) / self.path.name))
        return connection

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """A connection that can read; an index of an earlier version is brought up to date in memory."""
        self._connection = connection
        try:
            self._refuse_newer_format()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if self._format() == STORE_FORMAT:
                return connection
            memory = _connect(":memory:")
            connection.backup(memory)
        except BaseException:
            connection.close()
            raise
        connection.close()
        self._connection = memory
        self._bring_up_to_date(memory)
        return memory

    def _prepare(self) -> None:
        with self._explained():
            self._refuse_newer_format()
            if self._write_ahead() != "wal" and self.path != IN_MEMORY:
                warnings.warn(
                    f"the file system of {self.path.parent} refuses SQLite's write-ahead log (a network folder?); "
                    "the store uses a rollback journal instead, which is slower.",
                    StoreWarning,
                    stacklevel=5,
                )
            self._connection.execute("PRAGMA synchronous = NORMAL")
        if self._format() < STORE_FORMAT:
            with self.transaction() as connection:
                self._bring_up_to_date(connection)

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        found = self._format()
        if found < STORE_FORMAT:
            for statement in _SCHEMA if found == 0 else _FROM_1_TO_2:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {STORE_FORMAT}")

    def _write_ahead(self) -> str:
        """Ask for the write-ahead log; SQLite does not wait for a lock here, so two first users must."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return str(self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _format(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _refuse_newer_format(self) -> None:
        found = self._format()
        if found > STORE_FORMAT:
            raise StoreError(
                f"the store {self.path.parent} was made by a newer version of separatrix (format {found}, this version "
                f"knows {STORE_FORMAT}); upgrade separatrix or choose another folder with --store."
            )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, with the write lock taken at once, so that what is read inside stays true."""
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @property
    def covers_files(self) -> bool:
        """Whether everything that lay in the folder was taken in once; not so in a new index, or a very old one."""
        return bool(self.query("PRAGMA application_id")[0][0])

    def note_files_covered(self, connection: sqlite3.Connection) -> None:
        """Everything that lies in the folder is in the index now; said inside the transaction that did it."""
        connection.execute("PRAGMA application_id = 1")

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a reading statement."""
        with self._lock, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a reading statement one by one, however many they are."""
        with self._lock, self._explained():
            yield from self._connection.execute(sql, values)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._connection.close()
            if self._copy is not None:
                self._copy.cleanup()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._problem(error) from error

    def damaged(self, reason: str) -> StoreError:
        """The one sentence for an index that does not hold what was written into it."""
        return StoreError(
            f"{self.path} is damaged ({reason}); make a new one from the records beside it with: separatrix store "
            f"rebuild --store {shlex.quote(str(self.path.parent))}"
        )

    def _problem(self, error: sqlite3.Error) -> StoreError:
        folder, reason = self.path.parent, str(error)
        if "full" in reason or ("disk I/O error" in reason and _is_full(folder)):
            return no_space(folder)
        if "not a database" in reason or "malformed" in reason:
            return self.damaged(reason)
        return StoreError(f"the store {folder} cannot be used: {reason}; choose another folder with --store.")


def _require_writable(path: Path) -> None:
    """Make the file as the user's mask has it, so that a group may share it; SQLite by itself lets the owner alone
    write. One that belongs to somebody else is refused before SQLite leaves anything beside it."""
    if path == IN_MEMORY:
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
    except PermissionError:
        if path.exists():
            raise StoreError(
                f"the store {path.parent} may be read but not written by this user; ask its owner to open it to a "
                "group (chmod -R g+w, with umask 002), or choose another folder with --store."
            ) from None
    except OSError:  # of the disk; SQLite says what
        return


def _connect(path: Path | str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)


def _is_full(folder: Path) -> bool:
    """Whether the disk has no room for the few pages that SQLite needs beside its file."""
    try:
        return shutil.disk_usage(folder).free < SHARED_BYTES
    except OSError:
        return False


def no_space(folder: Path) -> StoreError:
    """The one sentence for a full disk."""
    return StoreError(
        f"no space left on the disk of the store {folder}; finished records are kept: free some space, then continue "
        "with separatrix resume."
    )
