"""What every step promises: its kernel is its formula, and its way back is the derivative of that formula."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core import ShapeError, spawn
from separatrix.nn.recurrent.steps.diagonal import DiagonalStep, GatedDiagonalStep
from separatrix.nn.recurrent.steps.elman import NONLINEARITIES, ElmanStep
from separatrix.nn.recurrent.steps.gated_step import GoruStep
from separatrix.nn.recurrent.steps.oscillator_step import OscillatorStep
from separatrix.nn.recurrent.steps.scan import plain_scan, scan
from separatrix.nn.recurrent.steps.step import AbstractStep

N, BATCH, TIME = 4, 3, 5
LENGTHS = torch.tensor([5, 2, 0])


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=spawn(seed, "steps", *shape))


class Squared(AbstractStep):
    """A stranger's step, a formula alone."""

    def advance(self, drive: Tensor, state: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
        return torch.sin(drive + state * state @ weights[0].mT)


COMPLEX = torch.complex128
BIAS = torch.tensor([-0.4, 0.3, 0.0, -0.05], dtype=torch.float64)
CASES: dict[str, tuple[AbstractStep, int, int, tuple[Tensor, ...], torch.dtype]] = {
    **{
        name: (ElmanStep(phi), N, N, (0.6 * draw(N, N), *((BIAS,) if phi.has_bias else ())), torch.float64)
        for name, phi in NONLINEARITIES.items()
    },
    "leaky": (ElmanStep(NONLINEARITIES["tanh"], keep=0.9, rate=0.2), N, N, (draw(N, N),), torch.float64),
    "leaky modrelu": (
        ElmanStep(NONLINEARITIES["modrelu"], keep=0.9, rate=0.2),
        N,
        N,
        (draw(N, N), BIAS),
        torch.float64,
    ),
    "complex modrelu": (ElmanStep(NONLINEARITIES["modrelu"]), N, N, (0.6 * draw(N, N, dtype=COMPLEX), BIAS), COMPLEX),
    "complex linear": (ElmanStep(NONLINEARITIES["linear"]), N, N, (0.5 * draw(N, N, dtype=COMPLEX),), COMPLEX),
    "diagonal": (DiagonalStep(), N, N, (0.5 * draw(N),), torch.float64),
    "complex diagonal": (DiagonalStep(), N, N, (0.5 * draw(N, dtype=COMPLEX),), COMPLEX),
    "gated diagonal": (GatedDiagonalStep(), 2 * N, N, (), torch.float64),
    "goru": (GoruStep(), 3 * N, N, (0.7 * draw(3 * N, N), BIAS), torch.float64),
    "oscillators": (OscillatorStep(0.3, 1.1, 0.7), N, 2 * N, (draw(N, 2 * N),), torch.float64),
    "stranger": (Squared(), N, N, (draw(N, N),), torch.float64),
}
FAST = [name for name, (step, _, _, weights, _) in CASES.items() if step.kernel(weights) is not None]


pytestmark = pytest.mark.sampled(4, across="case")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]


def arguments(case: Any, *, grad: bool = True) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    _, n_drive, n_state, weights, dtype = case
    drives = draw(TIME, BATCH, n_drive, seed=1, dtype=dtype)
    initial = draw(BATCH, n_state, seed=2, dtype=dtype)
    return (
        drives.requires_grad_(grad),
        initial.requires_grad_(grad),
        tuple(weight.clone().requires_grad_(grad) for weight in weights),
    )


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
def test_states_and_gradients_are_those_of_the_plain_loop(case: Any, lengths: Tensor | None) -> None:
    drives, initial, weights = arguments(case)
    step = case[0]
    fast = scan(step, drives, initial, weights, lengths)
    plain = plain_scan(step, drives, initial, weights, lengths)
    assert torch.allclose(fast, plain, rtol=1e-12, atol=1e-12)
    g = draw(*fast.shape, seed=3, dtype=fast.dtype)
    given = (drives, initial, *weights)
    for ours, theirs in zip(torch.autograd.grad(fast, given, g), torch.autograd.grad(plain, given, g), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
def test_states_and_gradients_are_ordinary_tensors(case: Any, lengths: Tensor | None) -> None:
    drives, initial, weights = arguments(case)
    states = scan(case[0], drives, initial, weights, lengths)
    found = torch.autograd.grad(states, (drives, initial, *weights), torch.ones_like(states))
    for tensor in (states, *found):  # one made in inference mode could not be changed or saved for a gradient
        assert not tensor.is_inference()
    for gradient in found:
        part = gradient.mul_(2).requires_grad_()
        (part * part).sum().abs().backward()


@pytest.mark.sampled(4)
def test_gradcheck(case: Any) -> None:
    drives, initial, weights = arguments(case)
    torch.autograd.gradcheck(lambda d, h, *w: scan(case[0], d, h, w, LENGTHS), (drives, initial, *weights))


@pytest.mark.sampled(4)
def test_second_derivatives_are_right(case: Any) -> None:
    drives, initial, weights = arguments(case)
    torch.autograd.gradgradcheck(lambda d, h, *w: scan(case[0], d[:2], h, w), (drives, initial, *weights))


def test_transforms_and_forward_mode(case: Any) -> None:
    drives, initial, weights = arguments(case, grad=False)
    step = case[0]
    if drives.is_complex():
        return  # jacobians of torch.func are of real functions

    def last(d: Tensor) -> Tensor:
        return scan(step, d, initial, weights)[-1].sum(0)

    backward, forward = torch.func.jacrev(last)(drives), torch.func.jacfwd(last)(drives)
    assert torch.allclose(backward, forward, atol=1e-10)
    two = torch.stack([drives, 2 * drives])
    mapped = torch.func.vmap(last)(two)
    assert torch.allclose(mapped[1], last(2 * drives), atol=1e-12)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(drives, torch.ones_like(drives))
        tangent = torch.autograd.forward_ad.unpack_dual(last(dual)).tangent
    assert torch.allclose(tangent, forward.sum((1, 2, 3)), atol=1e-10)


def test_samples_do_not_mix_and_stay_where_they_ended(case: Any) -> None:
    drives, initial, weights = arguments(case, grad=False)
    states = scan(case[0], drives, initial, weights, LENGTHS)
    alone = scan(case[0], drives[:2, 1:2], initial[1:2], weights)
    assert torch.allclose(states[:2, 1:2], alone, atol=1e-12)
    assert torch.equal(states[1, 1], states[4, 1])
    assert torch.equal(states[-1, 2], initial[2])


@pytest.mark.parametrize("name", FAST)
def test_only_what_needs_a_gradient_gets_one(name: str) -> None:
    drives, initial, weights = arguments(CASES[name], grad=False)
    drives.requires_grad_()
    (gradient,) = torch.autograd.grad(scan(CASES[name][0], drives, initial, weights).abs().sum(), drives)
    assert gradient.shape == drives.shape
    with torch.no_grad():
        assert not scan(CASES[name][0], drives, initial, weights).requires_grad


def test_the_cores_of_the_package_bring_kernels() -> None:
    assert set(CASES) - set(FAST) == {"stranger", "complex linear"}


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"drives must be \(time, batch, d\)"):
        inspect.unwrap(scan)(CASES["tanh"][0], torch.ones(3, 2, N), torch.ones(4, N), (torch.eye(N),))
