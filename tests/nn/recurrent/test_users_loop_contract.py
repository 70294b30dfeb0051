"""Cores in loops of other people: other optimisers, averages, precisions, modes, and a sloppy batch."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from separatrix import nn as layers
from separatrix.core import DivergenceWarning, InvalidInput, spawn
from separatrix.matrices import spectral_distance
from separatrix.nn import AbstractRecurrent, orthogonality_error
from separatrix.nn.orthogonal import optimiser_steps
from separatrix.nn.orthogonal.algebra import skew

Optimisers = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]

OPTIMISERS: dict[str, Optimisers] = {
    "momentum": lambda given: torch.optim.SGD(given, lr=0.01, momentum=0.9),
    "adam": lambda given: torch.optim.Adam(given, lr=1e-2),
    "decay": lambda given: torch.optim.AdamW(given, lr=1e-2, weight_decay=0.1),
    "line search": lambda given: torch.optim.LBFGS(given, max_iter=4, line_search_fn="strong_wolfe"),
}


def train(core: nn.Module, optimiser: torch.optim.Optimizer, n_steps: int = 50) -> list[float]:
    """In closures, since line searches want them; gradients clipped as usual."""
    dtype = next(core.parameters()).dtype
    x = torch.randn(6, 8, 3, generator=spawn(0, "x")).to(dtype)
    target = torch.randn(6, 8, core.output_size, generator=spawn(0, "target")).to(dtype)  # type: ignore[arg-type]

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss: Tensor = (core(x)[0] - target).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(core.parameters(), 1.0)
        return loss

    return [float(optimiser.step(closure).detach()) for _ in range(n_steps)]  # type: ignore[arg-type, attr-defined]


@pytest.mark.sampled(1, each="block")
@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize("block", ["strict", "complete"])
def test_the_spectrum_is_gamma_and_theta_after_any_optimiser(block: Any, kind: str) -> None:
    core = layers.NonNormalRNN(3, 10, block, dtype=torch.float64)
    losses = train(core, OPTIMISERS[kind](core.parameters()))
    assert losses[-1] < 0.9 * losses[0]
    gamma, theta = core.matrix.gamma.detach(), core.matrix.theta.detach()
    pairs = torch.polar(gamma, theta) if bool((gamma > 0).all()) else gamma * torch.exp(1j * theta)
    found = torch.linalg.eigvals(core.recurrent().detach())
    assert float(spectral_distance(found, torch.cat([pairs, pairs.conj()]))) < 1e-9
    assert bool(core.matrix.feedforward.any())
    assert block == "strict" or bool(core.matrix.kappa.any())
    for twin in (copy.deepcopy(core), layers.NonNormalRNN(3, 10, block, dtype=torch.float64)):
        twin.load_state_dict(core.state_dict())
        assert float(spectral_distance(torch.linalg.eigvals(twin.recurrent().detach()), found)) < 1e-9


def test_a_line_search_descends_as_far_as_without_rebasing() -> None:
    """The base used to move between the calls of one search, which then never found its way."""
    ends = []
    for rebase in (1, None):
        core = layers.OrthogonalRNN(3, 8, layers.Exp(8, rebase), dtype=torch.float64)
        optimiser = torch.optim.LBFGS(core.parameters(), max_iter=8, line_search_fn="strong_wolfe")
        losses = train(core, optimiser, 20)
        assert all(after <= before + 1e-9 for before, after in itertools.pairwise(losses))
        ends.append(losses[-1])
    assert ends[0] < 1.05 * ends[1]


def test_closures_of_other_optimisers_still_absorb_once_a_step() -> None:
    core = layers.ExpRNN(3, 6)
    train(core, torch.optim.Adam(core.parameters(), lr=1e-2), 7)
    assert int(core.matrix.map.n_moved) == 6  # type: ignore[arg-type]
    assert optimiser_steps.running_step() is None


def test_a_step_behind_the_back_of_the_version_counter_is_absorbed_too() -> None:
    core = layers.ExpRNN(3, 6)
    core(torch.ones(1, 2, 3))
    core.matrix.tangent.data.fill_(0.01)  # type: ignore[union-attr]
    expected = torch.linalg.matrix_exp(skew(torch.full((15,), 0.01), 6))
    wanted = core.matrix.map.base @ expected  # type: ignore[operator]
    assert torch.allclose(core.recurrent(), wanted, atol=1e-6)
    assert not bool(core.matrix.tangent.any())  # type: ignore[operator, union-attr]


def test_a_step_that_fails_does_not_stop_the_next_ones() -> None:
    core = layers.ExpRNN(3, 6)
    optimiser = torch.optim.Adam(core.parameters(), lr=1e-2)

    def fails() -> float:
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        optimiser.step(fails)
    train(core, optimiser, 5)
    assert int(core.matrix.map.n_moved) == 4  # type: ignore[arg-type]


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("name", layers.ORTHOGONAL_MAPS)
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averages_of_weights_stay_orthogonal(name: str, use_buffers: bool) -> None:
    core = layers.OrthogonalRNN(3, 8, name)
    average = AveragedModel(core, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=use_buffers)
    optimiser = torch.optim.Adam(core.parameters(), lr=1e-2)
    for _ in range(10):
        train(core, optimiser, 1)
        average.update_parameters(core)
    if name == "urnn" and use_buffers:  # torch cuts a permutation to pieces
        with pytest.raises(InvalidInput, match="leave buffers out"):
            average.module.recurrent()  # type: ignore[operator]
        return
    found = average.eval().module.recurrent().detach()  # type: ignore[operator]
    assert core.matrix.map.in_manifold(found)  # type: ignore[operator]
    if name == "exp" and use_buffers:  # the average is one: it lags behind
        assert float((found - core.recurrent().detach()).abs().max()) > 1e-3


def test_a_base_of_coarser_precision_is_brought_back_and_a_good_one_is_left_alone() -> None:
    core = layers.ExpRNN(3, 8)
    train(core, torch.optim.Adam(core.parameters(), lr=1e-2), 5)
    coarse = {key: value.bfloat16().float() for key, value in core.state_dict().items()}
    twin, same = layers.ExpRNN(3, 8), layers.ExpRNN(3, 8)
    twin.load_state_dict({**core.state_dict(), **{key: coarse[key] for key in coarse if key.endswith("base")}})
    same.load_state_dict(core.state_dict())
    assert orthogonality_error(twin.eval().recurrent()) < 2e-5
    assert torch.equal(same.eval().recurrent(), core.eval().recurrent())


@pytest.mark.parametrize(
    "make", [lambda n: layers.NonNormalRNN(3, n), lambda n: layers.OrthogonalRNN(3, n, "cayley"),
             lambda n: layers.OrthogonalRNN(3, n, "lie_u")]
)  # fmt: skip
def test_a_network_made_or_run_in_inference_mode_does_not_spoil_others(make: Callable[[int], nn.Module]) -> None:
    with torch.inference_mode():
        make(14)(torch.zeros(1, 2, 3))
    core = make(14)
    core(torch.ones(1, 2, 3))[0].sum().backward()
    assert all(parameter.grad is not None for parameter in core.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", layers.ORTHOGONAL_MAPS)
def test_half_precision_is_right_or_refused(name: str, dtype: torch.dtype) -> None:
    core = layers.OrthogonalRNN(3, 8, name)
    if core.is_complex:
        with pytest.raises(InvalidInput, match="float32 or float64"):
            layers.OrthogonalRNN(3, 8, name, dtype=dtype)
        with pytest.raises(InvalidInput, match="float32 or float64"):
            core.to(dtype)(torch.zeros(1, 2, 3, dtype=dtype))
        return
    for half in (core.to(dtype), layers.OrthogonalRNN(3, 8, name, dtype=dtype)):
        train(half, torch.optim.SGD(half.parameters(), lr=0.01), 5)
        assert half.matrix.map.in_manifold(half.recurrent().detach())  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_spectrum_of_a_non_normal_network_in_half_precision(dtype: torch.dtype) -> None:
    core = layers.NonNormalRNN(3, 6, "complete").to(dtype)
    found = torch.linalg.eigvals(core.recurrent().detach().double())
    assert float(spectral_distance(core.eigenvalues().to(found.dtype), found)) < 8 * torch.finfo(dtype).eps
    assert core.eigenvalues().dtype == torch.complex64


def test_padding_may_hold_anything_and_lengths_may_be_a_list() -> None:
    core, x = layers.ExpRNN(3, 6), torch.randn(2, 4, 3, generator=spawn(0, "x"))
    gradients = []
    for padding in (0.0, float("nan"), float("inf")):
        x[0, 2:] = padding
        core.zero_grad()
        output, _ = inspect.unwrap(AbstractRecurrent.forward)(core, x, None, [2, 4])
        output.square().sum().backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in core.parameters()]))  # type: ignore[union-attr]
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


@pytest.mark.parametrize(
    ("x", "h_0", "message"),
    [
        (torch.zeros(1, 2, 3, dtype=torch.complex64), None, "x must be real"),
        (torch.zeros(1, 2, 3), torch.zeros(1, 1, 6, dtype=torch.complex64), "h_0 must be real"),
        (torch.zeros(1, 2, 3), (torch.zeros(1, 1, 6),) * 2, "h_0 must have shape .* got tuple"),
    ],
)
def test_what_would_be_cut_off_in_silence_is_refused(x: Tensor, h_0: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        inspect.unwrap(AbstractRecurrent.forward)(layers.ExpRNN(3, 6), x, h_0)


def test_a_complex_basis_or_a_whole_number_precision_is_refused() -> None:
    with pytest.raises(InvalidInput, match="basis must be a map to real orthogonal matrices"):
        layers.NonNormalRNN(3, 6, basis="lie_u")
    with pytest.raises(InvalidInput, match="dtype must be a real floating-point precision"):
        layers.ExpRNN(3, 6, dtype=torch.int32)


class FreeMatrix(nn.Module):
    """The same network with nothing between the optimiser and its matrix."""

    def __init__(self, like: layers.NonNormalRNN) -> None:
        super().__init__()
        self.matrix = nn.Parameter(like.recurrent().detach().clone())
        self.entering = nn.Parameter(like.input_weight.detach().clone())
        self.bias = nn.Parameter(like.bias.detach().clone())
        self.output_size = like.output_size

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, states = x.new_zeros(len(x), len(self.matrix)), []
        for drive in (x @ self.entering.mT).unbind(1):
            h = layers.modrelu(drive + h @ self.matrix.mT, self.bias)
            states.append(h)
        return torch.stack(states, 1), h


@pytest.mark.filterwarnings("ignore::separatrix.core.DivergenceWarning")
@pytest.mark.parametrize("clip", [None, 1.0])
def test_too_long_a_step_overflows_with_or_without_rebasing_and_clipping_prevents_it(clip: float | None) -> None:
    """Not a fault of the parametrisation: a free matrix from the same start overflows too."""
    x, target = torch.randn(4, 30, 3, generator=spawn(0, "x")), torch.randn(4, 30, 16, generator=spawn(0, "t"))
    cores: dict[str, nn.Module] = {
        str(rebase): layers.NonNormalRNN(3, 16, basis=layers.Exp(16, rebase)) for rebase in (1, None)
    }
    cores["free"] = FreeMatrix(layers.NonNormalRNN(3, 16))
    ends = {}
    for name, core in cores.items():
        optimiser = torch.optim.SGD(core.parameters(), lr=1.0 if clip is None else 0.01, momentum=0.9)
        for _ in range(12):
            optimiser.zero_grad()
            (core(x)[0] - target).square().mean().backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(core.parameters(), clip)
            optimiser.step()
        ends[name] = bool(torch.isfinite((core(x)[0] - target).square().mean()))
    assert set(ends.values()) == {clip is not None}


def test_what_overflowed_is_told_once_and_the_last_good_base_is_kept() -> None:
    core = layers.NonNormalRNN(3, 6)
    optimiser = torch.optim.SGD(core.parameters(), lr=0.01)
    train(core, optimiser, 3)
    (core(torch.ones(1, 4, 3))[0].sum() * float("inf")).backward()
    optimiser.step()
    with pytest.warns(DivergenceWarning, match=r"after 3 moves .* not finite.*Clip gradients"):
        assert bool(core.recurrent().isnan().any())
    assert bool(core.recurrent().isnan().any())  # no second warning: the suite would make it an error
    basis = core.matrix.basis
    with torch.no_grad():
        basis.tangent.zero_()  # type: ignore[operator, union-attr]
    assert orthogonality_error(basis()) < 2e-6
