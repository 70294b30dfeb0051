from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from command_line import Answer

Cli = Callable[..., Answer]


@pytest.mark.parametrize(
    "name",
    [
        "cluster_spectrum",
        "theory.cluster_spectrum",
        "theory.attention.cluster_spectrum",
        "separatrix.theory.cluster_spectrum",
        "separatrix.theory.attention.clusters.cluster_spectrum",
    ],
)
def test_a_closed_form_is_found_by_every_name_it_has(cli: Cli, name: str) -> None:
    found = json.loads(cli("cite", name, "--json").out)
    assert found["function"] == "theory.cluster_spectrum"
    assert found["place"]


def test_a_method_is_found_with_its_class_and_an_ambiguous_name_lists_what_it_may_mean(cli: Cli) -> None:
    assert "Function: theory.BalancedFlow.product" in cli("cite", "BalancedFlow.product").out
    answer = cli("cite", "product")
    assert answer.code == 2
    assert "'product' names 2 things: theory.BalancedFlow.product, theory.TaskSequence.product." in answer.err
    assert "'TaskSequence' names 3 things: theory.TaskSequence.forgetting" in cli("cite", "TaskSequence").err


def test_a_function_that_is_no_formula_says_why(cli: Cli) -> None:
    answer = cli("cite", "theory.best_stopping_time")
    assert answer.code == 2
    assert "theory.best_stopping_time is no closed form" in answer.err
    assert "a search along the exact curve" in answer.err


def test_a_misspelt_function_gets_the_nearest(cli: Cli) -> None:
    assert "Did you mean 'count_stable'" in cli("cite", "count_stabel").err


def test_the_dictionary_of_notation_is_printed(cli: Cli) -> None:
    terms = {term["name"]: term for term in json.loads(cli("cite", "--notation", "--json").out)}
    assert terms["balance"]["symbols"] == {"anguita2024": r"\lambda"}
    assert "weight_var" in cli("cite", "--notation").out
    assert "cite needs a name" in cli("cite").err
