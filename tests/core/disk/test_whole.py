from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.core.disk import write_text_whole, written_whole


def test_a_file_appears_whole_and_alone(tmp_path: Path) -> None:
    write_text_whole(tmp_path / "a", "old")
    write_text_whole(tmp_path / "a", "né")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "né"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_after_an_error_the_old_file_stands_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def write_half() -> None:
        with written_whole(tmp_path / "a") as stream:
            stream.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def test_what_cannot_be_written_is_called_by_the_name_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none/figure\.png'$"), written_whole(tmp_path / "none" / "figure.png") as stream:
        stream.write(b"x")
