from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from separatrix.core import InvalidInput, MissingData
from separatrix.experiments import catalogue
from separatrix.lab import Publication, read_publications, shipped_results, write_crate

pytest.importorskip("rocrate", reason="the crate extra is not installed")
NAMES = ("agarwala-fig1", "altafini-fig2", "linear-conservation")


@pytest.fixture
def files() -> Path:
    found = shipped_results()
    assert found is not None
    return found


@pytest.fixture
def published(files: Path) -> list[Publication]:
    return [item for item in read_publications(files, catalogue()) if item.experiment in NAMES]


def test_a_crate_read_back_holds_every_file_its_run_and_its_document(
    published: list[Publication], files: Path, tmp_path: Path
) -> None:
    from rocrate.rocrate import ROCrate

    assert write_crate(published, files, tmp_path / "crate").is_file()
    read = ROCrate(tmp_path / "crate")
    assert "3 experiments" in read.description
    for item in published:
        entity = read.get(f"results/{item.experiment}.json")
        content = (tmp_path / "crate" / "results" / f"{item.experiment}.json").read_bytes()
        assert content == (files / f"{item.experiment}.json").read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        action = read.get(f"#run-{item.experiment}")
        assert action["result"] is entity
        assert action["instrument"]["softwareVersion"] == item.provenance["package_version"]
        assert action["name"] == item.provenance["command"]
        assert entity["about"].id == f"#{item.document}"
    assert read.get("#altafini2025").type == "ScholarlyArticle"
    assert read.license["name"] == "Apache License 2.0"
    assert read.root_dataset["author"].type == "Organization"
    assert json.loads((tmp_path / "crate" / "ro-crate-metadata.json").read_text())["@context"]


def test_what_cannot_be_packed_is_refused(published: list[Publication], files: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="no published result"):
        write_crate([], files, tmp_path / "a")
    with pytest.raises(MissingData, match="is gone"):
        write_crate(published, tmp_path, tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mine.txt").write_text("kept")
    with pytest.raises(InvalidInput, match="new or empty folder"):
        write_crate(published, files, tmp_path / "c")
    assert (tmp_path / "c" / "mine.txt").read_text() == "kept"
