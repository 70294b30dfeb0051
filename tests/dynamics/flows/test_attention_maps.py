from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput, Outcome
from separatrix.dynamics import AttentionFlow, AttentionMap, layer_norm, normalise, random_tokens

V = torch.diag(torch.tensor([2.0, 0.5, -1.0]).double())
FLOW = AttentionFlow.from_coupling(torch.eye(3).double(), V, beta=1.5)
SIGNS = torch.tensor([1.0, 1.0, -1.0, 1.0, -1.0]).double()
POINT = SIGNS[:, None] * torch.tensor([1.0, 0.0, 0.0]).double()


def sorted_values(values: torch.Tensor) -> list[float]:
    return values.real.sort().values.tolist()


def test_multipliers_of_the_tangent_update_are_one_plus_step_times_eigenvalues() -> None:
    ours = AttentionMap(FLOW, 0.3, "tangent").multipliers(POINT)
    expected = 1 + 0.3 * torch.linalg.eigvals(FLOW.jacobian(POINT))
    assert sorted_values(ours) == pytest.approx(sorted_values(expected), abs=1e-10)


@pytest.mark.parametrize("step", [0.3, 5.0, 1e3])
def test_multipliers_of_the_residual_update_follow_the_sign_pattern_law(step: float) -> None:
    # eig( diag(1 + eta l_k s o A s)^-1 (I + eta l_j A) ), j != k
    A = FLOW.attention(POINT)
    scale = 1 + step * 2.0 * SIGNS * (A @ SIGNS)
    blocks = [torch.linalg.eigvals((torch.eye(5).double() + step * lam * A) / scale[:, None]) for lam in (0.5, -1.0)]
    ours = AttentionMap(FLOW, step).multipliers(POINT)
    assert sorted_values(ours) == pytest.approx(sorted_values(torch.cat(blocks)), abs=1e-9)


@pytest.mark.parametrize("update", ["tangent", "residual"])
def test_multipliers_equal_the_derivative_of_the_map(update: str) -> None:
    map_ = AttentionMap(FLOW, 0.4, update)
    derivative = torch.autograd.functional.jacobian(map_, POINT).reshape(15, 15)
    basis = torch.block_diag(*FLOW.basis(POINT))
    expected = torch.linalg.eigvals(basis.mT @ derivative @ basis)
    assert sorted_values(map_.multipliers(POINT)) == pytest.approx(sorted_values(expected), abs=1e-10)


def test_small_steps_converge_to_a_stable_fixed_point(generator: torch.Generator) -> None:
    map_ = AttentionMap(FLOW, 0.2)
    run = map_.iterate(random_tokens(5, 3, 6, generator=generator))
    assert run.outcome.tolist() == [Outcome.CONVERGED] * 6
    assert all(map_.stable(end) for end in run.final)


def test_a_negative_factor_makes_tokens_flip_with_period_two() -> None:
    # lambda_3 = -1 with step 3: at consensus on v_3 the factor 1 + step gamma is -2.
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), torch.diag(torch.tensor([0.1, -1.0]).double()))
    run = AttentionMap(flow, 3.0).iterate(torch.tensor([[0.0, 1.0]] * 3).double(), max_steps=50)
    assert int(run.outcome) == Outcome.CYCLE


def test_layer_norm_equals_torch_and_acts_on_the_centred_sphere(generator: torch.Generator) -> None:
    x = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    gain, bias = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    expected = torch.nn.functional.layer_norm(x, (6,), gain, bias, eps=0.0)
    torch.testing.assert_close(layer_norm(x, gain, bias), expected)
    # One LayerNorm step is map (B) with V replaced by Pi V on centred unit tokens.
    value = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    centre = torch.eye(6).double() - 1 / 6
    tokens = normalise(x @ centre)
    flow = AttentionFlow.from_coupling(torch.eye(6).double(), value)
    centred = AttentionFlow.from_coupling(torch.eye(6).double(), centre @ value)
    step = layer_norm(tokens + 0.3 * flow.pull(tokens)) / 6**0.5
    torch.testing.assert_close(step, AttentionMap(centred, 0.3)(tokens), rtol=0, atol=1e-14)


def test_bad_maps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="step must be a positive number"):
        AttentionMap(FLOW, 0.0)
    with pytest.raises(InvalidInput, match="unknown update 'residal'"):
        AttentionMap(FLOW, 1.0, "residal")
