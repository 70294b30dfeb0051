from __future__ import annotations

import math
import subprocess
import sys

import numpy
import pytest
import torch

from command_line import environment
from separatrix.core import (
    InvalidInput,
    in_words,
    require_flags,
    require_integer,
    require_kind,
    require_number,
    require_positive,
)


def test_neither_torch_nor_numpy_is_imported_for_them() -> None:
    code = "import sys, separatrix.core.scalars; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("value", [None, True, "1", [1.0], 2j, math.nan, math.inf, 10**400, torch.ones(2), -0.5, 1.5])
def test_number_means_a_finite_real_number_within_its_limits(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"share must be a number from 0 to 1; got "):
        require_number(value, "share", at_least=0, at_most=1)


@pytest.mark.parametrize("value", [1, 1.0, numpy.float32(1), torch.tensor(1.0), numpy.array(1)])
def test_numbers_pass_as_python_floats(value: object) -> None:
    assert type(require_number(value, "x")) is float
    assert type(require_positive(value, "x")) is float


@pytest.mark.parametrize("value", ["no", 1, 0, None, torch.tensor(True)])
def test_flag_means_true_or_false(value: object) -> None:
    with pytest.raises(InvalidInput, match="merging must be True or False; got "):
        require_flags(tied=True, merging=value)
    require_flags(tied=False, merging=numpy.True_)


def test_kind_means_an_object_of_the_class() -> None:
    assert require_kind(3, "n", int, "an integer") == 3
    with pytest.raises(InvalidInput, match="n must be an integer; got 'three'"):
        require_kind("three", "n", int, "an integer")


def test_what_is_long_is_shown_by_its_kind() -> None:
    assert in_words("x" * 100) == "str"
    assert in_words(numpy.zeros((2, 2))) == "an array of shape (2, 2)"
    assert in_words(object()) == "object"
    assert in_words(torch.tensor(2)) == "tensor(2)"


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, True, None, "2", [1.0]])
def test_positive_means_positive_and_finite(value: float) -> None:
    with pytest.raises(InvalidInput, match="tol must be a positive number"):
        require_positive(value, "tol")


@pytest.mark.parametrize("value", [1, True, 2.0, "3", None, torch.tensor(3.7), torch.tensor([3, 4])])
def test_integer_means_an_integer_of_that_size(value: object) -> None:
    with pytest.raises(InvalidInput, match="steps must be an integer of at least 2"):
        require_integer(value, "steps", at_least=2)


def test_integers_of_numpy_and_torch_pass_as_python_integers() -> None:
    for value in (numpy.int64(3), torch.tensor(3), 3):
        assert type(require_integer(value, "steps", at_least=2)) is int
