from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import short_experiments
from separatrix.core.errors import InvalidInput
from separatrix.lab import Cell, Claim, Summary, load
from short_experiments import SHORT, make


def test_equal_cells_have_equal_keys_after_a_round_trip() -> None:
    cell = SHORT.cells(SHORT.params("smoke"))[0]
    assert Cell.from_json(cell.to_json()).key == cell.key


def test_the_key_tells_version_arguments_and_seed_apart() -> None:
    cell = Cell("short", 1, {"width": 3}, 0, "m:short")
    others = [
        Cell("long", 1, {"width": 3}, 0, "m:short"),
        Cell("short", 2, {"width": 3}, 0, "m:short"),
        Cell("short", 1, {"width": 4}, 0, "m:short"),
        Cell("short", 1, {"width": 3}, 1, "m:short"),
    ]
    assert cell.key not in {other.key for other in others}
    assert cell.key == Cell("short", 1, {"width": 3}, 0, "elsewhere:short").key


def test_a_repeated_seed_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"yields one cell twice \(.*, seed 1\)"):
        SHORT.cells(SHORT.params("smoke", seeds=(1, 1, 2)))


def test_an_unknown_parameter_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"unknown parameter of short 'n_cels'. Did you mean 'n_cells'"):
        SHORT.params("smoke", n_cels=3)


def test_a_wrong_type_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"^n_cells of short: .* got 'many'\.$"):
        SHORT.params("smoke", n_cells="many")


def test_an_unknown_scale_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"unknown scale 'smoky'. Did you mean 'smoke'"):
        SHORT.params("smoky")


def test_all_three_scales_are_required() -> None:
    with pytest.raises(InvalidInput, match="scales of experiment 'x' must be"):
        make("x", scales={"smoke": short_experiments.Settings()})


def test_claims_of_an_experiment_have_its_document_and_place() -> None:
    rule = short_experiments.judge_near_zero
    bare = Claim(id="x", statement="s", measures="m", test="t", judge=rule, counterfeit=len)
    (taken,) = make("x", claims=(bare,)).claims
    assert (taken.document, taken.place) == ("altafini2025", "Fig. 1")


def test_an_experiment_refuses_a_claim_that_stands_twice() -> None:
    with pytest.raises(InvalidInput, match="claims of experiment 'x' repeat short-zero"):
        make("x", claims=(SHORT.claims[0], SHORT.claims[0]))


def test_the_scale_of_a_claim_is_one_of_the_three() -> None:
    with pytest.raises(InvalidInput, match=r"unknown scale of claim short-zero 'laptops'. Did you mean 'laptop'"):
        dataclasses.replace(SHORT.claims[0], scale="laptops")


def test_an_entry_leads_back_to_the_experiment() -> None:
    assert load(SHORT.entry) is SHORT


def test_an_entry_with_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(
        InvalidInput, match=r"unknown experiment of module short_experiments 'shor'. Did you mean 'short'"
    ):
        load("short_experiments:shor")


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_cell_arguments_are_plain_finite_values(value: object) -> None:
    with pytest.raises(InvalidInput, match="cell's arguments must be finite"):
        _ = Cell("short", 1, {"x": value}, 0, "m:short").key


@pytest.mark.parametrize(
    ("expanded", "words"),
    [
        ([], r"expand of experiment 'short' yields no cell"),
        ([{"a": 1}, {"a": 1}], r"yields one cell twice \(\{'a': 1\}, seed 0\)"),
        ([{"a": (1,)}, {"a": [1], "seed": 0}], "yields one cell twice"),
        ([3], "must yield dictionaries; got 3"),
        ([{"seed": "0"}], "must yield integers as seeds; got '0'"),
        (3, r"expand of experiment 'short' fails on these parameters \(TypeError"),
    ],
)
def test_cells_that_cannot_be_run_are_refused(expanded: Any, words: str) -> None:
    experiment = make("short", expand=lambda settings: expanded)
    with pytest.raises(InvalidInput, match=words):
        experiment.cells(experiment.params("smoke"))


class Counted(Summary):
    n_cells: int


def count_cells(results: object) -> Counted:
    return Counted(n_cells=0)


def no_summary(results: object) -> int:
    return 0


def test_the_class_of_the_summary_is_the_one_that_summarise_is_annotated_to_return() -> None:
    assert dataclasses.replace(SHORT, summarise=count_cells, summary=None).summary is Counted
    assert dataclasses.replace(SHORT, summarise=lambda results: Summary(), summary=None).summary is Summary
    assert (
        dataclasses.replace(SHORT, summarise=lambda results: count_cells(results), summary=Counted).summary is Counted
    )
    with pytest.raises(InvalidInput, match="'short' must return a Summary; its annotation is 'int'"):
        dataclasses.replace(SHORT, summarise=no_summary, summary=None)


def test_an_empty_list_is_refused_by_name_where_no_scale_has_one() -> None:
    with pytest.raises(InvalidInput, match="seeds of short must hold at least one value"):
        SHORT.cells(SHORT.params("smoke", seeds=()))
    with pytest.raises(InvalidInput, match="yields no cell with n_cells=0"):
        SHORT.cells(SHORT.params("smoke", n_cells=0))


@pytest.mark.parametrize("name", ["../../outside", "a/b", "", "a b", ".hidden", "x" * 101, "a\0b", "--set"])
def test_the_name_of_an_experiment_can_be_the_name_of_a_file(name: str) -> None:
    with pytest.raises(InvalidInput, match="name of an experiment must be letters"):
        make(name)
