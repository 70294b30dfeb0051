"""What is known of a data set before a byte of it is read: files, digests, licence, where it can be had.

Digests are those of the decompressed content, so that a mirror which compressed the same bytes differently passes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve, suggest_options


def require_https(url: str) -> None:
    """Refuse any address that is not HTTPS."""
    if not url.lower().startswith("https://"):
        raise InvalidInput(f"data is fetched over HTTPS only; got {url!r}.")


def _require_size(n_bytes: int, name: str) -> None:
    if not isinstance(n_bytes, int) or n_bytes < 1:  # core.arrays would import torch, for which completion cannot wait
        raise InvalidInput(f"n_bytes of {name} must be an integer of at least 1; got {n_bytes!r}.")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Mirror:
    """One public place of a file: an HTTPS address, the bytes that travel, and the member if it is a zip archive."""

    url: str
    n_bytes: int
    member: str | None = None

    def __post_init__(self) -> None:
        require_https(self.url)
        _require_size(self.n_bytes, self.url)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class DataFile:
    """One file of a data set. ``name`` is its place below a data folder, as stored (``mnist/x.gz``)."""

    name: str
    split: str
    n_bytes: int
    """Size of the decompressed content."""
    sha256: str
    """Digest of the decompressed content."""
    mirrors: tuple[Mirror, ...] = ()

    def __post_init__(self) -> None:
        path = PurePosixPath(self.name)
        if not self.name or path.is_absolute() or ".." in path.parts or "\\" in self.name or ":" in self.name:
            raise InvalidInput(f"name must be a path below a data folder, such as 'text/play.txt'; got {self.name!r}.")
        if not self.split:
            raise InvalidInput(f"split must name the part that {self.name} is; got an empty name.")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise InvalidInput(f"sha256 of {self.name} must be 64 hexadecimal digits in small; got {self.sha256!r}.")
        _require_size(self.n_bytes, self.name)

    @property
    def stored_names(self) -> tuple[str, ...]:
        """Names it may be stored under: as registered, and decompressed if that is a gzip."""
        return (self.name, self.name.removesuffix(".gz")) if self.name.endswith(".gz") else (self.name,)

    @property
    def base_names(self) -> tuple[str, ...]:
        """``stored_names`` without their folder."""
        return tuple(PurePosixPath(name).name for name in self.stored_names)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set: what it is, under which licence, how to cite it, and its files.

    For implementers: a data set of this package is an entry in ``tasks/store/datasets.toml``; one of yours is an object
    of this class, which ``locate`` and the loaders take as it is, or by name after ``register_dataset``. Give every
    file the size and SHA-256 of its *decompressed* content; a name is its place below a data folder, ``.gz`` where it
    is stored compressed. Parts are named by ``split``: one text in one file is ``all``, in three files ``train``,
    ``valid`` and ``test``. Mirrors are HTTPS addresses with the bytes that travel; without any, users put the file in
    place by hand. A loader is a function that reads the parts of ``locate(name)`` and returns a frozen dataclass of
    tensors that carries ``located.digest`` as ``sha256``. Checked by ``tests/tasks/test_task_contract.py``.

    Raises:
        InvalidInput: a name that is no name, facts left out, two files for one part.
    """

    name: str
    title: str
    version: str
    licence: str
    citation: str
    files: tuple[DataFile, ...]
    note: str = ""
    confirm: str | None = None
    """Name the user must give to ``--accept-licence`` before a download, when the licence asks for a decision."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise InvalidInput(f"name of a data set must be small letters, digits and hyphens; got {self.name!r}.")
        for fact in ("title", "version", "licence", "citation"):
            if not getattr(self, fact):
                raise InvalidInput(f"{fact} of data set {self.name!r} must be given; got an empty text.")
        if not self.files or len(set(self.splits)) < len(self.files):
            raise InvalidInput(f"data set {self.name!r} must have one file for each part; its parts are {self.splits}.")

    @property
    def sha256(self) -> str:
        """One digest for the whole set: of the sorted file digests. It belongs in the record of a run."""
        return joint_digest({file.split: file.sha256 for file in self.files})

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its parts, in order."""
        return tuple(file.split for file in self.files)

    @property
    def n_bytes(self) -> int:
        """Size of the decompressed content of all files."""
        return sum(file.n_bytes for file in self.files)

    @property
    def downloadable(self) -> bool:
        """Whether a public address is known for every file."""
        return all(file.mirrors for file in self.files)

    def file(self, split: str) -> DataFile:
        """The file of one part."""
        return resolve(f"part of {self.name}", split, {file.split: file for file in self.files})

    def summary(self) -> str:
        """A few lines for people."""
        lines = [
            f"{self.name}: {self.title} (version {self.version})",
            f"licence: {self.licence}",
            f"cite: {self.citation}",
        ]
        if self.note:
            lines.append(f"note: {self.note}")
        lines += [f"  {file.split}: {file.name}, {file.n_bytes} bytes, sha256 {file.sha256}" for file in self.files]
        return "\n".join(lines)


def joint_digest(digests: Mapping[str, str]) -> str:
    """SHA-256 of the digests of all parts, whatever their order."""
    lines = sorted(f"{sha256}  {split}\n" for split, sha256 in digests.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()
