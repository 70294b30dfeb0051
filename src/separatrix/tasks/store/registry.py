"""What is known of a data set before a byte of it is read: files, digests, licence, where it can be had.

Digests are those of the decompressed content, so that a mirror which compressed the same bytes differently passes.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import final

from separatrix.core.names import suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Mirror:
    """One public place of a file: an HTTPS address, the bytes that travel, and the member if it is a zip archive."""

    url: str
    n_bytes: int
    member: str | None = None


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
    """A data set: what it is, under which licence, how to cite it, and its files."""

    name: str
    title: str
    version: str
    licence: str
    citation: str
    files: tuple[DataFile, ...]
    note: str = ""
    confirm: str | None = None
    """Name the user must give to ``--accept-licence`` before a download, when the licence asks for a decision."""

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
        return next(file for file in self.files if file.split == split)

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
