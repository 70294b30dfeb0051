from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, strategies as st

from separatrix.core import Outcome, Result, brief, plain


@dataclasses.dataclass(frozen=True, repr=False)
class Walk(Result):
    times: torch.Tensor
    outcome: Outcome
    label: str
    hidden: Any = dataclasses.field(default=None, repr=False)


WALK = Walk(torch.tensor([0.0, 0.5, 1.0]), Outcome.OUT_OF_STEPS, "<walk>", hidden=object())


def test_dictionary_is_plain_and_json_reads_back() -> None:
    assert WALK.to_dict() == {"times": [0.0, 0.5, 1.0], "outcome": "out of steps", "label": "<walk>"}
    assert json.loads(WALK.to_json()) == WALK.to_dict()


def test_frame_has_a_row_per_entry_and_repeats_single_values() -> None:
    frame = WALK.to_frame()
    assert list(frame["times"]) == [0.0, 0.5, 1.0]
    assert list(frame["label"]) == ["<walk>"] * 3


@dataclasses.dataclass(frozen=True, repr=False)
class Solves(Result):
    outcome: torch.Tensor
    residual: torch.Tensor
    matrix: torch.Tensor


def test_codes_are_read_as_names_and_many_are_counted() -> None:
    few = Solves(torch.tensor([0, 4]), torch.tensor([0.1, 0.2]), torch.eye(3))
    assert "outcome: converged, cycle" in repr(few)
    assert few.to_dict()["outcome"] == [0, 4]
    many = Solves(torch.tensor([0] * 7 + [2]), torch.zeros(8), torch.eye(3))
    assert "outcome: 8 elements: converged 7, diverged 1" in repr(many)
    assert "99" in repr(Solves(torch.tensor([99]), torch.zeros(1), torch.eye(3)))  # no code of ours stays as it is


def test_a_frame_has_a_row_per_thing_and_names_what_belongs_to_none() -> None:
    made = Solves(torch.tensor([0, 4, 0, 1, 1]), torch.arange(5.0), torch.eye(40)).to_frame()
    assert list(made["outcome"]) == ["converged", "cycle", "converged", "out of steps", "out of steps"]
    assert list(made.columns) == ["outcome", "residual"]
    assert made.attrs["left_out"] == ["matrix"]


def test_print_fits_a_screen_and_leaves_out_hidden_fields() -> None:
    long = Walk(torch.linspace(0, 1, 10**5), Outcome.CONVERGED, "x" * 500)
    lines = repr(long).splitlines()
    assert lines[0] == "Walk"
    assert len(lines) == 4
    assert all(len(line) < 120 for line in lines)
    assert "float32 (100000,), 0 to 1" in repr(long)


def test_a_notebook_cuts_nothing_that_people_wrote() -> None:
    sentence = "a verdict of many words " * 12
    assert sentence.strip() in Walk(torch.zeros(2), Outcome.CONVERGED, sentence)._repr_html_()


def test_notebook_table_escapes_text() -> None:
    assert "&lt;walk&gt;" in WALK._repr_html_()
    assert "<walk>" not in WALK._repr_html_()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1 + 2j, [1.0, 2.0]),
        (numpy.float32(0.5), 0.5),
        (numpy.array([1, 2]), [1, 2]),
        ({1: (2, 3)}, {"1": [2, 3]}),
        (range(3), [0, 1, 2]),
        (Outcome.CYCLE, "cycle"),
        (True, True),
        (WALK, WALK.to_dict()),
    ],
    ids=repr,
)
def test_plain_values(value: Any, expected: Any) -> None:
    assert plain(value) == expected


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.integers() | st.text(), inner),
    max_leaves=10,
)


@given(JSONISH)
def test_plain_is_always_strict_json(value: Any) -> None:
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False)) == made


@given(st.text() | st.floats() | st.lists(st.floats()))
def test_brief_is_one_short_line(value: Any) -> None:
    text = brief(value)
    assert len(text) <= 90
    assert "\n" not in text


def test_brief_shows_few_numbers_in_full() -> None:
    assert brief(torch.tensor([1.0, 2.5])) == "[1.0, 2.5]"
    assert brief(torch.zeros(0, 3)) == "empty float32 (0, 3)"
    assert brief(torch.zeros(20, dtype=torch.complex64)) == "complex64 (20,)"


@dataclasses.dataclass(frozen=True, repr=False)
class Worded(Result):
    value: float

    def __repr__(self) -> str:
        return f"about {self.value:g} <units>\nand a second line"


def test_a_notebook_shows_the_words_of_a_class_that_words_its_text_itself() -> None:
    shown = Worded(2.5)._repr_html_()
    assert "about 2.5 &lt;units&gt;\nand a second line" in shown
    assert "value" in shown


def test_no_result_shows_a_notebook_less_than_its_text() -> None:
    """Two classes have HTML of their own; both hold the text (their tests say so), all others inherit it."""
    import importlib
    import pkgutil

    import separatrix

    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if info.name.partition(".")[2].split(".")[0] in (
            "advise",
            "diagnose",
            "dynamics",
            "theory",
            "matrices",
            "training",
        ):
            importlib.import_module(info.name)

    def below(kind: type) -> set[type]:
        return {kind} | {one for child in kind.__subclasses__() for one in below(child)}

    own = {kind.__name__ for kind in below(Result) if "_repr_html_" in vars(kind)}
    assert own - {"Result"} <= {"RecurrentReport", "Diagnosis"}
