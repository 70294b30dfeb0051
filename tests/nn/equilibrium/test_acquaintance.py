"""What a layer asks of its cell before it believes a solve: one answer, no moved statistics, rows on their own."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from separatrix.core import InvalidInput, SeparatrixError
from separatrix.dynamics import Anderson
from separatrix.nn import DEQ, Implicit, Neumann, OneStep, Phantom, Unrolled, VariationalDropout
from separatrix.nn.equilibrium.backward import AbstractBackward


class Cell(nn.Module):
    """tanh(W drop(z)) + x with some part in place of the dropout."""

    def __init__(self, part: nn.Module, seed: int = 0, width: int = 8) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(0.3 * torch.randn(width, width, generator=generator) / width**0.5)
        self.part = part

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.part(z) @ self.weight.T) + x


def inputs(batch: int = 4, width: int = 8) -> Tensor:
    return torch.randn(batch, width, generator=torch.Generator().manual_seed(1))


def called(layer: DEQ, times: int) -> None:
    for _ in range(times):
        layer(inputs())


class RareZero(nn.Module):
    """All of the state, but now and then nothing."""

    def forward(self, z: Tensor) -> Tensor:
        return z * (torch.rand(()) < 0.9)


@pytest.mark.parametrize("part", [lambda: nn.Dropout(0.02), lambda: nn.Dropout(0.005), RareZero])
def test_dropout_so_rare_that_one_look_misses_it_is_refused(part: Callable[[], nn.Module]) -> None:
    for seed in range(6):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            layer = DEQ(Cell(part(), seed), on_fail="return")
            with pytest.raises(InvalidInput, match="gave two different results"):
                called(layer, 3)


def test_dropout_that_is_switched_on_later_is_refused() -> None:
    layer = DEQ(Cell(nn.Dropout(0.0)), on_fail="return")
    layer(inputs())
    layer.cell.part.p = 0.01
    with torch.random.fork_rng():
        torch.manual_seed(0)
        with pytest.raises(InvalidInput, match="gave two different results"):
            called(layer, 3)


class InVain(nn.Module):
    """Draws a number that nothing depends on."""

    def forward(self, z: Tensor) -> Tensor:
        return z + 0 * torch.rand(())


def test_numbers_drawn_in_vain_and_masks_of_one_solve_are_no_reason_to_refuse() -> None:
    for part in (InVain(), VariationalDropout(0.5, generator=torch.Generator().manual_seed(0))):
        layer = DEQ(Cell(part), on_fail="raise")
        evaluations: list[Tensor] = []
        layer.cell.register_forward_hook(lambda cell, given, image, seen=evaluations: seen.append(image))
        called(layer, 3)
        assert len(evaluations) < 64 + 3 * 40  # the careful look at a cell that draws is taken once


class FunctionalBatchNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("var", torch.ones(8))

    def forward(self, z: Tensor) -> Tensor:
        return functional.batch_norm(z, self.mean, self.var, training=self.training)


class RunningMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, z: Tensor) -> Tensor:
        self.mean = self.mean.lerp(z.detach().mean(0), 0.01)
        return z - self.mean


class Centred(nn.Module):
    """Normalised by hand over the batch."""

    def forward(self, z: Tensor) -> Tensor:
        return (z - z.mean(0)) / (z.var(0) + 1e-5).sqrt()


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, z: Tensor) -> Tensor:
        self.calls += 1
        return z


@pytest.mark.parametrize("part", [FunctionalBatchNorm, RunningMean])
def test_statistics_that_move_at_every_evaluation_are_refused_and_named(part: type[nn.Module]) -> None:
    with pytest.raises(InvalidInput, match=rf"buffer 'mean' of {part.__name__} moves"):
        DEQ(Cell(part()))(inputs())


@pytest.mark.parametrize("batch", [2, 6, 400])
def test_samples_that_depend_on_each_other_are_refused(batch: int) -> None:
    with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
        DEQ(Cell(Centred()))(inputs(batch))


def test_counters_and_batch_norm_in_evaluation_are_not_refused() -> None:
    for part in (Counter(), nn.BatchNorm1d(8).eval(), nn.LayerNorm(8)):
        layer = DEQ(Cell(part), on_fail="raise")
        layer(inputs())
        assert layer.last is not None
        assert layer.last.ok


def test_one_sample_alone_needs_no_other_to_be_asked() -> None:
    assert DEQ(Cell(Centred()), on_fail="return").eval()(inputs()).shape == (4, 8)
    assert DEQ(Cell(nn.Identity()), on_fail="raise")(inputs(1)).shape == (1, 8)


@pytest.mark.parametrize("backward", [Implicit(), OneStep(), Phantom(), Neumann(), Unrolled(steps=40)])
@pytest.mark.parametrize("normed", [False, True])
def test_a_checkpointed_layer_learns_from_its_first_call(backward: AbstractBackward, normed: bool) -> None:
    cell = nn.utils.parametrizations.weight_norm(Cell(nn.Identity())) if normed else Cell(nn.Identity())
    plain, kept = (DEQ(cell, backward=backward) for _ in range(2))
    gradients = []
    for run in (plain, lambda x: checkpoint(kept, x, use_reentrant=False)):
        x = inputs().requires_grad_()
        run(x).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


class HalfInside(nn.Module):
    """Computes in bfloat16 and returns single precision, as cells under an autocast of their own do."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        weight = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(0.6 * weight / torch.linalg.matrix_norm(weight, 2))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        if self.how == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                return (torch.tanh(z @ self.weight.T) + x).float()
        half = z.bfloat16() @ self.weight.bfloat16().T
        return torch.tanh(half).float() + x


