from __future__ import annotations

import math
from collections.abc import Callable

import numpy
import pytest
import torch

from separatrix.core import (
    InvalidInput,
    ShapeError,
    as_tensor,
    relative_asymmetry,
    require_finite,
    require_last_dim,
    require_matrix,
    require_square,
)


def test_floating_dtype_is_kept_and_integers_become_double() -> None:
    assert as_tensor(torch.ones(2, dtype=torch.float32), "x").dtype == torch.float32
    assert as_tensor([1, 2], "x").dtype == torch.float64
    assert as_tensor(numpy.ones(2), "x").dtype == torch.float64
    assert as_tensor([1, 2], "x", dtype=torch.float32).dtype == torch.float32


def test_tensor_is_passed_on_without_a_copy() -> None:
    tensor = torch.ones(2)
    assert as_tensor(tensor, "x") is tensor


@pytest.mark.parametrize("value", ["abc", object(), [[1], [1, 2]]], ids=["text", "object", "ragged"])
def test_what_is_no_array_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidInput, match="weights must be an array of numbers"):
        as_tensor(value, "weights")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_first_bad_entry_is_named(bad: float) -> None:
    tensor = torch.zeros(2, 3)
    tensor[1, 2] = bad
    with pytest.raises(InvalidInput, match=rf"weights must be finite; entry \(1, 2\) is {bad}"):
        require_finite(tensor, "weights")


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 0), (4, 2, 3)])
def test_square_refuses_every_other_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=rf"w must be a square matrix \(\.\.\., n, n\); got shape \({shape[0]},"):
        require_square(torch.zeros(shape), "w")


def passes(check: Callable[..., None], *given: object) -> bool:
    try:
        check(*given)
    except ShapeError:
        return False
    return True


def test_batches_of_matrices_pass() -> None:
    assert passes(require_square, torch.zeros(5, 2, 2), "w")
    assert passes(require_matrix, torch.zeros(5, 2, 3), "w")
    assert passes(require_last_dim, torch.zeros(5, 3), "x", 3)
    assert not passes(require_square, torch.zeros(5, 2, 3), "w")


def test_matrix_and_last_axis_are_checked() -> None:
    with pytest.raises(ShapeError, match="must be a matrix"):
        require_matrix(torch.zeros(3), "w")
    with pytest.raises(ShapeError, match=r"x must have 3 entries on its last axis; got shape \(2,\)"):
        require_last_dim(torch.zeros(2), "x", 3)


def test_complex_numbers_are_refused_where_real_ones_are_meant() -> None:
    complex_one = torch.ones(2, dtype=torch.complex64)
    for options in ({}, {"dtype": torch.float64}):
        with pytest.raises(InvalidInput, match=r"w must be real; got complex numbers \(torch.complex64\)"):
            as_tensor(complex_one, "w", **options)
    assert as_tensor(complex_one, "w", allow_complex=True) is complex_one
    assert as_tensor([1.0], "w", dtype=torch.complex128).is_complex()


def test_asymmetry_is_relative_and_per_element_of_the_batch() -> None:
    tilted = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    batch = torch.stack([tilted, 1000 * tilted, torch.eye(2), torch.zeros(2, 2)])
    assert relative_asymmetry(batch).tolist() == [0.5, 0.5, 0.0, 0.0]


def test_arrays_that_torch_does_not_take_are_copied_and_others_left_alone() -> None:
    array = numpy.arange(6.0).reshape(2, 3)
    frozen = array.copy()
    frozen.setflags(write=False)
    for unusual in (array[::-1], array[:, ::-1], array.astype(">f8"), frozen, numpy.broadcast_to(array, (2, 2, 3))):
        assert numpy.array_equal(as_tensor(unusual, "x").numpy(), unusual)
    assert numpy.shares_memory(as_tensor(array, "x").numpy(), array)
    negative = torch._neg_view(torch.from_numpy(array))
    assert numpy.array_equal(as_tensor(negative, "x").numpy(), -array)
