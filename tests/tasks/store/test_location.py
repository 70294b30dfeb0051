from __future__ import annotations

import gzip
import hashlib
import os
import time
from pathlib import Path

import pytest

from separatrix.core import CorruptData, DatasetUnavailable, InvalidInput
from separatrix.tasks import DataFile, Dataset, Mirror, locate
from separatrix.tasks.store import location
from separatrix.tasks.store.content import measure
from separatrix.tasks.store.location import ModifiedData

CONTENT = b"to be or not to be\n" * 20
DIGEST = hashlib.sha256(CONTENT).hexdigest()
PLAIN = DataFile("text/play.txt.gz", "all", len(CONTENT), DIGEST, (Mirror("https://example.org/play.txt.gz", 100),))
PLAY = Dataset("play", "a play", "1", "public domain", "Anonymous.", (PLAIN,))
GUARDED = Dataset("guarded", "a play", "1", "Ask first.", "Anonymous.", (PLAIN,), confirm="guarded")


@pytest.fixture(autouse=True)
def small_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A registry of two tiny sets, an empty cache, and no data folder from outside."""
    import separatrix.tasks.store.catalogue
    import separatrix.tasks.store.location

    cache = tmp_path / "cache"
    known = {dataset.name: dataset for dataset in (PLAY, GUARDED)}
    monkeypatch.setattr(separatrix.tasks.store.catalogue, "_registry", lambda: known)
    monkeypatch.setattr(separatrix.tasks.store.location, "cache_folder", lambda: cache)
    monkeypatch.delenv("SEPARATRIX_DATA", raising=False)
    return cache


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def never(url: str) -> None:
    raise AssertionError(f"a download was attempted: {url}")


@pytest.mark.parametrize("name", ["text/play.txt.gz", "text/play.txt", "play.txt.gz", "play.txt"])
def test_file_is_found_compressed_or_not_and_with_or_without_its_folder(name: str, tmp_path: Path) -> None:
    stored = put(tmp_path / "mine" / name)
    located = locate("play", path=tmp_path / "mine")
    assert located.paths["all"] == stored
    assert located.sha256["all"] == DIGEST
    assert located.verified
    assert located.digest == PLAY.sha256
    assert located.read("all") == CONTENT


def test_any_compression_of_the_same_content_passes(tmp_path: Path) -> None:
    stored = tmp_path / "play.txt.gz"
    stored.write_bytes(gzip.compress(CONTENT, compresslevel=1) + gzip.compress(b""))
    assert locate("play", path=tmp_path).verified


def test_explicit_path_then_environment_then_cache(
    tmp_path: Path, small_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = put(small_registry / "text/play.txt")
    assert locate("play").paths["all"] == cached
    in_environment = put(tmp_path / "environment" / "text/play.txt")
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path / "environment"))
    assert locate("play").paths["all"] == in_environment
    given = put(tmp_path / "given" / "play.txt")
    assert locate("play", path=tmp_path / "given").paths["all"] == given


def test_missing_file_names_places_addresses_names_and_digests(small_registry: Path) -> None:
    with pytest.raises(DatasetUnavailable) as caught:
        locate("play", opener=never)
    message = str(caught.value)
    for needed in (str(small_registry), "https://example.org/play.txt.gz", "text/play.txt", DIGEST, "data get play"):
        assert needed in message


def test_flipped_byte_is_an_error_with_both_digests_and_the_command(tmp_path: Path) -> None:
    changed = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    stored = put(tmp_path / "play.txt", changed)
    with pytest.raises(CorruptData) as caught:
        locate("play", path=tmp_path)
    message = str(caught.value)
    for needed in (str(stored), DIGEST, hashlib.sha256(changed).hexdigest(), "separatrix data get play"):
        assert needed in message
    assert stored.read_bytes() == changed


def test_modified_file_is_used_with_a_warning_when_allowed(tmp_path: Path) -> None:
    put(tmp_path / "play.txt", CONTENT * 3)
    with pytest.warns(ModifiedData, match="differs from the registered play"):
        located = locate("play", path=tmp_path, allow_modified=True)
    assert not located.verified
    assert located.digest != PLAY.sha256
    assert located.read("all") == CONTENT * 3


def test_truncated_gzip_is_refused_even_when_modified_data_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "play.txt.gz").write_bytes(gzip.compress(CONTENT)[:-6])
    with pytest.raises(CorruptData, match="broken gzip file"):
        locate("play", path=tmp_path, allow_modified=True)


def test_oversized_content_is_not_read_to_its_end(tmp_path: Path) -> None:
    put(tmp_path / "play.txt.gz", bytes(50_000_000))
    with pytest.raises(CorruptData, match=f"more than {int(len(CONTENT) * 1.2)} bytes"):
        locate("play", path=tmp_path)


def test_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="path must be a folder"):
        locate("play", path=tmp_path / "nowhere")


def test_unknown_part_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "play.txt")
    with pytest.raises(InvalidInput, match="has the parts all; got 'train'"):
        locate("play", path=tmp_path).read("train")


def test_guarded_licence_must_be_accepted_before_a_download() -> None:
    with pytest.raises(InvalidInput, match="--accept-licence guarded"):
        locate("guarded", download=True, opener=never)


def test_guarded_data_already_here_needs_no_download_and_no_question(tmp_path: Path) -> None:
    put(tmp_path / "play.txt")
    assert locate("guarded", path=tmp_path, download=True, opener=never).verified


def test_what_was_found_intact_is_measured_again_only_when_it_was_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = put(tmp_path / "play.txt")
    paths: list[Path] = []
    monkeypatch.setattr(location, "measure", lambda path, limit: paths.append(path) or measure(path, limit))
    for _ in range(2):  # it was written a moment ago: its times would not tell of a second writing
        locate("play", path=tmp_path)
    assert len(paths) == 2
    later = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: later)
    for _ in range(2):
        assert locate("play", path=tmp_path).sha256["all"] == DIGEST
    assert len(paths) == 3
    put(stored, CONTENT.swapcase())
    os.utime(stored, ns=(0, stored.stat().st_mtime_ns + 10**6))
    with pytest.raises(CorruptData, match="wrong content"):
        locate("play", path=tmp_path)


def test_what_was_found_broken_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "play.txt", CONTENT.swapcase())
    later = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: later)
    for _ in range(2):
        with pytest.raises(CorruptData, match="wrong content"):
            locate("play", path=tmp_path)
