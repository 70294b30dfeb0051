from __future__ import annotations

import pytest

from separatrix.cli.parse import parse_seeds, parse_settings
from separatrix.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3", (0, 1, 2)),
        ("0,4,7", (0, 4, 7)),
        ("2-5", (2, 3, 4, 5)),
        ("4,", (4,)),
        ("1, 3-4,3", (1, 3, 4)),
        (None, None),
    ],
)
def test_seeds_are_a_number_a_list_or_a_range(text: str | None, seeds: tuple[int, ...] | None) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "a", "5-2", "1;2", "-3"])
def test_other_words_for_seeds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--seeds takes a number of seeds"):
        parse_seeds(text)


def test_settings_are_json_where_possible() -> None:
    assert parse_settings(["a=1", "b=x=y", "c=[1, 2]", "d=true", 'e="1"', "f="]) == {
        "a": 1,
        "b": "x=y",
        "c": [1, 2],
        "d": True,
        "e": "1",
        "f": "",
    }


@pytest.mark.parametrize("text", ["width", "=3"])
def test_a_setting_without_a_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--set takes key=value"):
        parse_settings([text])


def test_a_setting_with_an_option_of_its_own_points_there() -> None:
    with pytest.raises(InvalidInput, match="use --seeds"):
        parse_settings(["seeds=3"])
