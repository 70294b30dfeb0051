"""A new index from what lies beside it: every record is verified, every run that was asked for is remembered."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from pathlib import Path

from separatrix.core.disk import read_regular, why_not
from separatrix.core.errors import CorruptData, StoreError

from .database import StoreWarning
from .records import Store, verified
from .runs import insert_run, read_run, write_runs


def cover_files(store: Store) -> None:
    """Index every whole record and every run that lies in the folder, once; a warning says so if there are any.

    Files that are not whole records are named in a warning and left where they are.

    Cost: reading every record once, one at a time.
    """
    with store.database.transaction() as connection:
        count = _take_records(store, connection)
        for path in sorted((store.folder / "runs").glob("*.json")):
            try:
                insert_run(connection, path.stem, read_run(path), newer_only=True)
            except CorruptData as error:
                warnings.warn(str(error), StoreWarning, stacklevel=3)
        if not store.read_only:
            write_runs(store, connection)
        store.database.note_files_covered(connection)
    if count:
        warnings.warn(f"the index of {store.folder} was made from {count} records.", StoreWarning, stacklevel=3)


def _take_records(store: Store, connection: sqlite3.Connection) -> int:
    count = 0
    for path in sorted((store.folder / "records").glob("*/*.json")):
        try:
            content = read_regular(path)
            record = verified(content, path, path.stem, None)
        except (CorruptData, OSError) as error:
            reason = str(error) if isinstance(error, CorruptData) else f"{path}: {why_not(error)}."
            warnings.warn(f"{reason} It is not taken into the index.", StoreWarning, stacklevel=4)
            continue
        store.index(connection, record, content)
        count += 1
    return count


def rebuild(folder: Path) -> int:
    """Replace the index of a store, whatever its state, by one made from the records; says how many they are.

    The old index is kept beside it as ``index.sqlite.old``.

    Raises:
        StoreError: there are no records, or the folder cannot be written.
    """
    if not (folder / "records").is_dir():
        raise StoreError(f"there are no records in {folder} to make an index from.")
    index = folder / "index.sqlite"
    old = index.with_name("index.sqlite.old")
    try:
        if os.path.lexists(index):
            os.replace(index, old)
        _drop_journals(index)
    except OSError as error:
        raise StoreError(f"the index of {folder} cannot be replaced: {why_not(error)}.") from error
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message="the index of .* was made from", category=StoreWarning)
            with Store(folder) as store:
                return len(store.keys())
    except BaseException:  # a full disk, Ctrl-C: half an index would tell of fewer records than there are
        with contextlib.suppress(OSError):
            _drop_journals(index)
            os.replace(old, index)
        raise


def _drop_journals(index: Path) -> None:
    for ending in ("-wal", "-shm"):
        index.with_name(f"{index.name}{ending}").unlink(missing_ok=True)
