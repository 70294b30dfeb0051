"""Gradients under sparse attention, against brute force, and by alignment parameters, against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from helpers import checks, seeded
from separatrix.core import OutsideTheory
from separatrix.theory import alignment_gradient, single_attention_gradient, sparse_attention_bound


def influence(attended: list[list[int]], value: complex, mix: tuple[float, float]) -> list[complex]:
    """ds_k/dh_0 for one eigenvalue, where ``attended[k]`` are the states that step k attends to evenly; negative ones
    are from before."""
    by_hidden: list[complex] = [1.0]
    found: list[complex] = []
    for k, states in enumerate(attended):
        context = sum(by_hidden[j] for j in states if j >= 0) / len(states)
        found.append(mix[0] * by_hidden[k] + mix[1] * context)
        by_hidden.append(value * found[-1])
    return found


def least_degree(attended: list[list[int]], end: int) -> int | None:
    """Fewest recurrent steps of a path of attention hops from h_0 to s_end, by exhaustive search backwards."""
    reached, degree = {end}, 0
    while reached:
        hidden = {j for k in reached for j in attended[k] if j >= 0}
        if 0 in hidden:
            return degree
        reached, degree = {j - 1 for j in hidden if j > 0}, degree + 1
    return None


@checks(sparse_attention_bound, by="1000 random patterns of attention, followed state by state")
def test_the_bound_holds_for_every_pattern_and_is_reached() -> None:
    generator = seeded(0)
    least, printed_fails, count = float("inf"), 0, 0
    for _ in range(1000):
        kappa = int(torch.randint(1, 5, (), generator=generator))
        value, mix = [(0.05, (1.0, 1.0)), (0.3, (1.0, 1.0)), (1.5, (1.0, 1.0)), (0.3, (0.5, 0.5))][
            int(torch.randint(0, 4, (), generator=generator))
        ]
        attended = [torch.randint(-4, k + 1, (kappa,), generator=generator).unique().tolist() for k in range(8)]
        gradients = influence(attended, value, mix)
        for end, gradient in enumerate(gradients):
            degree = least_degree(attended, end)
            if degree is not None:
                bound = float(sparse_attention_bound(value, kappa, degree, mix))
                least, count = min(least, abs(gradient) / bound), count + 1
                printed_fails += abs(gradient) < kappa**-degree
    assert count > 2000
    assert 1 - 1e-12 <= least < 1.05
    assert printed_fails > count / 4  # one hop and the powers of lambda are missing in the document


@checks(single_attention_gradient, by="the same attention followed state by state")
@pytest.mark.parametrize("mix", [(1.0, 1.0), (0.5, 0.5), (0.3, 0.9)])
def test_attention_to_one_state(mix: tuple[float, float]) -> None:
    for value in (0.6, -0.7, 0.3 + 0.5j, 1.0):
        for degree, k in ((0, 0), (0, 9), (1, 5), (3, 3), (3, 12)):
            attended = [[-1]] * degree + [[degree]] * (k - degree + 1)
            expected = influence(attended, value, mix)[k]
            assert abs(complex(single_attention_gradient(value, k, degree, mix)) - expected) < 1e-13


@checks(alignment_gradient, by="autograd of a network by the parameters of its alignment")
def test_gradients_by_the_alignment_are_those_of_autograd() -> None:
    n, steps, mix = 4, 7, (0.6, 0.7)
    draw = lambda *shape: torch.randn(*shape, generator=seeded(sum(shape)), dtype=torch.float64)  # noqa: E731
    recurrent, entering, vector, query, key = draw(n, n) / 2, draw(steps, n), draw(n), draw(n, n), draw(n, n + 1)[:, 1:]
    parameters = [vector.requires_grad_(), query.requires_grad_(), key.requires_grad_()]

    def logit(s: Tensor, h: Tensor) -> Tensor:
        return vector @ torch.tanh(query @ s + key @ h)

    state, hidden, states, attention = torch.zeros(n, dtype=torch.float64), [], [], []
    for x in entering:
        hidden.append(torch.tanh(recurrent @ state + x))
        before = state
        weights = torch.stack([logit(before, h) for h in hidden]).softmax(0)
        state = mix[0] * hidden[-1] + mix[1] * (weights.unsqueeze(1) * torch.stack(hidden)).sum(0)
        states.append(state)
        attention.append((before.detach(), weights.detach()))
    loss = (torch.stack(states) * draw(steps, n)).sum()
    by_state = torch.stack(torch.autograd.grad(loss, states, retain_graph=True))
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
    seen = torch.stack(hidden).detach()
    weights, by_parameter = torch.zeros(steps, steps).double(), torch.zeros(steps, steps, len(expected)).double()
    for t, (before, row) in enumerate(attention):
        weights[t, : t + 1] = row
        for i in range(t + 1):
            grads = torch.autograd.grad(logit(before, seen[i]), parameters)
            by_parameter[t, i] = torch.cat([g.flatten() for g in grads])
    found = alignment_gradient(weights, seen.expand(steps, -1, -1), by_state, by_parameter, mix)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_nothing_is_claimed_for_eigenvalues_that_are_not_positive() -> None:
    for value in (-0.5, 0.5j):
        with pytest.raises(OutsideTheory, match="real and positive"):
            sparse_attention_bound(value, 2, 1)