@pytest.mark.parametrize("how", ["autocast", "cast"])
@pytest.mark.parametrize("training", [True, False])
def test_half_precision_inside_the_cell_sets_the_tolerance(how: str, training: bool) -> None:
    layer = DEQ(HalfInside(how), on_fail="raise").train(training)
    x = inputs(5, 16).requires_grad_()
    for _ in range(2):
        z = layer(x)
        z.sum().backward()
    exact = DEQ(lambda z, x: torch.tanh(z @ layer.cell.weight.detach().double().T) + x)(x.detach().double())
    assert float((z.detach() - exact).norm() / exact.norm()) < 0.1


def test_float16_by_name_is_solved_as_finely_as_it_can_be() -> None:
    cell = Cell(nn.Identity(), width=32)
    cell.weight.data *= 2.5
    with torch.no_grad():
        exact = DEQ(copy.deepcopy(cell).double(), solver=Anderson(tol=1e-10), on_fail="raise")(inputs(8, 32).double())
        z = DEQ(cell.half(), on_fail="raise")(inputs(8, 32).half())
    assert float((z.double() - exact).norm(dim=-1).div(exact.norm(dim=-1)).max()) < 0.035


def test_unrolled_refuses_steps_that_circle_or_leave_however_far_they_began() -> None:
    x = torch.full((1, 1), 0.5, dtype=torch.float64, requires_grad=True)
    circling = DEQ(lambda z, x: -2 * torch.tanh(z) + x, backward=Unrolled(steps=101), initial=lambda x: 0 * x + 8.0)
    with pytest.raises(SeparatrixError, match="Implicit"):
        circling(x)
    slopes = torch.tensor([0.1, -1.2], dtype=torch.float64)
    far = torch.tensor([1e4, 0.4], dtype=torch.float64)
    leaving = DEQ(lambda z, x: z * slopes + x, backward=Unrolled(steps=20), initial=lambda x: 0 * x + far)
    with pytest.raises(SeparatrixError, match="Implicit"):
        leaving(torch.ones(1, 2, dtype=torch.float64, requires_grad=True))


def test_unrolled_accepts_slow_and_transiently_growing_steps() -> None:
    weight = torch.tensor([[0.5, 30.0], [0.0, 0.5]], dtype=torch.float64)
    growing = DEQ(lambda z, x: z @ weight + x, backward=Unrolled(steps=120))
    x = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(growing(x).sum(), x)
    expected = torch.linalg.inv(torch.eye(2, dtype=torch.float64) - weight).sum(-1)
    torch.testing.assert_close(gradient[0], expected)
    slow = DEQ(lambda z, x: 0.999 * z + x, backward=Unrolled(steps=5))
    assert slow(x).shape == (1, 2)


