"""Every claim could have come out otherwise: its rule refutes a counterfeit of its own published run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy
import pytest

from separatrix.core import CorruptData, InvalidInput
from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relational.suite import EXTREME, UNSEEN_SHAPES, Measured as Suite
from separatrix.lab import Claim, Experiment, Store, Summary, Verdict, read_publication
from short_experiments import run_inline

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
POSITIVE = (Verdict.CONFIRMED, Verdict.MISPRINT, Verdict.CONDITIONAL)


def weakness(claim: Claim, real: Summary, judged: bool, experiment: Experiment) -> str:
    """Why the rule of a claim could not have come out otherwise, or nothing.

    A claim that is judged at a larger scale than the published run may have no rows in it to be falsified: then a run
    at that scale is imagined.
    """
    if not judged and lacks_rows(claim, real):
        if not isinstance(real, Suite):
            return "the published run holds nothing that could be falsified"
        real = imagined(experiment, real)
    if claim.judge(claim.counterfeit(real)).verdict is not Verdict.REFUTED:
        return "a counterfeit is not refuted"
    if claim.judge(real).verdict in POSITIVE:
        return ""
    if claim.genuine is None:
        return "refuted or undecided: show a summary that this rule would confirm"
    good = claim.judge(claim.genuine(real)).verdict is Verdict.CONFIRMED
    return "" if good else "good news could not have been told"


def imagined(experiment: Experiment, real: Suite) -> Suite:
    """A run of everything at paper scale in which every network is right half of the time."""
    runs = [
        {
            **real.runs[0],
            "task": cell.args["task"],
            "asked": "hexominoes" if cell.args["task"].startswith("game_") else UNSEEN_SHAPES,
            "holdout": cell.args["holdout"],
            "extreme": cell.args["holdout"] == EXTREME,
            "model": cell.args["model"],
            "seed": cell.seed,
            "accuracy": 0.5,
        }
        for cell in experiment.cells(experiment.scales["paper"])
    ]
    return real.model_copy(update={"partial": False, "runs": runs})


def lacks_rows(claim: Claim, real: Summary) -> bool:
    try:
        claim.counterfeit(real)
    except InvalidInput as error:
        return "changes nothing" in str(error)
    return False


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_counterfeit_is_refuted_and_good_news_could_have_been_told(name: str) -> None:
    experiment = catalogue()[name]
    published = read_publication(RESULTS / f"{name}.json", experiment)
    real = experiment.summary.from_dict(published.summary)
    found = {claim.id: weakness(claim, real, claim.id in published.claims, experiment) for claim in experiment.claims}
    assert not {key: said for key, said in found.items() if said}


def without_rows(value: Any) -> Any:
    """What was measured, with no row in any list of rows."""
    if isinstance(value, dict):
        return {key: without_rows(own) for key, own in value.items()}
    return [own for own in value if not isinstance(own, dict | list)] if isinstance(value, list) else value


def without_numbers(value: Any) -> Any:
    """What was measured, with NaN for every number that is no count."""
    if isinstance(value, dict):
        return {key: without_numbers(own) for key, own in value.items()}
    if isinstance(value, list):
        return [without_numbers(own) for own in value]
    return math.nan if isinstance(value, float) else value


def praises(claim: Claim, summary: Summary) -> bool:
    """Whether a rule speaks well of a summary that lacks what it needs, which it may refuse in any way.

    What lacks may be nothing that this rule looks at: then the counterfeit is refuted still.
    """
    try:
        if claim.judge(summary).verdict not in POSITIVE:
            return False
    except Exception:
        return False
    try:
        return claim.judge(claim.counterfeit(summary)).verdict is not Verdict.REFUTED
    except Exception:
        return True


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", PUBLISHED)
def test_what_was_not_measured_confirms_nothing(name: str) -> None:
    """A rule that counts exceptions finds none among no rows, nor where every comparison is with NaN."""
    experiment = catalogue()[name]
    published = read_publication(RESULTS / f"{name}.json", experiment)
    flattering = []
    for lack, change in (("empty", without_rows), ("NaN", without_numbers)):
        try:
            summary = experiment.summary.from_dict(change(published.summary))
        except CorruptData:  # refused at the door
            continue
        flattering += [(claim.id, lack) for claim in experiment.claims if praises(claim, summary)]
    assert flattering == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, experiment in catalogue().items() if experiment.claims])
def test_a_rehearsal_confirms_only_what_it_could_have_refuted(name: str, tmp_path: Path) -> None:
    """At the smallest scale a rule may have too little to go by; then it must not say confirmed."""
    experiment = catalogue()[name]
    with Store(tmp_path / "store") as store:
        (report,) = run_inline(store, (experiment, experiment.params("smoke"), "smoke"))
    summary, flattering = report.summary, []
    assert summary is not None
    for claim in experiment.claims:
        if claim.scale != "smoke" or claim.judge(summary).verdict not in POSITIVE:
            continue
        if lacks_rows(claim, summary) or claim.judge(claim.counterfeit(summary)).verdict is not Verdict.REFUTED:
            flattering.append(claim.id)
    assert flattering == []


def test_a_power_law_is_not_told_from_one_distance() -> None:
    experiment = catalogue()["agarwala-fig1"]
    rows = [
        {"family": "gaussian", "seed": 0, "delta": delta, "measured": delta**-4.0, "theory": delta**-4.0}
        for delta in (0.999, 0.6, 0.3, 0.2)
    ]
    claim = next(claim for claim in experiment.claims if claim.id == "agarwala2022-fig1-gaussian")
    made = experiment.summary(tables={"length variance": rows}, width=5000)
    judged = claim.judge(made)
    assert judged.verdict is Verdict.CONFIRMED
    assert "down to delta = 0.2 " in judged.evidence  # what was measured, not the threshold
    for width, left in ((100, 1), (600, 2)):
        told = claim.judge(experiment.summary(tables={"length variance": rows}, width=width))
        assert told.verdict is Verdict.NOT_RUN, left


def untied_traces(exponents: dict[str, float], noise: float) -> Summary:
    """What agarwala-exponents makes of records whose untied traces follow power laws, give or take the noise."""
    experiment = catalogue()["agarwala-exponents"]
    random, results = numpy.random.default_rng(7), []
    for cell in experiment.cells(experiment.scales["laptop"]):
        delta = numpy.asarray(cell.args["deltas"])
        law = 1.3 * delta ** -exponents[cell.args["family"]] * (1 + 0.4 * delta) * (1 + 2 / cell.args["width"])
        results.append(
            (cell, {"traces": law * numpy.exp(noise * random.normal(size=(cell.args["n_matrices"], len(delta))))})
        )
    return experiment.summarise(results)


@pytest.mark.parametrize(
    ("exponents", "verdict"),
    [
        ({"gaussian": 2.0, "haar": 2.0, "goe": 2.0}, Verdict.CONFIRMED),
        ({"gaussian": 3.0, "haar": 2.0, "goe": 3.0}, Verdict.REFUTED),
        ({"gaussian": 2.0, "haar": 2.0, "goe": 3.0}, Verdict.REFUTED),
        ({"gaussian": 4.0, "haar": 4.0, "goe": 4.0}, Verdict.REFUTED),
    ],
)
def test_records_decide_with_which_exponent_untied_networks_diverge(
    exponents: dict[str, float], verdict: Verdict
) -> None:
    """From the records on, through extrapolation and fit, not from a column of exponents."""
    claims = {claim.id: claim for claim in catalogue()["agarwala-exponents"].claims}
    assert claims["agarwala2022-exponents-untied"].judge(untied_traces(exponents, 0.05)).verdict is verdict


def test_noise_leaves_the_exponent_of_untied_networks_open() -> None:
    claims = {claim.id: claim for claim in catalogue()["agarwala-exponents"].claims}
    noisy = untied_traces(dict.fromkeys(("gaussian", "haar", "goe"), 2.0), 3.0)
    assert claims["agarwala2022-exponents-untied"].judge(noisy).verdict is Verdict.UNDECIDED


def test_advice_is_judged_by_its_intervals_and_not_by_a_word() -> None:
    experiment = catalogue()["check-advice"]
    real = experiment.summary.from_dict(read_publication(RESULTS / "check-advice.json", experiment).summary)
    claims, table = {claim.id: claim for claim in experiment.claims}, next(iter(real.tables))
    as_published = {True: Verdict.UNDECIDED, False: Verdict.REFUTED}
    for promised, key in ((True, "separatrix-advice-helps"), (False, "separatrix-advice-modest")):
        sides = {Verdict.CONFIRMED: (0.01, 0.02), Verdict.REFUTED: (-0.02, -0.01), Verdict.UNDECIDED: (-0.01, 0.02)}
        if not promised:
            sides = {verdict: (-high, -low) for verdict, (low, high) in sides.items()}
        low, high = sides[Verdict.CONFIRMED]
        good = [{**row, "low": low, "high": high} for row in real.table(table)]
        for verdict, (low, high) in sides.items():  # one change among all decides, on either side and across
            for index, row in enumerate(good):
                if row["promised"] is promised:
                    rows = [*good[:index], {**row, "low": low, "high": high}, *good[index + 1 :]]
                    judged = claims[key].judge(real.model_copy(update={"tables": {table: rows}}))
                    assert judged.verdict is verdict
        words = [{**row, "result": "helps" if promised else "harms"} for row in real.table(table)]
        judged = claims[key].judge(real.model_copy(update={"tables": {table: words}}))
        assert judged.verdict is as_published[promised]  # whatever the word says


def test_every_experiment_with_claims_is_published() -> None:
    missing = [
        name
        for name, experiment in catalogue().items()
        if experiment.claims and not (RESULTS / f"{name}.json").exists()
    ]
    assert missing == []
