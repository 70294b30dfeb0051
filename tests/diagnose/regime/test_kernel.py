from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose import (
    full_change,
    full_distance,
    kernel_distance,
    label_alignment,
    relative_change,
    tangent_kernel,
)


def brute_force(model: nn.Module, x: Tensor) -> Tensor:
    """J J^T by reverse-mode Jacobians of every output."""
    names = [name for name, _ in model.named_parameters()]

    def run(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (x,))

    parts = torch.autograd.functional.jacobian(run, tuple(p.detach() for p in model.parameters()))
    rows = torch.cat([part.reshape(x.shape[0], -1, part[0, 0].numel()) for part in parts], dim=-1)
    return torch.einsum("aop,bop->ab", rows, rows)


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(7, 4, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("chunk_size", ["auto", 1, 3, 100])
def test_the_kernel_is_the_jacobian_times_its_transpose(model: nn.Module, x: Tensor, chunk_size: object) -> None:
    found = tangent_kernel(model, x, chunk_size=chunk_size)  # type: ignore[arg-type]
    assert torch.allclose(found.kernel, brute_force(model, x), atol=1e-12)
    assert torch.allclose(torch.stack(list(found.by_parameter.values())).sum(0), found.kernel)
    assert found.method == "vmap"


def test_a_linear_network_has_the_kernel_of_the_closed_form(x: Tensor) -> None:
    model = nn.Sequential(nn.Linear(4, 5, bias=False), nn.Linear(5, 2, bias=False)).double()
    w1, w2 = model[0].weight.detach(), model[1].weight.detach()
    closed = 2 * x @ w1.mT @ w1 @ x.mT + torch.trace(w2 @ w2.mT) * x @ x.mT
    assert torch.allclose(tangent_kernel(model, x).kernel, closed, atol=1e-12)


class Recurrent(nn.Module):
    """Dictionary in, dictionary out, a module that cannot be vectorised, tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.read, self.tied = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2), nn.Linear(4, 2)
        self.tied.weight = self.read.weight

    def forward(self, tokens: Tensor, gain: float = 1.0) -> dict[str, object]:
        hidden = self.rnn(tokens)[0][:, -1]
        return {"hidden": None, "logits": gain * (self.read(hidden) + self.tied(hidden))}


def test_recurrent_models_with_dictionaries_and_tied_weights_work_and_say_how() -> None:
    model = Recurrent().double()
    tokens = torch.randn(3, 5, 3, generator=seeded(0), dtype=torch.float64)
    found = tangent_kernel(model, {"tokens": tokens, "gain": 2.0})
    assert found.method == "loop"
    gradients = []
    for sample in range(3):
        for unit in range(2):
            value = model(tokens[sample : sample + 1], 2.0)["logits"][0, unit]  # type: ignore[index]
            parts = torch.autograd.grad(value, list(model.parameters()))
            gradients.append(torch.cat([part.flatten() for part in parts]))
    rows = torch.stack(gradients).reshape(3, 2, -1)
    assert torch.allclose(found.kernel, torch.einsum("aop,bop->ab", rows, rows), atol=1e-12)


def test_the_sketch_is_unbiased_and_repeatable(x: Tensor) -> None:
    x = x[:3]
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 30)).double()
    exact = tangent_kernel(model, x, max_outputs=30)
    sketch = tangent_kernel(model, x)
    assert (exact.sketched, sketch.sketched) == (False, True)
    assert torch.equal(sketch.kernel, tangent_kernel(model, x).kernel)
    draws = [tangent_kernel(model, x, max_outputs=10, generator=seeded(seed)).kernel.trace() for seed in range(20)]
    values = torch.stack(draws)
    standard_error = float(values.std()) / 20**0.5
    assert abs(float(values.mean() - exact.kernel.trace())) < 4 * standard_error


def test_the_kernel_is_taken_without_dropout_and_leaves_the_model_alone(x: Tensor) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2)).double().train()
    first, second = tangent_kernel(model, x).kernel, tangent_kernel(model, x).kernel
    assert torch.equal(first, second)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_distance_ignores_scale_and_relative_change_does_not() -> None:
    kernel = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    assert float(kernel_distance(kernel, 5 * kernel)) == pytest.approx(0, abs=1e-15)
    assert float(relative_change(kernel, 5 * kernel)) == pytest.approx(4)
    assert float(kernel_distance(torch.eye(2), 1 - torch.eye(2))) == pytest.approx(1)


def test_a_kernel_made_of_the_labels_is_fully_aligned() -> None:
    labels = torch.nn.functional.one_hot(torch.tensor([0, 1, 2, 0, 1]), 3).double()
    assert label_alignment(labels @ labels.mT, labels) == pytest.approx(1)
    assert label_alignment(torch.eye(5).double(), labels) < 0.8


def test_bad_input_is_refused(model: nn.Module) -> None:
    with pytest.raises(InvalidInput, match="at most 200 samples; got 201"):
        tangent_kernel(model, torch.zeros(201, 4, dtype=torch.float64))
    with pytest.raises(InvalidInput, match="chunk_size must be an integer"):
        tangent_kernel(model, torch.zeros(2, 4, dtype=torch.float64), chunk_size=0)
    with pytest.raises(InvalidInput, match="no parameter that requires a gradient"):
        tangent_kernel(nn.ReLU(), torch.zeros(2, 4))
    with pytest.raises(InvalidInput, match="inputs must be a tensor"):
        tangent_kernel(model, 3.0)


def full_kernel(model: nn.Module, x: Tensor) -> Tensor:
    """J J^T over all samples and outputs, by reverse-mode Jacobians."""
    names = [name for name, _ in model.named_parameters()]

    def run(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (x,)).flatten()

    parts = torch.autograd.functional.jacobian(run, tuple(p.detach() for p in model.parameters()))
    rows = torch.cat([part.flatten(1) for part in parts], dim=-1)
    return rows @ rows.mT


@pytest.mark.parametrize("chunk_size", ["auto", 3])
def test_few_outputs_give_the_full_kernel_exactly(x: Tensor, chunk_size: object) -> None:
    models = [nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double() for _ in range(2)]
    found = [tangent_kernel(model, x, full=True, chunk_size=chunk_size) for model in models]  # type: ignore[arg-type]
    before, after = (full_kernel(model, x) for model in models)
    assert full_change(*found) == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-12)
    assert full_distance(*found) == pytest.approx(float(kernel_distance(before, after)), rel=1e-10)


@pytest.mark.parametrize("n_draws", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_random_output_pairs_estimate_the_full_kernel(x: Tensor, n_draws: int) -> None:
    models = [nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 12)).double() for _ in range(2)]
    exact = float(kernel_distance(*(full_kernel(model, x) for model in models)))
    draws = [
        full_distance(*(tangent_kernel(model, x, full=True, generator=seeded(seed)) for model in models))
        for seed in range(n_draws)
    ]
    mean, error = torch.tensor(draws).mean(), torch.tensor(draws).std() / n_draws**0.5
    assert abs(float(mean) - exact) < 5 * float(error)
    assert float(torch.tensor(draws).std()) < 0.1


def test_only_the_full_kernel_sees_a_rotation_of_the_outputs() -> None:
    x = torch.randn(7, 2, generator=seeded(1), dtype=torch.float64)
    before = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 20, bias=False)).double()
    with torch.no_grad():
        before[1].weight.mul_(10)  # a heavy output layer of two columns in twenty outputs, which training may turn
    after = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 20, bias=False)).double()
    with torch.no_grad():
        after[0].weight.copy_(before[0].weight)
        turn = torch.linalg.qr(torch.randn(20, 20, generator=seeded(2), dtype=torch.float64))[0]
        after[1].weight.copy_(turn @ before[1].weight)
    kernels = [tangent_kernel(model, x, full=True) for model in (before, after)]
    assert float(kernel_distance(kernels[0].kernel, kernels[1].kernel)) < 1e-12
    assert full_distance(*kernels) > 0.5
