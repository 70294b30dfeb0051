from __future__ import annotations

import pytest

from separatrix.core import InvalidInput
from separatrix.matrices.ensembles import ENSEMBLES, Elliptic
from separatrix.report.figures.house.families import look
from separatrix.report.figures.house.style import COLOURS
from stranger_families import Circulant, ThreePoint


def test_every_registered_family_is_told_apart() -> None:
    looks = [look(family) for family in (*ENSEMBLES.values(), Elliptic(0.5))]
    assert len({(item.colour, item.marker) for item in looks}) == len(looks)
    assert len({item.colour for item in looks}) == len(looks)
    assert look("elliptic:0.5") == look(Elliptic(0.5))
    assert look("haar").label == "orthogonal"


def test_a_stranger_is_drawn_as_it_says_or_in_grey() -> None:
    assert look(ThreePoint()) == (COLOURS["yellow"], "*", "three points")
    assert look(Circulant()) == (COLOURS["grey"], "x", "circulant")
    assert look("nobody's family") == (COLOURS["grey"], "x", "nobody's family")


def test_a_colour_nobody_knows_is_refused() -> None:
    wrong = type("Wrong", (ThreePoint,), {"colour": "blu"})()
    with pytest.raises(InvalidInput, match=r"unknown colour 'blu'\. Did you mean 'blue'"):
        look(wrong)
