"""Looking after a store: is every record whole, and what lies there that nobody needs any more."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import final

from separatrix.core.disk import read_regular, why_not
from separatrix.core.errors import CorruptData
from separatrix.core.result import Result

from .records import Store, verified


@final
@dataclasses.dataclass(frozen=True, repr=False)
class StoreCheck(Result):
    """What came of reading every record of a store."""

    n_whole: int
    damaged: Mapping[str, str]
    """By file, what is wrong with it."""
    missing: tuple[str, ...]
    """Keys that the index knows and that have no file."""
    unindexed: tuple[str, ...]
    """Keys of whole records that the index does not know; the next run takes them in."""

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not self.damaged and not self.missing


def check_store(store: Store) -> StoreCheck:
    """Read every record and compare it with its digest and with the index; nothing is changed.

    Cost: reading every record once, one at a time.
    """
    indexed = dict(store.database.query("SELECT key, sha256 FROM records"))
    whole, damaged, unindexed = set[str](), {}, []
    for path in sorted((store.folder / "records").glob("*/*.json")):
        try:
            content = read_regular(path)
            verified(content, path, path.stem, None)
            verified(content, path, path.stem, indexed.get(path.stem))
        except CorruptData as error:
            damaged[str(path)] = str(error)
        except OSError as error:
            damaged[str(path)] = why_not(error)
        else:
            whole.add(path.stem)
            if path.stem not in indexed:
                unindexed.append(path.stem)
    present = {Path(name).stem for name in damaged} | whole
    return StoreCheck(len(whole), damaged, tuple(sorted(set(indexed) - present)), tuple(unindexed))


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Cleared(Result):
    """What was removed, or would be."""

    paths: tuple[str, ...]
    n_bytes: int
    n_records: int
    """Records of versions that no experiment has any more."""


def clear(store: Store, versions: Mapping[str, int] | None = None, dry_run: bool = False) -> Cleared:
    """Remove what nobody needs: left-over temporary files, scratch folders of finished cells, records set aside, logs.

    What a run that is under way may still need is left: cells that are leased or queued, and files of the last hour.

    Args:
        store: whose folder.
        versions: the present version of each experiment; records of other versions of these go too.
        dry_run: only say what would be removed.
    """
    with store.database.transaction() as connection:  # no worker takes or publishes a cell meanwhile
        busy = {key for (key,) in connection.execute("SELECT key FROM jobs WHERE state IN ('leased', 'queued')")}
        old = list(_outdated(store, versions or {}, busy))
        paths = [*_left_over(store, busy), *(store.path(key) for key in old)]
        n_bytes = sum(map(_size, paths))
        if not dry_run:
            for path in paths:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
            connection.executemany("DELETE FROM records WHERE key = ?", [(key,) for key in old])
            connection.executemany("DELETE FROM jobs WHERE key = ?", [(key,) for key in old])
            connection.execute("DELETE FROM reports")
    return Cleared(tuple(str(path.relative_to(store.folder)) for path in paths), n_bytes, len(old))


def _left_over(store: Store, busy: set[str]) -> Iterator[Path]:
    """Old files that belong to no cell under way and no engine that lives: clocks jump, and servers have their own."""
    for pattern in ("records/*/.*.tmp", "records/*/*.corrupt", ".client-*", "runs/.*.partial"):
        yield from (path for path in store.folder.glob(pattern) if _key_of(path) not in busy and _is_old(path))
    yield from (path for path in store.folder.glob("scratch/*") if path.name not in busy and _is_old(path))
    for path in store.folder.glob("logs/*.log"):
        if path.stem not in busy and not _is_of_the_living(path) and _is_old(path):
            yield path


def _key_of(path: Path) -> str:
    """The key in the name of a temporary file."""
    return path.name.removeprefix(".").partition(".")[0]


def _is_of_the_living(path: Path) -> bool:
    """Whether a log is that of a worker whose engine, named by its number, still runs on this machine."""
    number = path.stem.split("-")[1] if path.stem.startswith("worker-") and path.stem.count("-") > 1 else ""
    if not number.isdecimal() or os.name == "nt":
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _outdated(store: Store, versions: Mapping[str, int], busy: set[str]) -> Iterator[str]:
    for key, experiment, version in store.database.query("SELECT key, experiment, version FROM records"):
        if experiment in versions and version != versions[experiment] and key not in busy:
            yield key


HOUR = 3600.0


def _is_old(path: Path) -> bool:
    """Whether nothing was written there for an hour."""
    try:
        return time.time() - path.lstat().st_mtime > HOUR
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        if path.is_dir():
            return sum(os.path.getsize(file) for file in path.rglob("*") if file.is_file())
        return path.stat().st_size
    except OSError:
        return 0
