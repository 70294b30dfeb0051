from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from separatrix import nn as layers, tasks, training
from separatrix.core import InvalidInput, UnknownOption, spawn
from separatrix.matrices import spectral_distance
from separatrix.nn import ExpRNN, NonNormalRNN, OrthogonalRNN, SequenceModel, orthogonality_error

TASK = tasks.Copy(15)


def copy_loss(model: nn.Module, batch: tasks.SequenceBatch) -> Tensor:
    return TASK.loss(model(batch.inputs), batch)


def plain_training(core: nn.Module, n_steps: int, lr: float = 1e-3) -> list[float]:
    """A loop as users write it; the largest orthogonality error of P after each step."""
    model = SequenceModel(core, TASK.n_outputs)
    optimiser = torch.optim.RMSprop(model.parameters(), lr=lr)
    batches = tasks.StreamedBatches(TASK, 8, 0)
    held = core.matrix.basis if isinstance(core, NonNormalRNN) else core.matrix
    errors = []
    for step in range(n_steps):
        optimiser.zero_grad()
        copy_loss(model, batches(step)).backward()
        optimiser.step()
        errors.append(orthogonality_error(held().detach()))  # type: ignore[operator]
    return errors


@pytest.mark.parametrize("make", [lambda: ExpRNN(10, 32), lambda: NonNormalRNN(10, 32)], ids=["exp", "nonnormal"])
def test_a_plain_loop_keeps_the_basis_orthogonal(make) -> None:  # type: ignore[no-untyped-def]
    core = make()
    before = core.recurrent().detach().clone()
    assert max(plain_training(core, 60)) < 2e-5
    assert float((core.recurrent().detach() - before).abs().max()) > 1e-3  # it did move


@pytest.mark.slow
def test_1500_steps_of_a_plain_loop_keep_the_basis_orthogonal() -> None:
    assert max(plain_training(ExpRNN(10, 64), 1500)) < 2e-5


def random_walk(core: ExpRNN, n_steps: int) -> float:
    """The orthogonality error after so many steps of an optimiser in random directions."""
    generator = spawn(0, "directions")
    optimiser = torch.optim.SGD(core.matrix.parameters(), lr=0.05)
    for _ in range(n_steps):
        core.matrix().sum().backward()
        core.matrix.tangent.grad = torch.randn(core.matrix.tangent.shape, generator=generator)  # type: ignore[union-attr]
        optimiser.step()
    return orthogonality_error(core.matrix().detach())


def test_without_the_correction_rounding_would_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    corrected = random_walk(ExpRNN(2, 16), 200)
    monkeypatch.setattr("separatrix.nn.orthogonal.rebased.corrected", lambda matrix: matrix)
    assert random_walk(ExpRNN(2, 16), 200) > 5 * corrected  # 17 to 28 times over three seeds


@pytest.mark.sampled(1, each="block")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("block", ["strict", "complete"])
def test_the_spectrum_is_exact_after_training(block: str, dtype: torch.dtype, tolerance: float) -> None:
    core = NonNormalRNN(10, 16, block, dtype=dtype)  # type: ignore[arg-type]
    plain_training(core.to(dtype), 100, lr=1e-3) if dtype == torch.float32 else _double_training(core)
    assert float(core.matrix.feedforward.detach().abs().max()) > 1e-3
    found, vectors = torch.linalg.eig(core.recurrent().detach().double())
    gap = spectral_distance(found, core.eigenvalues().to(torch.complex128))
    condition = float(torch.linalg.cond(vectors))
    assert float(gap) < tolerance * max(1.0, condition)  # a non-normal matrix magnifies the rounding of its entries


def _double_training(core: NonNormalRNN) -> None:
    optimiser = torch.optim.RMSprop(core.parameters(), lr=1e-3)
    x = torch.randn(4, 12, 10, dtype=torch.float64, generator=spawn(0, "x"))
    for _ in range(100):
        optimiser.zero_grad()
        core(x)[0].square().mean().backward()
        optimiser.step()


def test_last_good_parameters_of_our_loop_include_the_base() -> None:
    def explode(model: nn.Module, batch: tasks.SequenceBatch) -> Tensor:
        seen.append(model.core.recurrent().detach().clone())  # type: ignore[operator, union-attr]
        return copy_loss(model, batch) * (float("nan") if len(seen) == 5 else 1.0)

    seen: list[Tensor] = []
    model = SequenceModel(ExpRNN(10, 16), TASK.n_outputs)
    page = training.TrainingSettings(n_steps=9, lr=1e-2, optimiser="rmsprop")
    run = training.train(model, tasks.StreamedBatches(TASK, 4, 0), explode, page)
    assert run.diverged_at == (4,)
    # the last point with a finite loss is that of the fourth call
    assert torch.equal(model.core.recurrent(), seen[3])  # type: ignore[operator, union-attr]


