from __future__ import annotations

from separatrix.matrices.ensembles import find_ensemble
from separatrix.report.figures.families import FAMILIES, family_look


def test_every_family_looks_different() -> None:
    assert len({look.colour for look in FAMILIES.values()}) == len({look.mark for look in FAMILIES.values()})
    assert len({(look.colour, look.mark) for look in FAMILIES.values()}) == len(FAMILIES)


def test_looks_belong_to_known_families_and_a_parameter_does_not_matter() -> None:
    for name in FAMILIES:
        assert find_ensemble(f"{name}:0.5" if name == "elliptic" else name).name.split(":")[0] == name
    assert family_look("elliptic:0.5") is family_look("elliptic:-0.3")


def test_a_family_without_a_look_is_drawn_in_grey_under_its_own_name() -> None:
    assert family_look("unheard-of").label == "unheard-of"
