from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import separatrix.nn as layers
from separatrix.diagnose import LinearRecurrence, recurrent
from separatrix.matrices import fisher_memory_curve


def only(state: dict[str, Tensor]) -> LinearRecurrence:
    (found,) = recurrent(state).linear
    return found


def test_mamba_s_decays_are_read_at_the_step_size_of_no_input() -> None:
    rates, bias = torch.tensor([[1.0, 2.0], [4.0, 8.0]]), torch.tensor([-3.0, 0.5])
    state = {"mixer.A_log": rates.log(), "mixer.dt_proj.bias": bias, "mixer.dt_proj.weight": torch.zeros(2, 1)}
    found = only(state)
    step = torch.log1p(bias.exp())[:, None]
    expected = (1 / (rates * step)).flatten().sort(descending=True).values
    assert (found.name, found.kind) == ("mixer", "Mamba")
    assert found.time_constants.tolist() == pytest.approx(expected.tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("state", "values"),
    [
        ({"A_log": torch.zeros(2), "dt_bias": torch.zeros(2)}, [0.5, 0.5]),
        ({"nu_log": torch.zeros(1), "theta_log": torch.zeros(1)}, [math.exp(-1) * complex(math.cos(1), math.sin(1))]),
        (
            {"Lambda_re": -torch.ones(1), "Lambda_im": torch.ones(1), "log_step": torch.zeros(1, 1)},
            [math.exp(-1) * complex(math.cos(1), math.sin(1))],
        ),
        (
            {"log_A_real": torch.zeros(1, 1), "A_imag": torch.zeros(1, 1), "log_dt": torch.zeros(1)},
            [math.exp(-1)],
        ),
    ],
)
def test_other_layouts_are_read_by_their_formula(state: dict[str, Tensor], values: list[complex]) -> None:
    assert only({f"layer.{name}": part for name, part in state.items()}).eigenvalues.tolist() == pytest.approx(values)


def test_a_file_of_our_own_lru_gives_its_eigenvalues() -> None:
    lru = layers.LRU(3, 4)
    expected = lru.eigenvalues().abs().sort(descending=True).values
    torch.testing.assert_close(only(dict(lru.state_dict())).eigenvalues.abs().float(), expected)


def test_memory_of_the_diagonal_is_that_of_its_matrix() -> None:
    found = only({"A_log": torch.tensor([0.0, 1.0]), "dt_bias": torch.tensor([-1.0, -2.0])})
    matrix = torch.diag(found.eigenvalues.real)
    source = torch.full((2,), math.sqrt(0.5), dtype=torch.float64)
    torch.testing.assert_close(found.memory(12), fisher_memory_curve(matrix, source, 12).curve, rtol=0, atol=1e-12)


def test_drift_towards_an_accumulator_has_a_sign() -> None:
    early = only({"A_log": torch.zeros(3), "dt_bias": torch.zeros(3)})
    late = only({"A_log": torch.zeros(3), "dt_bias": torch.full((3,), -9.0)})
    assert late.drift_from(early) < 0 < early.drift_from(late)
    assert (early.accumulators, late.accumulators) == (0, 3)
    assert late.accumulators_over(100_000) == 0
