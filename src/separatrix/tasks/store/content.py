"""The decompressed content of a stored file: read, measured and compared with the registry."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import final

from separatrix.core.errors import CorruptData

from .registry import DataFile

SIZE_MARGIN = 1.2
"""How far a file may exceed its registered size before reading it stops."""

_CHUNK = 1 << 20


@final
@dataclasses.dataclass(frozen=True)
class Content:
    """Size and digest of what a file holds once decompressed, or why it could not be read to the end."""

    n_bytes: int
    sha256: str
    problem: str | None = None

    def matches(self, file: DataFile) -> bool:
        """Whether this is the registered content."""
        return self.problem is None and (self.n_bytes, self.sha256) == (file.n_bytes, file.sha256)

    def __str__(self) -> str:
        return self.problem or f"{self.sha256} ({self.n_bytes} bytes)"


def open_content(path: Path) -> io.BufferedIOBase:
    """Open a file for reading its decompressed bytes (gzip is told by the suffix)."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def measure(path: Path, limit: int | None = None) -> Content:
    """Digest the decompressed content of ``path``, giving up beyond ``limit`` bytes.

    Cost: one pass over the file in blocks of 1 MiB; memory does not grow with the file.
    """
    digest, n_bytes, problem = hashlib.sha256(), 0, None
    try:
        with open_content(path) as stream:
            while block := stream.read(_CHUNK):
                n_bytes += len(block)
                digest.update(block)
                if limit is not None and n_bytes > limit:
                    problem = f"more than {limit} bytes"
                    break
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problem = f"a broken gzip file ({error})"
    return Content(n_bytes, digest.hexdigest(), problem)


def size_limit(n_bytes: int) -> int:
    """The most bytes accepted where ``n_bytes`` are expected."""
    return int(n_bytes * SIZE_MARGIN)


def mismatch(path: Path, file: DataFile, found: Content, dataset: str) -> CorruptData:
    """The error for a stored file that is not what the registry expects."""
    return CorruptData(
        f"{path} has the wrong content: expected sha256 {file.sha256} ({file.n_bytes} bytes), found {found}. It was "
        f"neither used nor deleted. Move it away and run `separatrix data get {dataset}`, or pass --allow-modified to "
        f"use it as it is."
    )
