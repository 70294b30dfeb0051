"""The keys of a run's cells, left in the index: 100,000 of them are looked through without ever being held."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import final

from separatrix.core.result import brief

from ..experiment.cell import is_key
from .records import Store

_OF_RUN = "json_each((SELECT keys FROM runs WHERE id = ?))"
_OF_LIST = "json_each(?)"


@final
class RunKeys:
    """The keys of a run in the order of its cells.

    Args:
        store: where its records are.
        source: the name under which the index knows the run, or the keys themselves.
    """

    def __init__(self, store: Store, source: str | Sequence[str]) -> None:
        self._store = store
        self._table = _OF_RUN if isinstance(source, str) else _OF_LIST
        self._value = source if isinstance(source, str) else json.dumps(list(source))
        self._count: int | None = None

    def __len__(self) -> int:
        if self._count is None:
            rows = self._store.database.query(f"SELECT count(*) FROM {self._table}", (self._value,))
            self._count = int(rows[0][0])
        return self._count

    def listed(self) -> list[str]:
        """All of them. Cost: some 150 bytes each."""
        found = [key for (key,) in self._store.database.query(f"SELECT value FROM {self._table}", (self._value,))]
        for key in found:
            if not is_key(key):
                raise self._store.database.damaged(f"{brief(key)} is no key of a record")
        return found

    def smallest(self, most: int) -> list[str]:
        """At most so many, in alphabetical order; a key is a digest, so these are as good as drawn at random."""
        sql = f"SELECT value FROM {self._table} ORDER BY value LIMIT ?"
        return [key for (key,) in self._store.database.query(sql, (self._value, most))]

    def digests(self) -> Iterator[tuple[str, str | None]]:
        """Each key with the digest of its record; ``None`` if it has none, or its file is not as it was indexed.

        Cost: one look at each file, none is read; memory does not grow with their number beyond the text of the keys.
        """
        sql = f"""SELECT value, digest, size, changed FROM {self._table} AS wanted
                  LEFT JOIN records ON records.key = wanted.value"""
        folder, look = f"{self._store.folder}/records/", os.stat
        for key, digest, size, changed in self._store.database.each(sql, (self._value,)):
            if not is_key(key):
                raise self._store.database.damaged(f"{brief(key)} is no key of a record")
            try:
                found = look(f"{folder}{key[:2]}/{key}.json")
            except (OSError, ValueError):
                yield key, None
            else:
                yield key, digest if found.st_mtime_ns == changed and found.st_size == size else None
