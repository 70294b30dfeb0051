"""Find the files of a data set and verify them: explicit path, SEPARATRIX_DATA, the user's cache, then download.

Nothing is downloaded unless the caller says so.
"""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import final

import platformdirs

from separatrix.core.errors import DatasetUnavailable, InvalidInput
from separatrix.core.result import Result

from .catalogue import find_dataset
from .content import Content, measure, mismatch, open_content, size_limit
from .download import Opener, fetch, open_https
from .registry import DataFile, Dataset, joint_digest

ENVIRONMENT = "SEPARATRIX_DATA"
_A_MOMENT = 2_000_000_000
"""Nanoseconds; no usual file system has coarser times."""
_intact: set[tuple[object, ...]] = set()


class ModifiedData(UserWarning):
    """A file differs from the registry and is used because the caller allowed it."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Located(Result):
    """Where the files of a data set lie, and whether every one of them has the registered content."""

    dataset: Dataset
    paths: Mapping[str, Path]
    """By split."""
    sha256: Mapping[str, str]
    """Digest found, by split."""
    verified: bool

    @property
    def digest(self) -> str:
        """One digest of what was found, for the record of a run; ``dataset.sha256`` when it is verified."""
        return joint_digest(self.sha256)

    def read(self, split: str) -> bytes:
        """The decompressed content of one part."""
        if split not in self.paths:
            raise InvalidInput(f"{self.dataset.name} has the parts {', '.join(self.paths)}; got {split!r}.")
        with open_content(self.paths[split]) as stream:
            return stream.read()


def cache_folder() -> Path:
    """The user's cache of data, where downloads go."""
    return Path(platformdirs.user_cache_dir("separatrix")) / "data"


def locate(
    name: str | Dataset,
    *,
    path: str | Path | None = None,
    download: bool = False,
    allow_modified: bool = False,
    accept_licence: Collection[str] = (),
    opener: Opener = open_https,
) -> Located:
    """Find every file of a data set and verify its content.

    Looked in, in this order: ``path``, the folder named by ``SEPARATRIX_DATA``, the user's cache. Only then, and only
    with ``download=True``, the files' public addresses.

    Cost: one pass over every file; none over a file that this process has found intact and nobody has touched since.

    Args:
        name: a name of ``datasets()``, or a data set of your own.
        path: a folder that holds the files, with or without the sub-folder of the registry's names.
        download: whether missing files may be fetched into the user's cache.
        allow_modified: use a file whose content differs, with a warning and ``verified=False``.
        accept_licence: names of licences the user has read and accepts (``"ptb"``).
        opener: opens an HTTPS address; replaced in tests.

    Raises:
        DatasetUnavailable: a file was found nowhere; the message says where to put it.
        CorruptData: a file has another content than registered.
        InvalidInput: unknown name, or a download whose licence was not accepted.
    """
    dataset = find_dataset(name)
    folders = search_folders(path)
    paths: dict[str, Path] = {}
    digests: dict[str, str] = {}
    verified = True
    found = {file.split: _find(file, folders) for file in dataset.files}
    if download and any(stored is None for stored in found.values()):
        _require_licence(dataset, accept_licence)
    for file in dataset.files:
        stored = found[file.split]
        if stored is None and download and file.mirrors:
            stored = fetch(file, cache_folder(), opener=opener)
        if stored is None:
            raise DatasetUnavailable(_how_to_supply(dataset, folders, found, download))
        content = _measured(stored, file, None if allow_modified else size_limit(file.n_bytes))
        if not content.matches(file):
            if content.problem or not allow_modified:
                raise mismatch(stored, file, content, dataset.name)
            warnings.warn(
                f"{stored} differs from the registered {dataset.name}; used as allowed.", ModifiedData, stacklevel=2
            )
            verified = False
        paths[file.split], digests[file.split] = stored, content.sha256
    return Located(dataset, paths, digests, verified)


def _measured(stored: Path, file: DataFile, limit: int | None) -> Content:
    """What a file holds: what was found before, if it was the registered content and the file is as it was."""
    known = Content(file.n_bytes, file.sha256)
    mark = _mark(stored, file)
    if mark in _intact:
        return known
    content = measure(stored, limit)
    if content == known and mark is not None and mark == _mark(stored, file):
        _intact.add(mark)
    return content


def _mark(stored: Path, file: DataFile) -> tuple[object, ...] | None:
    """What changes with every change of a file. None of a file that was touched a moment ago: times are no finer than
    the ticks of the system, and it could be changed again in the same tick."""
    now = stored.stat()
    if time.time_ns() - max(now.st_mtime_ns, now.st_ctime_ns) < _A_MOMENT:
        return None
    return (file.sha256, str(stored.absolute()), now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def search_folders(path: str | Path | None = None) -> list[Path]:
    """The folders looked in, in order. An explicit path that is not a folder is refused."""
    folders = []
    if path is not None:
        if not Path(path).is_dir():
            raise InvalidInput(f"path must be a folder that holds the data; got {str(path)!r}.")
        folders.append(Path(path))
    if os.environ.get(ENVIRONMENT):
        folders.append(Path(os.environ[ENVIRONMENT]))
    return [*folders, cache_folder()]


def _find(file: DataFile, folders: list[Path]) -> Path | None:
    candidates = (folder / name for folder in folders for name in (*file.stored_names, *file.base_names))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _require_licence(dataset: Dataset, accepted: Collection[str]) -> None:
    if dataset.confirm is not None and dataset.confirm not in accepted:
        raise InvalidInput(
            f"{dataset.name} is downloaded only once its licence is accepted. Read it with `separatrix data show "
            f"{dataset.name}`, then pass --accept-licence {dataset.confirm} (accept_licence=[{dataset.confirm!r}])."
        )


def _how_to_supply(dataset: Dataset, folders: list[Path], found: Mapping[str, Path | None], download: bool) -> str:
    missing = [file for file in dataset.files if found[file.split] is None]
    lines = [f"{dataset.name} was not found. Looked in: {', '.join(str(folder) for folder in folders)}."]
    lines.append(f"Put these files into one of them (or name a folder in {ENVIRONMENT}):")
    for file in missing:
        lines.append(f"  {' or '.join(file.stored_names)}: {file.n_bytes} bytes decompressed, sha256 {file.sha256}")
        addresses = [mirror.url for mirror in file.mirrors]
        lines.append(f"    {'from ' + ' or '.join(addresses) if addresses else 'no public address is known'}")
    if not download and all(file.mirrors for file in missing):
        licence = f" --accept-licence {dataset.confirm}" if dataset.confirm else ""
        lines.append(f"To download: separatrix data get {dataset.name}{licence}")
    return "\n".join(lines)
