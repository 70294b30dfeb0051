from __future__ import annotations

import gzip
import hashlib
import io
import threading
import urllib.error
import zipfile
from pathlib import Path

import pytest

from separatrix.core import CorruptData, DatasetUnavailable, InvalidInput
from separatrix.tasks import DataFile, Mirror
from separatrix.tasks.store import lock
from separatrix.tasks.store.download import check_archive, fetch, open_https

CONTENT = b"all the world's a stage\n" * 50
PACKED = gzip.compress(CONTENT)
PATIENCE = 120
"""Seconds until a thread that should have come is given up; a busy machine may need many."""


def data_file(*mirrors: Mirror, name: str = "text/play.txt.gz") -> DataFile:
    return DataFile(name, "all", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), mirrors)


GOOD = Mirror("https://good.example/play.gz", len(PACKED))


class Server:
    """Answers by address; an exception among the answers is raised."""

    def __init__(self, **answers: bytes | Exception) -> None:
        self.answers, self.asked = answers, []

    def __call__(self, url: str) -> io.BytesIO:
        self.asked.append(url)
        answer = self.answers[url.split("//")[1].split(".")[0]]
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)


class Interrupted(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 0:
            raise ConnectionResetError("connection reset")
        return super().read(10)


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


def test_fetched_file_stands_under_its_name_with_the_bytes_as_served(tmp_path: Path) -> None:
    stored = fetch(data_file(GOOD), tmp_path, opener=Server(good=PACKED))
    assert stored == tmp_path / "text/play.txt.gz"
    assert stored.read_bytes() == PACKED
    assert left_behind(tmp_path) == ["play.txt.gz"]


def test_file_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    server = Server(good=PACKED)
    fetch(data_file(GOOD), tmp_path, opener=server)
    fetch(data_file(GOOD), tmp_path, opener=server)
    assert len(server.asked) == 1


def test_mirrors_are_tried_in_order_until_one_serves_the_right_content(tmp_path: Path) -> None:
    down = Mirror("https://down.example/play.gz", len(PACKED))
    wrong = Mirror("https://wrong.example/play.gz", len(PACKED))
    server = Server(down=urllib.error.URLError("no route"), wrong=gzip.compress(CONTENT[::-1]), good=PACKED)
    fetch(data_file(down, wrong, GOOD), tmp_path, opener=server)
    assert [url.split("/")[2] for url in server.asked] == ["down.example", "wrong.example", "good.example"]
    assert left_behind(tmp_path) == ["play.txt.gz"]


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (urllib.error.URLError("no route"), "no route"),
        (gzip.compress(CONTENT[::-1]), "expected [0-9a-f]{64}"),
        (PACKED[:-4], "broken gzip"),
        (b"x" * (2 * len(PACKED)), "more than the limit"),
        (b"<html>not found</html>", "broken gzip"),
    ],
    ids=["offline", "wrong content", "truncated", "too large", "error page"],
)
def test_failed_download_says_why_and_leaves_nothing(answer: bytes | Exception, match: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match=match) as caught:
        fetch(data_file(GOOD), tmp_path, opener=Server(good=answer))
    assert "by hand" in str(caught.value)
    assert left_behind(tmp_path) == []


def test_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="connection reset"):
        fetch(data_file(GOOD), tmp_path, opener=lambda url: Interrupted(PACKED))
    assert left_behind(tmp_path) == []


def test_only_https_is_used() -> None:
    with pytest.raises(InvalidInput, match="HTTPS only"):
        Mirror("http://plain.example/play.gz", len(PACKED))
    with pytest.raises(InvalidInput, match="HTTPS only"):
        open_https("file:///etc/hostname")


def test_two_fetches_at_once_download_once(tmp_path: Path) -> None:
    server = Server(good=PACKED)
    entered, go_on = threading.Event(), threading.Event()

    def slow(url: str) -> io.BytesIO:
        entered.set()
        assert go_on.wait(PATIENCE)
        return server(url)

    threads = [threading.Thread(target=fetch, args=(data_file(GOOD), tmp_path), kwargs={"opener": slow})]
    threads.append(threading.Thread(target=fetch, args=(data_file(GOOD), tmp_path), kwargs={"opener": slow}))
    threads[0].start()
    assert entered.wait(PATIENCE)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(server.asked) == 1
    assert left_behind(tmp_path) == ["play.txt.gz"]


def archive(*members: str, content: bytes = CONTENT) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        for member in members:
            opened.writestr(member, content)
    return stream.getvalue()


def test_registered_member_is_taken_out_of_a_zip(tmp_path: Path) -> None:
    packed = archive("plays/readme", "plays/play.txt")
    file = data_file(Mirror("https://good.example/plays.zip", len(packed), "plays/play.txt"), name="text/play.txt")
    assert fetch(file, tmp_path, opener=Server(good=packed)).read_bytes() == CONTENT
    assert left_behind(tmp_path) == ["play.txt"]


@pytest.mark.parametrize("member", ["/etc/passwd", "../up", "a/../../up", "C:/windows", "..\\up"])
def test_archive_with_an_unsafe_name_is_refused(member: str, tmp_path: Path) -> None:
    packed = archive("play.txt", member)
    file = data_file(Mirror("https://good.example/plays.zip", len(packed), "play.txt"), name="text/play.txt")
    with pytest.raises(DatasetUnavailable, match="unsafe member"):
        fetch(file, tmp_path, opener=Server(good=packed))
    assert left_behind(tmp_path) == []


def test_archive_with_a_link_too_many_members_or_too_much_content_is_refused() -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        opened.writestr(link, "/etc/passwd")
        with pytest.raises(CorruptData, match="unsafe member 'link'"):
            check_archive(opened, limit=10**6)
    many = zipfile.ZipFile(io.BytesIO(archive(*(f"m{i}" for i in range(1001)), content=b"")))
    with pytest.raises(CorruptData, match="1001 members"):
        check_archive(many, limit=10**6)
    bomb = zipfile.ZipFile(io.BytesIO(archive("zeros", content=bytes(10**6))))
    with pytest.raises(CorruptData, match="more than 1000 bytes"):
        check_archive(bomb, limit=1000)


def test_archive_without_the_member_is_refused(tmp_path: Path) -> None:
    packed = archive("other.txt")
    file = data_file(Mirror("https://good.example/plays.zip", len(packed), "play.txt"), name="text/play.txt")
    with pytest.raises(DatasetUnavailable, match=r"no member 'play\.txt'"):
        fetch(file, tmp_path, opener=Server(good=packed))


def test_a_folder_without_locks_is_used_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network folders may refuse them; what is fetched appears whole or not at all either way."""

    def refuse(stream: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(lock, "_acquire", refuse)
    with pytest.warns(UserWarning, match=r"allows no locks \(No locks available\)"), lock.only_one(tmp_path / "x.lock"):
        pass
