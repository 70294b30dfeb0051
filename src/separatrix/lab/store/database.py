"""The index of a store: one SQLite file that survives kill -9, shared by every process that works on the store.

Each process keeps one connection, guarded by a lock so that the thread which renews leases may use it too.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from separatrix.core.errors import StoreError

STORE_FORMAT = 1
BUSY_SECONDS = 10.0

_SCHEMA = (
    """CREATE TABLE records (key TEXT PRIMARY KEY, experiment TEXT NOT NULL, version INTEGER NOT NULL,
       digest TEXT NOT NULL, sha256 TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE jobs (key TEXT PRIMARY KEY, cell TEXT NOT NULL, state TEXT NOT NULL, worker TEXT, expires REAL,
       attempts INTEGER NOT NULL DEFAULT 0, starts INTEGER NOT NULL DEFAULT 0, error TEXT) WITHOUT ROWID""",
    "CREATE INDEX jobs_by_state ON jobs (state)",
    """CREATE TABLE wants (session TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL,
       PRIMARY KEY (session, position)) WITHOUT ROWID""",
    "CREATE INDEX wants_by_key ON wants (key)",
    """CREATE TABLE runs (id TEXT PRIMARY KEY, experiment TEXT NOT NULL, version INTEGER NOT NULL, scale TEXT NOT NULL,
       params TEXT NOT NULL, keys TEXT NOT NULL, command TEXT NOT NULL, time REAL NOT NULL) WITHOUT ROWID""",
)


class StoreWarning(UserWarning):
    """Something about a store that a person should know, though the work can go on."""


@final
class Database:
    """The SQLite file of a store, made on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._problem(error) from error
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        with self._explained():
            self._refuse_newer_format()
            if self._write_ahead() != "wal":
                warnings.warn(
                    f"the file system of {self.path.parent} refuses SQLite's write-ahead log (a network folder?); "
                    "the store uses a rollback journal instead, which is slower.",
                    StoreWarning,
                    stacklevel=5,
                )
            self._connection.execute("PRAGMA synchronous = NORMAL")
        with self.transaction() as connection:
            if self._format() == 0:
                for statement in _SCHEMA:
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

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a reading statement."""
        with self._lock, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._problem(error) from error

    def _problem(self, error: sqlite3.Error) -> StoreError:
        folder, reason = self.path.parent, str(error)
        if "full" in reason:
            return no_space(folder)
        if "not a database" in reason or "malformed" in reason:
            return StoreError(
                f"{self.path} is damaged ({reason}); move it away and run again: the records beside it are kept and "
                "taken into a new index."
            )
        return StoreError(f"the store {folder} cannot be used: {reason}; choose another folder with --store.")


def no_space(folder: Path) -> StoreError:
    """The one sentence for a full disk."""
    return StoreError(
        f"no space left on the disk of the store {folder}; finished records are kept: free some space, then continue "
        "with separatrix resume."
    )