class WithBuffer(nn.Module):
    """Has a buffer that nothing moves."""

    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.register_buffer("buffer", buffer)

    def forward(self, z: Tensor) -> Tensor:
        return z


@pytest.mark.parametrize(
    "part",
    [
        lambda: WithBuffer(torch.tensor([1.0, float("nan")])),
        lambda: WithBuffer(torch.eye(3).to_sparse()),
        lambda: WithBuffer(torch.ones(2, device="meta")),
        lambda: nn.LazyBatchNorm1d().eval(),
    ],
)
def test_buffers_of_any_kind_that_stay_are_not_accused(part: Callable[[], nn.Module]) -> None:
    layer = DEQ(Cell(part()), on_fail="raise")
    layer(inputs())
    assert layer.last is not None
    assert layer.last.ok


class Lending(nn.Module):
    """Adds some row of the batch to another."""

    def __init__(self, giver: int, taker: int) -> None:
        super().__init__()
        self.giver, self.taker = giver, taker

    def forward(self, z: Tensor) -> Tensor:
        taking = torch.zeros(len(z), 1, dtype=z.dtype)
        taking[self.taker] = 1.0
        return z + taking * z[self.giver]


@pytest.mark.parametrize("batch", [2, 3, 7])
def test_one_sample_that_feels_one_other_is_enough_to_refuse(batch: int) -> None:
    for giver in range(batch):
        for taker in range(batch):
            if giver != taker:
                with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
                    DEQ(Cell(Lending(giver, taker)), on_fail="return")(inputs(batch))


