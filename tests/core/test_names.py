from __future__ import annotations

import dataclasses

import pytest

from separatrix.core import InvalidInput, UnknownOption, choose, resolve, suggest_options


@dataclasses.dataclass(frozen=True)
class Family:
    tau: float = 0.0


def family(text: str) -> Family:
    try:
        tau = float(text)
    except ValueError:
        raise InvalidInput(f"tau must be a number; got {text!r}.") from None
    if abs(tau) > 1:
        raise InvalidInput(f"tau must lie between -1 and 1; got {tau}.")
    return Family(tau)


KNOWN = {"round": Family()}


def test_an_object_is_taken_as_it_is_and_a_name_is_looked_up() -> None:
    own = Family(0.3)
    assert resolve("family", own, KNOWN, base=Family) is own
    assert resolve("family", "round", KNOWN, base=Family) is KNOWN["round"]
    assert resolve("family", "tilted:0.5", KNOWN, families={"tilted": family}) == Family(0.5)


@pytest.mark.parametrize("given", [3, None, 1.5, ["round"], b"round"])
def test_what_is_neither_object_nor_name_is_refused_in_a_sentence(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"family must be a name or a Family object; got .* of type"):
        resolve("family", given, KNOWN, base=Family)


def test_a_known_family_with_a_bad_parameter_is_not_called_unknown() -> None:
    with pytest.raises(InvalidInput, match=r"tau must lie between -1 and 1; got 1000"):
        resolve("family", "tilted:1e3", KNOWN, families={"tilted": family})


def test_only_near_names_are_suggested() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'ambient'"):
        choose("space", "ambiant", ("tangent", "ambient"))
    with pytest.raises(InvalidInput) as refused:
        choose("space", "xyz", ("tangent", "ambient"))
    assert "Did you mean" not in str(refused.value)


def test_a_misspelt_keyword_of_a_constructor_names_the_nearest() -> None:
    @suggest_options
    @dataclasses.dataclass(frozen=True)
    class Solver:
        max_steps: int = 10

    assert Solver(3).max_steps == Solver(max_steps=3).max_steps
    with pytest.raises(UnknownOption, match=r"unknown option of Solver 'max_step'. Did you mean 'max_steps'"):
        Solver(max_step=3)
    with pytest.raises(TypeError):
        Solver(max_step=3)


def test_a_long_name_is_cut_and_still_gets_the_near_ones() -> None:
    with pytest.raises(InvalidInput, match=r"unknown thing 'x{50}'\.\.\. \(5000 characters\)\. Known: a\.") as caught:
        resolve("thing", "x" * 5000, {"a": 1})
    assert len(str(caught.value)) < 120
