from __future__ import annotations

import pytest

from separatrix.report.figures.house.models import MODELS, SHADES, hatch_of, line_of, model_look, model_name


def test_a_variant_has_the_marker_of_its_network_and_is_told_apart() -> None:
    plain, frozen = model_look("CoRelNet-T"), model_look("random encoder CoRelNet-T")
    assert plain.marker == frozen.marker
    assert len({plain.colour, frozen.colour, model_look("CoRelNet").colour}) == 3
    assert hatch_of("CoRelNet-T") == "" != hatch_of("random encoder CoRelNet-T")
    assert line_of("CoRelNet-T") == "-" != line_of("random encoder CoRelNet-T")


def test_a_network_under_another_condition_keeps_its_colour() -> None:
    assert model_look("MemRNN, stored").colour == model_look("MemRNN").colour
    assert line_of("MemRNN, stored") != line_of("MemRNN")


@pytest.mark.parametrize(
    ("said", "name"),
    [("RNN-orth", "orth-RNN"), ("RNN-orth, units", "orth-RNN, units"), ("lstm", "LSTM"), ("RelLSTM", "RelLSTM")],
)
def test_a_network_has_one_name(said: str, name: str) -> None:
    assert model_name(said) == name
    assert model_look(said).label == name


def test_a_name_inside_another_is_not_taken_for_it() -> None:
    assert model_look("RelLSTM").colour != model_look("LSTM").colour
    assert model_look("expRNN").colour != model_look("RNN").colour
    assert model_look("CoRelNet-T, frozen").colour == model_look("CoRelNet-T").colour


def test_every_network_has_a_colour_of_the_palette_and_strangers_are_grey() -> None:
    assert {colour for colour, _ in MODELS.values()} <= set(SHADES)
    assert model_look("SomethingElse").colour == SHADES["grey"]