class LessTheMean(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z - z.mean(0)


def test_a_first_batch_of_one_does_not_excuse_the_batches_after_it() -> None:
    layer = DEQ(Cell(LessTheMean()), on_fail="return")
    layer(inputs(1))
    with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
        layer(inputs(4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_samples_that_depend_on_each_other_are_refused_in_half_precision(dtype: torch.dtype) -> None:
    with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
        DEQ(Cell(Centred()).to(dtype), on_fail="return")(inputs().to(dtype))


def test_batch_statistics_and_rare_dropout_are_refused_under_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
            DEQ(Cell(Centred()), on_fail="return")(inputs())
        for seed in range(6):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                layer = DEQ(Cell(nn.Dropout(0.02), seed), on_fail="return")
                with pytest.raises(InvalidInput, match="gave two different results"):
                    called(layer, 3)


class Routed(nn.Module):
    """Each sample goes through one of several weights, in bfloat16: how many rows are multiplied at once varies."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(4, width, width, generator=torch.Generator().manual_seed(2)))

    def forward(self, z: Tensor) -> Tensor:
        out = torch.zeros_like(z)
        for k, weight in enumerate(self.weights):
            mine = z[:, :4].argmax(-1) == k
            out[mine] = (z[mine].bfloat16() @ weight.bfloat16()).to(z.dtype)
        return out


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch", [2, 17])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_routing_in_half_precision_is_no_dependence_between_samples(batch: int, dtype: torch.dtype) -> None:
    for width in (8, 64, 257):
        cell = Cell(Routed(width), width=width).to(dtype)
        assert DEQ(cell, on_fail="return")(inputs(batch, width).to(dtype)).shape == (batch, width)


class SkippedNowAndThen(nn.Module):
    def __init__(self, drawn: Callable[[], float]) -> None:
        super().__init__()
        self.drawn = drawn

    def forward(self, z: Tensor) -> Tensor:
        return z if self.drawn() > 0.05 else 0 * z


@pytest.mark.parametrize("kind", ["python", "numpy"])
def test_numbers_drawn_from_other_global_generators_are_seen(kind: str) -> None:
    python, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for seed in range(6):
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            drawn = random.random if kind == "python" else np.random.rand
            layer = DEQ(Cell(SkippedNowAndThen(drawn)), on_fail="return")
            with pytest.raises(InvalidInput, match=r"gave two different|depend on each other"):
                called(layer, 3)
    finally:
        random.setstate(python)
        np.random.set_state(numbers)  # noqa: NPY002


def positive(z: Tensor, x: Tensor) -> Tensor:
    if bool((z < 0).any()):
        raise ValueError("negative")
    return 0.3 * z.sqrt() + x


def test_a_cell_is_not_asked_where_it_has_no_answer() -> None:
    layer = DEQ(positive, on_fail="raise")
    x = inputs().abs().requires_grad_()
    for _ in range(2):
        assert bool(torch.isfinite(torch.autograd.grad(layer(x).sum(), x)[0]).all())
    with pytest.raises(InvalidInput, match="samples of the batch depend on each other"):
        DEQ(lambda z, x: 0.3 * z.log() + 0.1 * z.mean(0) + x, initial=lambda x: 0 * x + 1)(inputs().abs() + 2)


def test_a_cell_that_is_wrong_everywhere_says_so_itself() -> None:
    def wrong(z: Tensor, x: Tensor) -> Tensor:
        raise ZeroDivisionError("of the cell")

    with pytest.raises(ZeroDivisionError, match="of the cell"):
        DEQ(wrong)(inputs())


class HalfInTraining(HalfInside):
    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return super().forward(z, x) if self.training else torch.tanh(z @ self.weight.T) + x


@pytest.mark.parametrize("training_first", [True, False])
def test_precision_is_known_of_each_mode_of_the_cell(training_first: bool) -> None:
    layer = DEQ(HalfInTraining("cast"), on_fail="raise")
    x = inputs(5, 16)
    found = {mode: layer.train(mode)(x) for mode in (training_first, not training_first)}
    exact = DEQ(lambda z, x: torch.tanh(z @ layer.cell.weight.detach().double().T) + x)(x.double())
    assert float((found[False].detach() - exact).norm() / exact.norm()) < 1e-3


def test_precision_seen_under_autocast_is_not_that_of_calls_without() -> None:
    layer = DEQ(HalfInside("cast"), on_fail="raise")
    with torch.autocast("cpu", torch.bfloat16):
        layer(inputs(5, 16))
    layer(inputs(5, 16))  # raises unless it converges
    assert layer.last is not None
    assert layer.last.ok


def test_what_is_known_is_kept_by_copies_and_pickles() -> None:
    layer = DEQ(Cell(InVain()), on_fail="raise")
    layer(inputs())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        evaluations: list[Tensor] = []
        other.cell.register_forward_hook(lambda cell, given, image, seen=evaluations: seen.append(image))
        other(inputs())
        assert len(evaluations) < 40


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("rate", [0.5, -0.9])
def test_unrolled_accepts_few_steps_that_contract(steps: int, rate: float) -> None:
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    z = DEQ(lambda z, x: rate * z + x, backward=Unrolled(steps=steps))(x)
    (gradient,) = torch.autograd.grad(z.sum(), x)
    torch.testing.assert_close(gradient, torch.full_like(x, sum(rate**k for k in range(steps))))


@pytest.mark.parametrize("size", [0.0, 1e-7])
@pytest.mark.parametrize("steps", [20, 50, 200])
def test_unrolled_accepts_an_equilibrium_next_to_nothing(size: float, steps: int) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    z = DEQ(lambda z, x: 0.5 * torch.tanh(z) + size * x, backward=Unrolled(steps=steps), initial=lambda x: 0 * x + 8)(x)
    assert z.requires_grad


@pytest.mark.parametrize("steps", [10, 30, 60, 100])
@pytest.mark.parametrize(("rate", "angle", "longer"), [(0.99, 0.1, 5.0), (0.98, 0.3, 5.0), (0.99, 0.5, 3.0)])
def test_unrolled_accepts_spirals_inward_on_ellipses(rate: float, angle: float, longer: float, steps: int) -> None:
    turned = [[math.cos(angle), -longer * math.sin(angle)], [math.sin(angle) / longer, math.cos(angle)]]
    weight = rate * torch.tensor(turned, dtype=torch.float64)
    x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    assert DEQ(lambda z, x: z @ weight.T + x, backward=Unrolled(steps=steps))(x).requires_grad


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 60])
def test_unrolled_refuses_steps_that_leave_however_few(steps: int) -> None:
    x = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(SeparatrixError, match="Implicit"):
        DEQ(lambda z, x: -1.3 * z + x, backward=Unrolled(steps=steps))(x)