def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: object) -> None:
    def stopping(model: nn.Module, batch: tasks.SequenceBatch) -> Tensor:
        calls.append(1)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return copy_loss(model, batch)

    def fresh() -> SequenceModel:
        return SequenceModel(NonNormalRNN(10, 12), TASK.n_outputs)

    groups = (training.ParameterGroup(names="core.matrix.basis.*", lr=1e-3),)
    page = training.TrainingSettings(n_steps=12, lr=1e-2, optimiser="rmsprop", save_every=1, groups=groups)
    batches = tasks.StreamedBatches(TASK, 4, 0)
    calls: list[int] = []
    stop_at = -1
    whole = training.train(fresh(), batches, stopping, page)
    calls, stop_at = [], 8
    with pytest.raises(KeyboardInterrupt):
        training.train(fresh(), batches, stopping, page, checkpoint=f"{tmp_path}/run.pt")
    stop_at = -1
    rest = training.train(fresh(), batches, stopping, page, checkpoint=f"{tmp_path}/run.pt")
    assert rest.resumed_at == 7
    assert rest.history.records == whole.history.records


def test_evaluation_changes_nothing() -> None:
    core = ExpRNN(3, 6)
    with torch.no_grad():
        core.matrix.tangent.add_(0.1)  # type: ignore[operator, union-attr]
    x = torch.randn(2, 4, 3, generator=spawn(0, "x"))
    before = {name: value.clone() for name, value in core.state_dict().items()}
    evaluated = core.eval()(x)[0]
    with torch.no_grad():  # other loops than with a gradient, whose sums may be rounded elsewhere
        assert torch.allclose(core.train()(x)[0], evaluated, rtol=0, atol=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in core.state_dict().items())
    assert torch.allclose(core.train()(x)[0], evaluated, atol=1e-5)  # now it is absorbed: the same matrix
    assert not core.matrix.tangent.any()  # type: ignore[operator, union-attr]


def test_second_derivatives_through_a_whole_network() -> None:
    core = ExpRNN(2, 4, dtype=torch.float64)
    x = torch.randn(1, 3, 2, dtype=torch.float64, generator=spawn(0, "x")).requires_grad_()
    (slope,) = torch.autograd.grad(core(x)[0].square().sum(), x, create_graph=True)
    slope.square().sum().backward()
    found = core.matrix.tangent.grad.clone()  # type: ignore[operator, union-attr]
    core.eval()
    for k in range(len(found)):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                core.matrix.tangent.zero_()  # type: ignore[operator, union-attr]
                core.matrix.tangent[k] = sign * 1e-5  # type: ignore[operator, index]
            (s,) = torch.autograd.grad(core(x)[0].square().sum(), x)
            ends.append(float(s.square().sum()))
        assert float(found[k]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_a_misspelt_option_of_an_alias_is_refused() -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'nonlinearity'"):
        ExpRNN(3, 4, nonlinearty="tanh")
    with pytest.raises(InvalidInput, match="'modrelu' or 'linear' with the complex map 'urnn'"):
        layers.URNN(3, 4, nonlinearity="tanh")
    with pytest.raises(InvalidInput, match="hidden_size must be an integer of at least 2"):
        NonNormalRNN(3, 1)
    with pytest.raises(InvalidInput, match="power of two"):
        OrthogonalRNN(3, 6, "fft")
    with pytest.raises(InvalidInput, match="must be even"):
        layers.EURNN(3, 5)
    with pytest.raises(InvalidInput, match=r"margin must lie in \[0, 1\)"):
        layers.SVDRNN(3, 4, 1.0)
    with pytest.raises(InvalidInput, match="n_reflections must be at most"):
        layers.HouseholderRNN(3, 4, 5)


def test_one_unit_is_enough() -> None:
    for name in ("exp", "cayley", "householder", "urnn", "full_capacity", "lie_u", "complex_cayley", "svd"):
        core = OrthogonalRNN(2, 1, name)
        output, _ = core(torch.ones(1, 3, 2))
        output.sum().backward()
        assert bool(torch.isfinite(output).all())
        assert float(core.recurrent().detach().abs()) == pytest.approx(1.0, abs=1e-5)
