from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.diagnose import delta_rule_spectrum


def unit_keys(steps: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(steps, size, generator=generator, dtype=torch.float64), dim=-1)


def test_reflections_keep_every_direction(generator: torch.Generator) -> None:
    found = delta_rule_spectrum(unit_keys(60, 5, generator), torch.full((60,), 2.0))
    assert found.exponents.tolist() == pytest.approx([0.0] * 5, abs=1e-12)
    assert found.key_eigenvalues.tolist() == pytest.approx([-1.0] * 60)
    assert found.n_negative == 60
    assert bool(torch.isinf(found.time_constants).all())


def test_exponents_are_those_of_the_states_themselves(generator: torch.Generator) -> None:
    """The layer is run and writes nothing; its state falls with the top exponent."""
    steps, size = 400, 4
    keys, decays = unit_keys(steps, size, generator), 0.9 + 0.1 * torch.rand(steps, generator=generator).double()
    strengths = 2 * torch.rand(steps, generator=generator).double()
    found = delta_rule_spectrum(keys, strengths, decays)
    state = torch.eye(size, dtype=torch.float64)
    for key, strength, decay in zip(keys, strengths, decays, strict=True):
        state = decay * (state - strength * torch.outer(key, key @ state))
    rate = float(torch.linalg.matrix_norm(state, 2).log()) / steps
    assert float(found.exponents[0]) == pytest.approx(rate, abs=0.01)
    assert found.sum_error is not None
    assert found.sum_error < 1e-10


def test_a_strength_of_one_erases_and_that_is_minus_infinity(generator: torch.Generator) -> None:
    found = delta_rule_spectrum(unit_keys(40, 3, generator), torch.ones(40))
    assert bool(torch.isneginf(found.exponents[-1]))
    assert found.sum_error is None
    decayed = delta_rule_spectrum(torch.zeros(40, 3), torch.ones(40), torch.full((40,), 0.5))
    assert decayed.exponents.tolist() == pytest.approx([math.log(0.5)] * 3)


def test_shapes_and_signs_are_checked() -> None:
    with pytest.raises(InvalidInput, match="keys must be"):
        delta_rule_spectrum(torch.ones(3), torch.ones(3))
    with pytest.raises(InvalidInput, match="strengths must not be negative"):
        delta_rule_spectrum(torch.ones(3, 2), -torch.ones(3))
