"""A new index from what lies beside it: every record is verified, every run that was asked for is remembered."""

from __future__ import annotations

import contextlib
import os
import warnings
from pathlib import Path

from separatrix.core.disk import read_regular, why_not
from separatrix.core.errors import CorruptData, StoreError

from .database import StoreWarning
from .records import Store, verified
from .runs import insert_run, read_run


def take_into_index(store: Store) -> int:
    """Index every whole record and every run that lies in the folder of a store; says how many records.

    Files that are not whole records are named in a warning and left where they are.

    Cost: reading every record once, one at a time.
    """
    count = 0
    with store.database.transaction() as connection:
        for path in sorted((store.folder / "records").glob("*/*.json")):
            try:
                content = read_regular(path)
                record = verified(content, path, path.stem, None)
            except (CorruptData, OSError) as error:
                reason = str(error) if isinstance(error, CorruptData) else f"{path}: {why_not(error)}."
                warnings.warn(f"{reason} It is not taken into the index.", StoreWarning, stacklevel=3)
                continue
            store.index(connection, record, content)
            count += 1
        for path in sorted((store.folder / "runs").glob("*.json")):
            try:
                insert_run(connection, path.stem, read_run(path), newer_only=True)
            except CorruptData as error:
                warnings.warn(str(error), StoreWarning, stacklevel=3)
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
    try:
        if index.exists():
            os.replace(index, index.with_name("index.sqlite.old"))
        for ending in ("-wal", "-shm"):
            index.with_name(f"index.sqlite{ending}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the index of {folder} cannot be replaced: {why_not(error)}.") from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="the index of .* was lost", category=StoreWarning)
        with Store(folder) as store:
            return len(store.keys())
