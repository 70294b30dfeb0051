from __future__ import annotations

import pytest

from separatrix import core

BUILT_INS = {
    core.InvalidInput: ValueError,
    core.ShapeError: ValueError,
    core.OutsideTheory: ValueError,
    core.NotConverged: RuntimeError,
    core.MissingData: FileNotFoundError,
    core.DatasetUnavailable: FileNotFoundError,
    core.CorruptData: ValueError,
    core.MissingExtra: ImportError,
    core.StoreError: OSError,
}


@pytest.mark.parametrize("error", BUILT_INS)
def test_errors_are_caught_by_our_base_and_by_the_usual_built_in(error: type[Exception]) -> None:
    assert issubclass(error, core.SeparatrixError)
    assert issubclass(error, BUILT_INS[error])


def test_not_converged_carries_the_solution() -> None:
    assert core.NotConverged("no", solution=[1]).solution == [1]


def test_unknown_name_offers_the_nearest_and_lists_a_short_choice() -> None:
    message = str(core.unknown_name("ensemble", "gausian", ["orthogonal", "gaussian", "goe"]))
    assert message.startswith("unknown ensemble 'gausian'. Did you mean 'gaussian'")
    assert message.endswith("Known: gaussian, goe, orthogonal.")


def test_unknown_name_without_a_near_one_or_with_a_long_list_stays_short() -> None:
    assert str(core.unknown_name("thing", "zzz", [])) == "unknown thing 'zzz'."
    many = [f"name{i}" for i in range(50)]
    assert "Known:" not in str(core.unknown_name("thing", "name7", many))


def test_at_most_three_names_are_offered() -> None:
    message = str(core.unknown_name("figure", "fig", ["fig1", "fig2", "fig3", "fig4"]))
    assert message.count(" or ") == 1
    assert len(core.nearest_names("fig", ["fig1", "fig2", "fig3", "fig4"])) == 3


def test_capitals_do_not_hide_a_name() -> None:
    assert str(core.unknown_name("ensemble", "GOE", ["goe", "haar"])).startswith(
        "unknown ensemble 'GOE'. Did you mean 'goe'?"
    )
    assert core.nearest_names("Goe", ["GOE", "haar"]) == ["GOE"]
