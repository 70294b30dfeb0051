from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.doors.blame import ClassByName, blamed, fits, in_kind_words


@pytest.mark.parametrize(
    ("value", "kind", "answer"),
    [
        (3, float, True),
        (float("nan"), float, True),
        (torch.tensor(2.0), float, True),
        (True, float, False),
        (True, bool, True),
        (2.5, int, False),
        (None, float | None, True),
        ("tanh", Literal["tanh", "relu"], True),
        ("tnah", Literal["tanh", "relu"], False),
        (len, Callable[[Any], int], True),
        ("abc", Sequence[float], False),
        ([1.0, 2], Sequence[float], True),
        (torch.ones(2, 3), Float[Tensor, "n d"], True),
        (torch.ones(3), Float[Tensor, "n d"], False),
        (torch.ones(2, 3, dtype=torch.int64), Float[Tensor, "n d"], False),
        (object(), Any, True),
    ],
)
def test_values_fit_the_kinds_they_are_of(value: object, kind: Any, answer: bool) -> None:
    assert fits(value, kind) is answer


def test_kinds_are_told_in_words() -> None:
    assert in_kind_words(Float[Tensor, "*batch n d"]) == "a tensor of floating numbers of shape (*batch, n, d)"
    assert in_kind_words(Literal["a", "b"]) == "'a' or 'b'"
    assert in_kind_words(torch.Generator) == "a Generator"


def solve(matrix: Float[Tensor, "n n"], rhs: Float[Tensor, " n"], scale: float = 1.0) -> Tensor:
    return torch.linalg.solve(matrix, rhs) * scale


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("x", torch.ones(2)), "matrix must be a tensor of floating numbers of shape (n, n); got 'x'."),
        ((torch.eye(2), torch.ones(3)), "matrix and rhs must agree on their axis n"),
        ((torch.eye(2), torch.ones(2), "x"), "scale must be a number; got 'x'."),
        ((torch.eye(2) * torch.nan, torch.ones(2)), "matrix must be finite"),
    ],
)
def test_the_argument_that_is_to_blame_is_named(given: tuple[Any, ...], sentence: str) -> None:
    assert sentence in str(blamed(solve, given, {}, RuntimeError("from the depths")))


def test_nobody_is_blamed_where_every_argument_is_right() -> None:
    assert blamed(solve, (torch.zeros(2, 2), torch.ones(2)), {}, RuntimeError("singular")) is None


def test_a_class_that_is_known_by_name_alone_refuses_plain_numbers() -> None:
    kind = ClassByName("Generator")
    assert fits(torch.Generator(), kind)
    assert not fits(3, kind)
    assert in_kind_words(kind) == "a Generator"


def test_bytes_are_no_sequence_of_words() -> None:
    assert not fits(b"ab", Sequence[str])
    assert fits(b"ab", Sequence[int])


def test_an_empty_collection_is_named() -> None:
    def first(rows: list[int]) -> int:
        return max(rows)

    error = blamed(first, ([],), {}, ValueError("max() arg is an empty sequence"))
    assert str(error) == "rows must not be empty; got []."
