from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import spawn
from separatrix.nn import Exp, FullCapacity, OrthogonalMatrix, orthogonality_error
from separatrix.nn.orthogonal.rebased import corrected


def target(n: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(n, n, dtype=dtype, generator=spawn(0, "target"))


def test_plain_descent_is_the_multiplicative_update_of_the_full_capacity_network() -> None:
    held = OrthogonalMatrix(FullCapacity(4), None, generator=spawn(1, "w"), dtype=torch.float64)
    goal = target(4, torch.complex128)
    w = held().detach()
    optimiser = torch.optim.SGD(held.parameters(), lr=0.1)
    (held() - goal).abs().square().sum().backward()
    optimiser.step()
    g = 2 * (w - goal)
    a = g @ w.mH - w @ g.mH  # the direction of the erratum; the entries count it once, not twice, on the diagonal
    moved = held().detach()
    assert orthogonality_error(moved) < 1e-12
    # to first order in the rate the imaginary diagonal has half the speed of the rest: compare with its own algebra
    tangent = -0.1 * (a - 0.5 * torch.diag(a.diagonal()))
    identity = torch.eye(4, dtype=torch.complex128)
    assert torch.allclose(moved, torch.linalg.solve(identity - tangent / 2, (identity + tangent / 2) @ w), atol=1e-12)


def test_descent_descends_along_the_group() -> None:
    for chart in (Exp(5), FullCapacity(5)):
        held = OrthogonalMatrix(chart, None, generator=spawn(2, "w"), dtype=torch.float64)
        goal = target(5, torch.complex128 if chart.is_complex else torch.float64)
        optimiser = torch.optim.SGD(held.parameters(), lr=0.01)
        values = []
        for _ in range(100):
            optimiser.zero_grad()
            value = (held() - goal).abs().square().sum()
            value.backward()
            optimiser.step()
            values.append(value.item())
        assert all(later < earlier for earlier, later in itertools.pairwise(values))


def test_rebasing_every_step_and_never_agree_for_a_small_rate() -> None:
    ends = []
    for rebase in (1, 3, None):
        held = OrthogonalMatrix(Exp(5, rebase), "henaff", generator=spawn(3, "w"), dtype=torch.float64)
        optimiser = torch.optim.SGD(held.parameters(), lr=1e-4)
        start = held().detach().clone()
        for _ in range(200):
            optimiser.zero_grad()
            (held() - target(5, torch.float64)).square().sum().backward()
            optimiser.step()
        ends.append(held().detach())
    assert torch.allclose(ends[0], ends[1], atol=1e-3)  # both are the gradient flow up to the step
    assert float((ends[0] - start).abs().max()) > 0.05
    # without rebasing the metric is another one away from the identity; both came closer to the target
    before = float((start - target(5, torch.float64)).square().sum())
    assert all(float((end - target(5, torch.float64)).square().sum()) < before for end in ends)


def test_the_tangent_is_absorbed_only_in_training() -> None:
    held = OrthogonalMatrix(Exp(4), "haar", generator=spawn(4, "w"), dtype=torch.float64)
    with torch.no_grad():
        held.tangent.fill_(0.3)  # type: ignore[operator, union-attr]
    expected = held.eval()().detach()
    assert bool(held.tangent.any())  # type: ignore[operator, union-attr]
    assert torch.allclose(held.train()(), expected, atol=1e-12)
    assert not bool(held.tangent.any())  # type: ignore[operator, union-attr]
    assert torch.allclose(held.map.base, expected, atol=1e-12)  # type: ignore[arg-type]


def test_the_correction_brings_back_what_is_near_and_what_is_far() -> None:
    q = torch.linalg.qr(target(6, torch.float64))[0]
    noise = torch.randn(6, 6, dtype=torch.float64, generator=spawn(1, "noise"))
    assert orthogonality_error(corrected(q + 1e-5 * noise)) < 1e-8  # quadratic
    assert orthogonality_error(corrected(q + 0.3 * noise)) < 1e-12
    assert bool(torch.isnan(corrected(torch.full((2, 2), float("nan")))).all())


def test_gradients_by_hand_are_those_of_the_map() -> None:
    for chart in (Exp(5), FullCapacity(5)):
        chart.right_inverse(chart.sample(generator=spawn(5, "w")))
        n_free = 25 if chart.is_complex else 10
        zero = torch.zeros(n_free, dtype=torch.float64, requires_grad=True)
        base = chart.base_matrix
        weight = target(5, base.dtype)
        (expected,) = torch.autograd.grad((chart.moved(base, zero).conj() * weight).real.sum(), zero)
        assert torch.allclose(chart.tangent_gradient(base, weight), expected, atol=1e-12)


def test_rebasing_later_survives_a_state_dict() -> None:
    first, second = (OrthogonalMatrix(Exp(4, rebase=3), "haar", generator=spawn(s, "w")) for s in (0, 1))
    optimiser = torch.optim.SGD(first.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        first().sum().backward()
        optimiser.step()
    second.load_state_dict(first.state_dict())
    assert int(second.map.n_waiting) == int(first.map.n_waiting) == 2  # type: ignore[arg-type]
    assert torch.equal(second(), first())


@pytest.mark.parametrize("bad", [0, -1])
def test_wrong_intervals_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="rebase must be an integer of at least 1"):
        Exp(3, rebase=bad)


def test_size_one_has_nothing_to_learn() -> None:
    held = OrthogonalMatrix(Exp(1), None, generator=spawn(0, "w"))
    assert held().item() == 1.0
    assert isinstance(held.tangent, nn.Parameter)
    assert held.tangent.numel() == 0


@pytest.mark.parametrize("rebase", [1, 2, 3, None])
def test_several_passes_before_one_step_differentiate_at_one_place(rebase: int | None) -> None:
    """As in accumulated gradients: the base must not move between passes that no optimiser stands between."""
    held = OrthogonalMatrix(Exp(4, rebase), "haar", generator=spawn(5, "w"), dtype=torch.float64)
    goal = target(4, torch.float64)
    for _ in range(4):
        with torch.no_grad():
            held.tangent.add_(0.2)  # type: ignore[operator, union-attr]
        passes = [torch.autograd.grad((held() - goal).square().sum(), [*held.parameters()])[0] for _ in range(4)]
        assert all(torch.equal(passes[0], later) for later in passes[1:])
