from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from separatrix.diagnose.balance.pairs.homogeneity import Effect, passage

X = torch.linspace(-2, 2, 41, dtype=torch.float64)
FUNCTIONS = {
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "abs": torch.abs,
    "square": torch.square,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "elu": functional.elu,
    "softplus": functional.softplus,
    "hardswish": functional.hardswish,
    "relu6": lambda x: functional.relu6(4 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_table_agrees_with_scaling_the_function(name: str) -> None:
    function, found = FUNCTIONS[name], passage(name)
    scaled: Tensor = function(3 * X)  # type: ignore[operator]
    is_homogeneous = torch.allclose(scaled, 3**found.degree * function(X))  # type: ignore[operator]
    assert is_homogeneous == (found.effect is Effect.HOMOGENEOUS)


def test_powers_and_constants_are_read_from_their_arguments() -> None:
    assert passage("pow", (3,)).degree == 3
    assert passage("pow", (-1,)).effect is Effect.BREAKS
    assert passage("mul", (0.5,)).effect is Effect.LINEAR
    assert passage("add", (1,)).effect is Effect.BREAKS
    assert passage("fancy_thing").effect is Effect.UNKNOWN
