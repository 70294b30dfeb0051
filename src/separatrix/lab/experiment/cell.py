"""A cell: one independent, deterministic unit of work, named by its content."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Cell:
    """What is computed: the experiment, its version, the arguments and the seed. Equal cells have equal keys."""

    experiment: str
    version: int
    args: Mapping[str, Any]
    seed: int
    entry: str
    """``module:name`` of the experiment, so that a worker process can find it."""

    @functools.cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of experiment, version, arguments and seed."""
        return hashlib.sha256(canonical_json(self.identity()).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """The part of the cell that decides its result."""
        return {"experiment": self.experiment, "version": self.version, "args": dict(self.args), "seed": self.seed}

    def to_json(self) -> str:
        """The whole cell as canonical JSON."""
        return canonical_json({**self.identity(), "entry": self.entry})

    @classmethod
    def from_json(cls, text: str) -> Cell:
        """The inverse of ``to_json``."""
        return cls(**json.loads(text))


def is_key(value: object) -> bool:
    """Whether a value can be the key of a cell: a SHA-256 in hexadecimal digits, by which files are named."""
    return isinstance(value, str) and len(value) == 64 and value.isascii() and value.isalnum()


@final
class Cells(Sequence[Cell]):
    """The cells of a run, made when the first one is looked at; how many they are may be known before.

    Args:
        make: gives them.
        count: how many, if known.
    """

    def __init__(self, make: Callable[[], Sequence[Cell]], count: int | None = None) -> None:
        self._make, self._count = make, count

    @functools.cached_property
    def _made(self) -> tuple[Cell, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return len(self._made) if self._count is None else self._count

    def __getitem__(self, index: Any) -> Any:
        return self._made[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks, so that equal values give equal text."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"a cell's arguments must be finite numbers, strings, lists and dictionaries: {error}."
        ) from error
