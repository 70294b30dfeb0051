from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from separatrix.lab import (
    ExperimentError,
    Store,
    StoreWarning,
    Summary,
    Verdict,
    best_run,
    report_from_store,
    stored_runs,
    unfinished_runs,
)
from short_experiments import BUGGY, NAN, SHORT, WORDS, InlineEngine, make, run_inline

SMOKE = SHORT.params("smoke")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_run_reports_summary_verdicts_and_provenance(store: Store) -> None:
    (report,) = run_inline(store, (SHORT, SMOKE, "smoke"))
    assert report.complete
    assert report.summary is not None
    assert report.summary.to_dict()["n"] == 4
    assert {name: judged.verdict for name, judged in report.judgements.items()} == {
        "short-zero": Verdict.CONFIRMED,
        "short-one": Verdict.REFUTED,
    }
    assert report.seconds == pytest.approx(2.0)  # the engine of this test says half a second per cell
    assert report.provenance["seeds"] == [0]
    assert report.command == f"separatrix run {SHORT.entry} --scale smoke"


def test_a_summary_of_another_class_is_a_bug_of_the_experiment(store: Store) -> None:
    other = make("short", summarise=lambda results: Summary())  # its cells are those of SHORT, which workers know
    (report,) = run_inline(store, (other, SMOKE, "smoke"))
    assert "summarise must return Measured; got Summary" in report.failures["summarise"]
    assert report.summary is None


def test_a_report_is_plain_json(store: Store) -> None:
    (report,) = run_inline(store, (SHORT, SMOKE, "smoke"))
    read = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert read["n_done"] == read["n_cells"] == 4
    assert read["judgements"]["short-one"]["verdict"] == "refuted"


def test_a_finished_cell_is_never_computed_twice(store: Store) -> None:
    engine = InlineEngine()
    first = run_inline(store, (SHORT, SMOKE, "smoke"), engine=engine)
    second = run_inline(store, (SHORT, SMOKE, "smoke"), (SHORT, SHORT.params("laptop"), "laptop"), engine=engine)
    assert len(engine.computed) == len(set(engine.computed)) == 6  # the four smoke cells are among the six
    assert second[0].to_dict() == first[0].to_dict()


def test_the_report_from_the_store_is_the_report_of_the_run(store: Store) -> None:
    (report,) = run_inline(store, (SHORT, SMOKE, "smoke"))
    assert report_from_store(SHORT, SMOKE, "smoke", store).to_dict() == report.to_dict()


def test_a_failed_cell_leaves_the_others_and_no_verdict(store: Store) -> None:
    (report,) = run_inline(store, (SHORT, SHORT.params("smoke", fail_at=2), "smoke"))
    assert (report.n_done, report.summary, dict(report.judgements)) == (3, None, {})
    assert list(report.failures.values()) == ["ValueError: the cell was told to fail"]


def test_an_edited_record_is_computed_again_with_the_same_result(store: Store) -> None:
    (before,) = run_inline(store, (SHORT, SMOKE, "smoke"))
    path = store.path(before.cells[1].key)
    path.write_text(path.read_text().replace('"number": 1', '"number": 5'))
    engine = InlineEngine()
    with pytest.warns(StoreWarning, match=path.name):
        (after,) = run_inline(store, (SHORT, SMOKE, "smoke"), engine=engine)
    assert engine.computed == [before.cells[1].key]
    assert after.summary == before.summary


def test_a_bug_in_a_summary_names_the_experiment_and_spares_the_others(store: Store) -> None:
    reports = run_inline(store, (BUGGY, BUGGY.params("smoke"), "smoke"), (SHORT, SMOKE, "smoke"))
    assert (
        "experiment buggy: its summary failed on complete records (KeyError: 'nothing')"
        in (reports[0].failures["summarise"])
    )
    assert reports[1].summary is not None
    with pytest.raises(ExperimentError, match="experiment buggy: its summary failed"):
        report_from_store(BUGGY, BUGGY.params("smoke"), "smoke", store)


def test_a_measurement_that_is_not_a_number_refutes_nothing(store: Store) -> None:
    (report,) = run_inline(store, (NAN, NAN.params("smoke"), "smoke"))
    assert {judged.verdict for judged in report.judgements.values()} == {Verdict.UNDECIDED}
    assert "this is not a number: mean" in report.judgements["short-one"].evidence


def test_a_value_of_the_wrong_type_in_a_summary_is_one_sentence(store: Store) -> None:
    (report,) = run_inline(store, (WORDS, WORDS.params("smoke"), "smoke"))
    assert "mean of Measured: input should be a valid number" in report.failures["summarise"]
    assert "pydantic" not in report.failures["summarise"]


def test_the_command_repeats_exactly_this_run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the experiment writes its marks there
    params = SHORT.params("laptop", seeds=(4,), n_cells=2, marks="a b")
    (report,) = run_inline(store, (SHORT, params, "laptop"))
    assert report.command == (
        f"""separatrix run {SHORT.entry} --scale laptop --seeds 4, --set n_cells=2 --set 'marks="a b"'"""
    )


def test_unfinished_runs_are_remembered_with_their_parameters(store: Store) -> None:
    params = SHORT.params("laptop", seeds=(3, 5), fail_at=0)
    run_inline(store, (SHORT, SMOKE, "smoke"), (SHORT, params, "laptop"))
    assert unfinished_runs([SHORT], store) == [(SHORT, params, "laptop")]


def test_runs_of_another_version_do_not_count(store: Store) -> None:
    run_inline(store, (SHORT, SMOKE, "smoke"))
    newer = dataclasses.replace(SHORT, version=2)
    assert stored_runs(store, newer) == []
    assert best_run(newer, store) is None


def test_the_best_run_is_the_largest_complete_scale(store: Store) -> None:
    run_inline(store, (SHORT, SHORT.params("laptop"), "laptop"))
    run_inline(store, (SHORT, SMOKE, "smoke"))
    run_inline(store, (SHORT, SHORT.params("paper", fail_at=1), "paper"))
    best = best_run(SHORT, store)
    assert best is not None
    assert best.scale == "laptop"


def test_a_run_made_small_does_not_stand_for_its_scale(store: Store) -> None:
    run_inline(store, (SHORT, SHORT.params("paper", n_cells=1), "paper"))
    assert best_run(SHORT, store) is None


def test_more_seeds_are_better_evidence_than_a_later_run(store: Store) -> None:
    run_inline(store, (SHORT, SHORT.params("smoke", seeds=(0, 1)), "smoke"))
    run_inline(store, (SHORT, SMOKE, "smoke"))
    best = best_run(SHORT, store)
    assert best is not None
    assert best.params["seeds"] == [0, 1]
