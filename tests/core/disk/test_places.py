from __future__ import annotations

import os
from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.core.disk import require_place_for_file, require_place_for_folder


def test_a_free_place_is_given_back_and_its_folder_made(tmp_path: Path) -> None:
    assert require_place_for_file(tmp_path / "a" / "b.txt", "out") == tmp_path / "a" / "b.txt"
    assert require_place_for_folder(str(tmp_path / "c"), "out") == tmp_path / "c"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "c"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match=r"out must be the path of a file; .* is a folder"):
        require_place_for_file(tmp_path, "out")
    with pytest.raises(InvalidInput, match=r"is neither a file nor free"):
        require_place_for_file(tmp_path / "pipe", "out")
    with pytest.raises(InvalidInput, match=r"out cannot be written: .*: (Not a directory|File exists)\."):
        require_place_for_file(tmp_path / "file" / "x", "out")
    with pytest.raises(InvalidInput, match=r"File name too long"):
        require_place_for_folder(tmp_path / ("x" * 3000), "out")
    with pytest.raises(InvalidInput, match=r"out must be the path of a folder; .* is none"):
        require_place_for_folder(tmp_path / "file", "out")
    for bad in ("", "a\0b"):
        with pytest.raises(InvalidInput, match=r"^out [^\n]*\.$"):
            require_place_for_file(bad, "out")
        with pytest.raises(InvalidInput, match=r"^out [^\n]*\.$"):
            require_place_for_folder(bad, "out")
