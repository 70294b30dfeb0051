"""Fetch one file over HTTPS: temporary file, size limit, digest, atomic rename, one process at a time.

Nothing appears under the final name before its content was verified. The transfer stays decompressed or gzipped as
the address serves it; a zip archive is opened only to take the one registered member out.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeAlias, runtime_checkable
from zipfile import BadZipFile, ZipFile

from separatrix.core.errors import CorruptData, DatasetUnavailable

from .content import measure, size_limit
from .lock import only_one
from .registry import DataFile, Mirror, require_https


@runtime_checkable
class Readable(Protocol):
    """Anything that gives bytes."""

    def read(self, size: int = ..., /) -> bytes:
        """At most ``size`` bytes; none at the end."""


Opener: TypeAlias = Callable[[str], AbstractContextManager[Readable]]

_TIMEOUT = 30.0
_CHUNK = 1 << 16
_MAX_MEMBERS = 1000


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    """A redirect away from HTTPS is refused."""

    def redirect_request(  # type: ignore[no-untyped-def]
        self, request, stream, code, message, headers, address
    ) -> urllib.request.Request | None:
        require_https(address)
        return super().redirect_request(request, stream, code, message, headers, address)


def open_https(url: str) -> AbstractContextManager[Readable]:
    """Open an HTTPS address for reading."""
    require_https(url)
    request = urllib.request.Request(url, headers={"User-Agent": "separatrix"})
    return urllib.request.build_opener(_OnlyHttps).open(request, timeout=_TIMEOUT)


def fetch(file: DataFile, folder: Path, *, opener: Opener = open_https) -> Path:
    """Put a registered file below ``folder`` from the first mirror that serves the right content.

    Two processes that fetch the same file take turns: the second finds the file of the first and uses it.

    Raises:
        DatasetUnavailable: no mirror gave the registered content; the message has the reason of each.
    """
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one(target.with_name(f".{target.name}.lock")):
        if target.is_file():
            return target
        reasons = []
        for mirror in file.mirrors:
            try:
                return _fetch_from(mirror, file, target, opener)
            except (OSError, urllib.error.URLError, http.client.HTTPException, CorruptData, BadZipFile) as error:
                reasons.append(f"{mirror.url}: {error}")
    raise DatasetUnavailable(
        f"{file.name} could not be downloaded. "
        + "; ".join(reasons or ["no public address is known"])
        + f". Put it at {target} by hand (sha256 of the decompressed content {file.sha256})."
    )


def _fetch_from(mirror: Mirror, file: DataFile, target: Path, opener: Opener) -> Path:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
        arrived = Path(folder) / target.name
        with opener(mirror.url) as source:
            _copy(source, arrived, size_limit(mirror.n_bytes), mirror.url)
        if mirror.member is not None:
            arrived = _take_member(arrived, mirror.member, file)
        content = measure(arrived, size_limit(file.n_bytes))
        if not content.matches(file):
            raise CorruptData(f"it served {content}, expected {file.sha256} ({file.n_bytes} bytes)")
        os.replace(arrived, target)
    _sync_folder(target.parent)
    return target


def _copy(source: Readable, path: Path, limit: int, name: str) -> None:
    """Write a stream to a file on the disk, refusing more than ``limit`` bytes."""
    n_bytes = 0
    with path.open("wb") as stream:
        while block := source.read(_CHUNK):
            n_bytes += len(block)
            if n_bytes > limit:
                raise CorruptData(f"{name} gave more than the limit of {limit} bytes")
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())


def _take_member(archive: Path, member: str, file: DataFile) -> Path:
    """The one registered member of a zip archive, as a file beside it; suspicious archives are refused."""
    taken = archive.with_name(archive.name + ".member" + Path(file.name).suffix)
    with ZipFile(archive) as opened:
        check_archive(opened, limit=max(file.n_bytes, archive.stat().st_size) * 10)
        if member not in opened.namelist():
            raise CorruptData(f"the archive has no member {member!r}")
        with opened.open(member) as source:
            _copy(source, taken, size_limit(file.n_bytes), member)
    return taken


def check_archive(archive: ZipFile, limit: int) -> None:
    """Refuse absolute names, ``..``, links, more than 1000 members, and more than ``limit`` bytes uncompressed."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise CorruptData(f"the archive has {len(members)} members; at most {_MAX_MEMBERS} are accepted")
    if sum(member.file_size for member in members) > limit:
        raise CorruptData(f"the archive would take more than {limit} bytes")
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        is_link = (member.external_attr >> 16) & 0o170000 == 0o120000
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0] or is_link:
            raise CorruptData(f"the archive has the unsafe member {member.filename!r}")


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        with _opened_folder(folder) as handle:
            os.fsync(handle)


@contextlib.contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)
