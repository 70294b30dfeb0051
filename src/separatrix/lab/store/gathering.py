"""The payloads of a run, gathered while it writes them: however many there are, memory does not grow with them.

Few or short ones are held. Beyond that they go to a temporary file, from which whoever summarises the run reads them
one by one, in the order of its cells. A run gathers each record when it is published, while its workers are busy with
the next, so that no command has to read 100,000 of them at once.
"""

from __future__ import annotations

import json
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, final

from ..experiment.cell import Cell
from ..experiment.definition import Payload
from ..experiment.provenance import Origins
from ..experiment.record import Record, decode, encode
from .records import Store

HELD = 10_000
"""Records of a run that are held at most; of larger runs none is."""
HELD_CHARACTERS = 64 << 20
"""And how long they may be together."""
AT_ONCE = 500
"""Records that the index is asked for together."""
_ABSENT = -1


@final
class Results(Sequence[tuple[Cell, Payload]]):
    """Cells and payloads in the order of a run's cells, put in in any order.

    Args:
        count: how many cells the run has.
    """

    def __init__(self, count: int) -> None:
        self._held: dict[int, tuple[Cell, Payload]] | None = {} if count <= HELD else None
        self._lines: IO[bytes] | None = None
        self._places = array("q", [_ABSENT]) * (count if self._held is None else 0)
        self._end = self._at = 0
        self._count, self._characters, self.n_present = count, 0, 0

    def put(self, position: int, record: Record) -> None:
        """Take one in; the same position again changes nothing."""
        if self.has(position):
            return
        self.n_present += 1
        if self._held is not None:
            self._held[position] = (record.cell, record.payload)
            self._characters += record.size
            if self._characters > HELD_CHARACTERS:
                self._put_down()
        else:
            self._write(position, record.cell, record.payload, record.is_plain)

    def has(self, position: int) -> bool:
        """Whether one was taken in."""
        return position in self._held if self._held is not None else self._places[position] != _ABSENT

    def _put_down(self) -> None:
        """From now on they stand in a file."""
        held, self._held = self._held or {}, None
        self._places = array("q", [_ABSENT]) * self._count
        for position, (cell, payload) in held.items():
            self._write(position, cell, payload)

    def _write(self, position: int, cell: Cell, payload: Payload, is_plain: bool = False) -> None:
        if self._lines is None:
            self._lines = tempfile.TemporaryFile(prefix="separatrix-results-")  # noqa: SIM115
            weakref.finalize(self, self._lines.close)
        body = payload if is_plain else encode(payload)
        line = json.dumps([cell.experiment, cell.version, dict(cell.args), cell.seed, cell.entry, body]) + "\n"
        if self._at != self._end:
            self._lines.seek(self._end)
        self._places[position] = self._end
        self._end += self._lines.write(line.encode())
        self._at = self._end

    def _read(self, position: int) -> tuple[Cell, Payload]:
        if self._held is not None:
            return self._held[position]
        assert self._lines is not None
        place = self._places[position]
        if self._at != place or place == self._end:
            self._lines.seek(place)
        line = self._lines.readline()
        self._at = place + len(line)
        return _parsed(line)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._read(position) for position in range(*index.indices(self._count))]
        return self._read(range(self._count)[index])

    def __iter__(self) -> Iterator[tuple[Cell, Payload]]:
        return map(self._read, range(self._count))


def _parsed(line: bytes) -> tuple[Cell, Payload]:
    experiment, version, args, seed, entry, payload = json.loads(line)
    return Cell(experiment, version, args, seed, entry), decode(payload)


@final
class Gathering:
    """The records of a run and where they come from, taken in as they are published.

    Args:
        store: where they are.
        keys: of the run's cells, in their order.
        awaited: positions of cells that are yet to be computed.
    """

    def __init__(self, store: Store, keys: Sequence[str], awaited: Iterable[int] = ()) -> None:
        self._store, self._keys, self._awaited = store, keys, set(awaited)
        self.results, self.origins = Results(len(keys)), Origins()
        self.digests = 0
        """A sum over the digests of all that was taken in, to be compared with that of the index."""
        self._next = 0

    def take(self, position: int) -> None:
        """Read one record, if it is there and was not taken in before."""
        self._awaited.discard(position)
        if self.results.has(position):
            return
        self._put(position, self._store.read(self._keys[position]))

    def _put(self, position: int, record: Record | None) -> None:
        if record is not None:
            self.results.put(position, record)
            self.origins.add(record.provenance)
            self.digests += as_number(record.digest)

    def catch_up(self, most: int | None = None) -> None:
        """Take in the next ones in their order, at most so many; all that are there, awaited or not, if not told."""
        if most is None:
            self._next, self._awaited = 0, set()
        end = len(self._keys) if most is None else min(len(self._keys), self._next + most)
        while self._next < end:
            some = range(self._next, min(end, self._next + AT_ONCE))
            wanted = [at for at in some if at not in self._awaited and not self.results.has(at)]
            found = self._store.read_each([self._keys[position] for position in wanted])
            for position, record in zip(wanted, found, strict=True):
                self._put(position, record)
            self._next = some.stop


def as_number(digest: str) -> int:
    """A digest as a number that can be summed in any order."""
    return int(digest[:15], 16)
