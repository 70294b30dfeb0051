"""Good and bad news by one rule: what is too uncertain to tell decides nothing, in either direction."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from separatrix.experiments import catalogue
from separatrix.lab import Summary, Verdict, read_publication, with_column, with_entry, with_fields

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
FAR = 1e9
LOW, HIGH = re.compile(r"(^|[_ ])(low|lower)$"), re.compile(r"(^|[_ ])(high|upper)$")
ERROR = re.compile(r"(^|[_ ])(se|sd|half_width|standard error|growth error)$")


def published(name: str) -> Summary:
    experiment = catalogue()[name]
    return experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)


def blurred(value: Any, name: str = "") -> Any:
    """What was measured, with every interval and every standard error as wide as can be."""
    if isinstance(value, dict):
        return {key: blurred(own, str(key)) for key, own in value.items()}
    if isinstance(value, list | tuple):
        numbers = [own for own in value if isinstance(own, float)]
        is_interval = "interval" in name and len(value) == len(numbers) == 2
        return [-FAR, FAR] if is_interval else [blurred(own, name) for own in value]
    if not isinstance(value, float):
        return value
    ends = {-FAR: LOW, FAR: HIGH}
    found = [end for end, pattern in ends.items() if pattern.search(name)]
    return found[0] if found else FAR if ERROR.search(name) else value


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_known_to_nobody_is_neither_confirmed_nor_refuted(name: str) -> None:
    """A rule that says something else of intervals which hold everything says that it cannot tell."""
    real = published(name)
    values = {key: getattr(real, key) for key in type(real).model_fields}
    summary = type(real)(**blurred(values))
    wrong = {}
    for claim in catalogue()[name].claims:
        before, after = claim.judge(real), claim.judge(summary)
        if after.rows != before.rows and after.verdict not in (Verdict.UNDECIDED, Verdict.NOT_RUN):
            wrong[claim.id] = after.verdict.value
    assert wrong == {}


def claim(name: str, key: str) -> Any:
    return next(claim for claim in catalogue()[name].claims if claim.id == key)


@pytest.mark.parametrize(
    ("away", "verdict"),
    [(10.0, Verdict.CONFIRMED), (1.0, Verdict.UNDECIDED), (-1.0, Verdict.UNDECIDED), (-10.0, Verdict.REFUTED)],
)
def test_a_variance_above_the_prediction_is_told_by_its_error(away: float, verdict: Verdict) -> None:
    moved = with_column("scales", "h_var", lambda row: row["document_h_var"] + away * row["h_var_se"])
    assert claim("agarwala-fig2", "agarwala2022-fig2-goe").judge(moved(published("agarwala-fig2"))).verdict is verdict


@pytest.mark.parametrize(
    ("wide", "verdict"),
    [(340, Verdict.CONFIRMED), (600, Verdict.UNDECIDED), (630, Verdict.UNDECIDED), (1000, Verdict.REFUTED)],
)
def test_wide_matrices_diverge_less_if_the_interval_of_the_difference_says_so(wide: int, verdict: Verdict) -> None:
    changed = with_entry("parts", "divergence", **{"wide that diverge": wide})(published("agarwala-appendix"))
    assert claim("agarwala-appendix", "agarwala2022-divergence").judge(changed).verdict is verdict


@pytest.mark.parametrize(("sd", "verdict"), [(1e-4, Verdict.CONFIRMED), (0.02, Verdict.UNDECIDED)])
def test_noise_makes_no_accuracies_equal(sd: float, verdict: Verdict) -> None:
    changed = with_column("regime at equal loss", "accuracy sd", sd)(published("linear-digits-regime"))
    assert claim("linear-digits-regime", "separatrix-digits-accuracy").judge(changed).verdict is verdict


@pytest.mark.parametrize(
    ("growth", "verdict"), [(9.0, Verdict.CONFIRMED), (0.1, Verdict.UNDECIDED), (-9.0, Verdict.REFUTED)]
)
def test_growth_of_the_distance_from_balance_is_told_by_its_error(growth: float, verdict: Verdict) -> None:
    changed = with_column("balance under training", "growth", growth)(published("anguita-fig4-8"))
    assert claim("anguita-fig4-8", "anguita2024-fig4.8-distance").judge(changed).verdict is verdict


def test_a_layer_that_loses_the_stability_of_its_flow_refutes_the_analysis_in_discrete_time() -> None:
    changed = with_entry("parts", "discrete", same_stability=70)(published("altafini-extensions"))
    assert claim("altafini-extensions", "altafini2025-extension-discrete").judge(changed).verdict is Verdict.REFUTED


def test_a_solution_with_other_units_is_not_the_one_that_is_stated() -> None:
    changed = with_column("Networks with weights made by hand", "n_units", 267)(published("kergD-solutions"))
    assert claim("kergD-solutions", "separatrix-D2-ring").judge(changed).verdict is Verdict.REFUTED


@pytest.mark.parametrize("left", [("alpha", 1.0), ("beta", 0.0)])
def test_growth_is_told_only_of_what_was_varied(left: tuple[str, float]) -> None:
    real = published("kerg3-fig1")
    lacking = real.model_copy(update={"transients": [row for row in real.transients if row[left[0]] == left[1]]})
    assert claim("kerg3-fig1", "kerg2022-ch3-fig1-growth").judge(lacking).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("altafini-propositions", "altafini2025-lemma5"),
        ("altafini-theorem1", "altafini2025-theorem1"),
        ("altafini-theorem2", "altafini2025-theorem2-consensus"),
        ("attention-cluster-stability", "separatrix-cluster-necessary"),
        ("kerg3-fig1", "kerg2022-ch3-fig1-end"),
        ("kerg3-fig1", "kerg2022-ch3-fig1-normalisation"),
        ("kerg3-prop3-4-1", "kerg2022-ch3-prop3-4-1"),
        ("kerg3-prop3-4-2", "kerg2022-ch3-prop3-4-2"),
        ("kerg5-text", "separatrix-relational-pairs"),
        ("anguita-fig4-5", "anguita2024-fig4.5"),
        ("linear-digits-regime", "separatrix-digits-equal-loss"),
    ],
)
def test_the_evidence_is_what_was_measured_and_not_what_was_hoped(name: str, key: str) -> None:
    """Where the statement is false, the sentence that bears the verdict is another."""
    own, real = claim(name, key), published(name)
    assert own.judge(own.counterfeit(real)).evidence != own.judge(real).evidence


def test_the_heavy_representation_is_asked_of_the_starts_that_are_named() -> None:
    """Labels that belong to other starts, which have no heavy representation, refute it."""
    names = {"balance 10": "Gaussian 0.42", "Gaussian 0.42": "balance 10"}
    swapped = with_column("semantic task", "start", lambda row: names.get(row["start"], row["start"]))
    changed = swapped(published("anguita-fig4-2"))
    assert claim("anguita-fig4-2", "anguita2024-fig4.2-heavy").judge(changed).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("name", "key", "change", "verdict"),
    [
        (  # one run of fifteen diverged
            "kergA-fig3",
            "kerg2022-A-fig3-training",
            with_column("Bits per character and gradients by variant, 95 % intervals over seeds", "diverged", 1),
            Verdict.REFUTED,
        ),
        (  # it falls in the middle and rises by more at the end
            "anguita-fig3-5",
            "anguita2024-fig3.5",
            with_column("deviation", "deviation", 1e-9, lambda row: 1 < row["balance"] < 2),
            Verdict.REFUTED,
        ),
        (  # the same at every learning rate
            "anguita-fig3-4",
            "anguita2024-fig3.4-growth",
            with_column("deviation", "deviation", 0.01),
            Verdict.REFUTED,
        ),
        (  # and of every size
            "anguita-fig3-4",
            "anguita2024-fig3.4-size",
            with_column("deviation", "deviation", 0.01),
            Verdict.REFUTED,
        ),
        (  # far from the theory everywhere
            "agarwala-fig1",
            "agarwala2022-fig1-deviation",
            with_column("length variance", "measured", 1e6),
            Verdict.REFUTED,
        ),
        (  # a line as steep as that, and lives that do not lie on it
            "attention-metastability",
            "separatrix-plateau-life",
            with_column("Life against the logarithm of the distance, in e-foldings", "off", 0.1),
            Verdict.REFUTED,
        ),
        (  # stable by its spectrum, and the flow goes elsewhere
            "altafini-extensions",
            "altafini2025-extension-asymmetric",
            with_entry("parts", "not symmetric", returned=27),
            Verdict.REFUTED,
        ),
        (  # states from which the flow moves
            "altafini-extensions",
            "altafini2025-extension-asymmetric",
            with_entry("parts", "not symmetric", speed=0.1),
            Verdict.REFUTED,
        ),
        (  # as Gaussian with two units as with many
            "agarwala-appendix",
            "agarwala2022-thmA.2",
            with_entry("parts", "coordinates", **{"distance, two units": 0.025}),
            Verdict.REFUTED,
        ),
        (  # the other product is as good as the figure's: then the deviation depends on nothing
            "anguita-fig3-6",
            "anguita2024-fig3.6",
            with_column("deviation", "deviation", 0.01),
            Verdict.UNDECIDED,
        ),
        (  # silence is no start like those of tasks
            "kerg4-theorems",
            "screening-start",
            with_fields(numbers=lambda numbers: {**numbers, "few_first_silence": 0.5}),
            Verdict.REFUTED,
        ),
    ],
)
def test_a_statement_is_false_in_every_way_in_which_it_can_be(
    name: str, key: str, change: Any, verdict: Verdict
) -> None:
    """Not in that of its own counterfeit alone."""
    assert claim(name, key).judge(change(published(name))).verdict is verdict


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PUBLISHED)
def test_no_two_claims_are_decided_by_the_same_rows(name: str) -> None:
    """Of those that are judged at the scale of the run: one of them would be confirmed by the rule of another."""
    real = published(name)
    judged = read_publication(RESULTS / f"{name}.json", catalogue()[name]).claims
    found: dict[str, list[str]] = {}
    for own in catalogue()[name].claims:
        rows = own.judge(real).rows if own.id in judged else ()
        if any(row.agrees is not None for row in rows):
            found.setdefault(repr([dataclasses.replace(row, concerns="") for row in rows]), []).append(own.id)
    assert [ids for ids in found.values() if len(ids) > 1] == []
