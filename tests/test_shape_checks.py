from __future__ import annotations

import beartype
import jaxtyping
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import shape_checks
from separatrix.matrices import henrici


@pytest.fixture
def trace() -> object:
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    def trace_of(matrix: Float[Tensor, "n n"]) -> float:
        return float(matrix.diagonal().sum())

    return trace_of


def test_the_first_calls_of_every_test_are_checked(trace) -> None:  # type: ignore[no-untyped-def]
    wrong = torch.ones(2, 3)
    for _ in range(shape_checks.CALLS_PER_TEST):
        with pytest.raises(jaxtyping.TypeCheckError):
            trace(wrong)
    assert trace(wrong) == 2.0  # later calls are not
    shape_checks.begin_test()
    with pytest.raises(jaxtyping.TypeCheckError):
        trace(wrong)


def test_functions_of_the_package_are_checked() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        henrici("no matrix")  # type: ignore[arg-type]
