from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from separatrix.core import CorruptData
from separatrix.lab import ExperimentError, LedgerEntry, Store, Verdict, ledger, publish, read_publication
from separatrix.lab.ledger import shipped_publications
from short_experiments import BUGGY, MISJUDGED, SHORT, run_inline


def verdicts(entries: list[LedgerEntry]) -> dict[str, tuple[str | None, Verdict]]:
    return {entry.claim.id: (entry.scale, entry.judgement.verdict) for entry in entries}


def test_without_records_no_claim_has_a_verdict(tmp_path: Path) -> None:
    for store in (None, Store(tmp_path)):
        entries = ledger([SHORT], store)
        assert [entry.judgement.verdict for entry in entries] == [Verdict.NOT_RUN] * 3
        assert entries[2].judgement.evidence == "needs separatrix run short_experiments:short --scale paper"


def test_a_claim_is_judged_from_its_own_scale_upwards(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    assert verdicts(ledger([SHORT], store)) == {
        "short-zero": ("smoke", Verdict.CONFIRMED),
        "short-one": ("smoke", Verdict.REFUTED),
        "short-paper": (None, Verdict.NOT_RUN),
    }
    run_inline(store, (SHORT, SHORT.params("paper"), "paper"))
    assert verdicts(ledger([SHORT], store)) == {
        "short-zero": ("paper", Verdict.CONFIRMED),
        "short-one": ("paper", Verdict.REFUTED),
        "short-paper": ("paper", Verdict.CONFIRMED),
    }


def test_an_incomplete_run_gives_no_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_inline(store, (SHORT, SHORT.params("smoke", fail_at=0), "smoke"))
    assert {entry.judgement.verdict for entry in ledger([SHORT], store)} == {Verdict.NOT_RUN}


def test_a_bug_is_raised_and_never_becomes_a_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_inline(store, (BUGGY, BUGGY.params("smoke"), "smoke"))
    with pytest.raises(ExperimentError, match="experiment buggy: its summary failed on complete records"):
        ledger([BUGGY], store)


def test_an_entry_is_plain_json_with_its_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    read = json.loads(json.dumps(ledger([SHORT], store)[1].to_dict(), allow_nan=False))
    assert list(read) == [
        "id", "document", "place", "statement", "measures", "test", "erratum", "experiment", "scale",
        "date", "own", "published", "rule", "verdict", "evidence", "rows", "truth",
    ]  # fmt: skip
    assert (read["id"], read["experiment"], read["scale"]) == ("short-one", "short", "smoke")
    assert read["verdict"] == "refuted"
    assert read["rows"][0]["expected"] == 1.0


def test_a_published_verdict_speaks_where_no_run_of_ones_own_does(tmp_path: Path) -> None:
    with Store(tmp_path / "other") as other:
        run_inline(other, (SHORT, SHORT.params("laptop"), "laptop"))
        publish([SHORT], other, tmp_path)
    published = {"short": read_publication(tmp_path / "short.json", SHORT)}
    (zero, one, paper) = ledger([SHORT], None, published=published)
    assert (zero.judgement.verdict, zero.scale, zero.is_own) == (Verdict.CONFIRMED, "laptop", False)
    assert (one.judgement.verdict, one.standing) == (Verdict.REFUTED, "judged by the rule that stood before the run")
    assert (paper.judgement.verdict, paper.published) == (Verdict.NOT_RUN, None)
    with Store(tmp_path / "own") as own:
        run_inline(own, (SHORT, SHORT.params("smoke"), "smoke"))
        (zero, *_) = ledger([SHORT], own, published=published)
    assert (zero.scale, zero.is_own) == ("smoke", True)
    assert zero.published is published["short"]


def test_a_run_judged_by_another_rule_than_it_began_with_says_so(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
        assert ledger([SHORT], store)[0].standing == "judged by the rule that stood before the run"
        bent = dataclasses.replace(SHORT.claims[0], judge=SHORT.claims[1].judge)
        changed = dataclasses.replace(SHORT, claims=(bent,))
        assert "another rule than the one that stood" in ledger([changed], store)[0].standing


def test_a_rule_that_fails_hides_no_other_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_inline(store, (MISJUDGED, MISJUDGED.params("smoke"), "smoke"))
    word, zero, badly = ledger([MISJUDGED], store)
    assert (zero.judgement.verdict, zero.failed) == (Verdict.CONFIRMED, False)
    assert {word.judgement.verdict, badly.judgement.verdict} == {Verdict.UNDECIDED}
    assert word.failed
    assert badly.failed
    assert "its claim misjudged-word failed on complete records" in word.judgement.evidence
    assert "judge must return a Judgement; got 'confirmed'" in word.judgement.evidence
    assert "\n" not in badly.judgement.evidence
    with pytest.raises(ExperimentError, match="misjudged-word"):
        publish([MISJUDGED], store, tmp_path / "results", scale="smoke")
    assert not (tmp_path / "results" / "misjudged.json").exists()


def test_of_the_shipped_results_only_those_asked_for_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("laptop"), "laptop"))
        publish([SHORT], store, tmp_path / "results")
    (tmp_path / "results" / "other.json").write_text("of no interest here")
    monkeypatch.setattr(sys.modules["separatrix.lab.ledger"], "shipped_results", lambda: tmp_path / "results")
    assert list(shipped_publications({"short": SHORT})) == ["short"]
    newer = dataclasses.replace(SHORT, version=SHORT.version + 1)
    assert not shipped_publications({"short": newer, "unpublished": SHORT})
    with pytest.raises(CorruptData, match=r"other\.json is not a published result"):
        shipped_publications({"other": SHORT})
