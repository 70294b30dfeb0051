from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import separatrix
from separatrix.core.errors import CorruptData, MissingData, StoreError
from separatrix.lab import Store, publish, read_publication, read_publications
from short_experiments import BUGGY, SHORT, run_inline


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    run_inline(store, (SHORT, SHORT.params("laptop"), "laptop"))
    return store


def test_a_published_result_says_what_was_measured_and_how(store: Store, tmp_path: Path) -> None:
    written, left_out = publish([SHORT, BUGGY], store, tmp_path / "results")
    assert (written, left_out) == ([tmp_path / "results" / "short.json"], ["buggy"])
    found = read_publication(written[0], SHORT)
    assert (found.version, found.scale, found.stale) == (1, "laptop", False)
    assert found.claims["short-one"]["verdict"] == "refuted"
    assert found.claims["short-one"]["rows"][0]["measured"] == found.summary["mean"]
    assert found.provenance["package_version"] == separatrix.__version__
    assert found.provenance["command"] == f"separatrix run {SHORT.entry} --scale laptop"


def test_numbers_are_not_rounded(store: Store, tmp_path: Path) -> None:
    (report,) = run_inline(store, (SHORT, SHORT.params("laptop"), "laptop"))
    publish([SHORT], store, tmp_path)
    assert report.summary is not None
    assert read_publication(tmp_path / "short.json", SHORT).summary == report.summary.to_dict()


def test_publishing_twice_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    publish([SHORT], store, tmp_path)
    before = (tmp_path / "short.json").read_bytes()
    publish([SHORT], store, tmp_path)
    assert (tmp_path / "short.json").read_bytes() == before


@pytest.mark.parametrize("experiment", [dataclasses.replace(SHORT, version=2), None])
def test_a_result_of_another_version_is_stale(store: Store, tmp_path: Path, experiment) -> None:
    publish([SHORT], store, tmp_path)
    assert read_publication(tmp_path / "short.json", experiment).stale


def test_a_folder_of_results_is_read_in_order(store: Store, tmp_path: Path) -> None:
    publish([SHORT], store, tmp_path)
    assert [found.experiment for found in read_publications(tmp_path, {"short": SHORT})] == ["short"]


def test_only_the_asked_scale_is_published(store: Store, tmp_path: Path) -> None:
    assert publish([SHORT], store, tmp_path, scale="paper") == ([], ["short"])


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="make it with separatrix publish"):
        read_publication(tmp_path / "none.json", None)
    (tmp_path / "bad.json").write_text('{"experiment": "x"}')
    with pytest.raises(CorruptData, match=r"bad\.json is not a published result"):
        read_publication(tmp_path / "bad.json", None)


def test_a_folder_that_cannot_be_written_is_one_sentence(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write .*short\.json"):
        publish([SHORT], store, tmp_path / "file")
