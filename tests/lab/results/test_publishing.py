from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import separatrix
from separatrix.core.errors import CorruptData, InvalidInput, MissingData, StoreError
from separatrix.lab import Row, Store, judge, judge_again, publish, read_publication, read_publications, rule_digest
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


def lenient(summary):
    return judge(f"mean {summary.mean:.4f}", [Row("mean", summary.mean, 1.0, 2.0)])


def with_rule(rule):
    claims = tuple(
        dataclasses.replace(claim, judge=rule) if claim.id == "short-one" else claim for claim in SHORT.claims
    )
    return dataclasses.replace(SHORT, claims=claims)


def test_a_file_names_the_rule_and_the_one_that_stood_before_the_run(store: Store, tmp_path: Path) -> None:
    publish([SHORT], store, tmp_path)
    judged = read_publication(tmp_path / "short.json", SHORT).claims["short-one"]
    assert judged["rule"] == rule_digest(SHORT.claims[1])
    assert judged["rules_of_run"] == [judged["rule"]]


def test_a_rule_changed_after_the_run_is_seen_and_needs_a_reason(store: Store, tmp_path: Path) -> None:
    publish([SHORT], store, tmp_path)
    path, bent = tmp_path / "short.json", with_rule(lenient)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"because must say why .*short-one: refuted to confirmed"):
        publish([bent], store, tmp_path)
    assert path.read_bytes() == before
    publish([bent], store, tmp_path, because="the mean may be off by two")
    found = read_publication(path, bent)
    (event,) = found.history
    assert event["because"] == "the mean may be off by two"
    assert event["changes"] == {
        "short-one": {"from": "refuted", "to": "confirmed", "rule": "changed", "run": "the same"}
    }
    assert found.claims["short-one"]["rules_of_run"] == [rule_digest(SHORT.claims[1])]
    assert found.claims["short-one"]["rule"] == rule_digest(bent.claims[1])


def test_published_summaries_are_judged_again_without_a_run(store: Store, tmp_path: Path) -> None:
    publish([SHORT, BUGGY], store, tmp_path)
    assert judge_again([SHORT, BUGGY], tmp_path) == []
    assert judge_again([with_rule(lenient)], tmp_path, because="reasons") == [tmp_path / "short.json"]
    found = read_publication(tmp_path / "short.json", SHORT)
    assert found.claims["short-one"]["verdict"] == "confirmed"
    assert [event["because"] for event in found.history] == ["reasons"]
    with pytest.raises(MissingData, match="another version of short"):
        judge_again([dataclasses.replace(SHORT, version=2)], tmp_path)


def test_every_record_leaves_a_fingerprint(store: Store, tmp_path: Path) -> None:
    publish([SHORT], store, tmp_path)
    found = read_publication(tmp_path / "short.json", SHORT)
    cells = {cell.key: cell for cell in SHORT.cells(SHORT.params("laptop"))}
    assert set(found.records) == set(cells)
    for key, kept in found.records.items():
        record = store.read(key)
        assert record is not None
        assert (kept["digest"], kept["seed"], kept["args"]) == (record.digest, record.cell.seed, record.cell.args)
        assert len(kept["numbers"]) == 8
