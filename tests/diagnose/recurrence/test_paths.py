"""Gradients by paths: their sum is autograd's, their parts are those of a polynomial, and chains are the strongest."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose import gradient_paths
from separatrix.nn import MemRNN, RelLSTM, RelRNN
from separatrix.theory import uniform_attention_coefficients


def inputs(time: int = 12) -> Tensor:
    return torch.randn(2, time, 3, generator=seeded(0), dtype=torch.float64)


@pytest.mark.parametrize("detached", [False, True], ids=["all", "detached"])
@pytest.mark.parametrize("kind", [RelRNN, RelLSTM])
def test_degrees_sum_to_the_gradient_of_autograd(kind: Any, detached: bool) -> None:
    network = kind(3, 4, n_buffer=3, n_relevant=2, detach_memory=detached, dtype=torch.float64)
    x, weight = inputs(), torch.randn(4, generator=seeded(1), dtype=torch.float64)
    found = gradient_paths(network, x, lambda h: (h[:, -3:] @ weight).square().sum(), n_degrees=12)
    assert found.remainder < 1e-12
    torch.testing.assert_close(found.degrees.sum(0), found.total, rtol=1e-12, atol=1e-14)

    plain = kind(3, 4, n_buffer=3, n_relevant=2, detach_memory=detached, memory="store", dtype=torch.float64)
    plain.load_state_dict(network.state_dict())
    bump = torch.zeros(12, 2, 4, dtype=torch.float64, requires_grad=True)
    cell = plain._cell

    def bumped(bias: Any) -> Any:
        made, steps = cell(bias), iter(bump.unbind(0))
        advance = made.advance
        made.advance = lambda pre, held: (lambda out: (out[0] + next(steps), out[1]))(advance(pre, held))
        return made

    plain._cell = bumped
    value = (plain(x)[0][:, -3:] @ weight).square().sum()
    torch.testing.assert_close(found.total, torch.autograd.grad(value, bump)[0], rtol=1e-12, atol=1e-14)


def test_parts_under_even_attention_are_the_coefficients_of_the_theory() -> None:
    network = MemRNN(3, 4, mix="paper", nonlinearity="tanh", log_attention=True, dtype=torch.float64)
    with torch.no_grad():
        network.alignment_vector.zero_()  # even attention
        network.matrix.mul_(1e-3)  # so small that tanh is linear
    x = 1e-6 * inputs(6)
    found = gradient_paths(network, x, n_degrees=6)
    by_end = found.degrees[0, -1] * 6 / 7  # a + b/6 = 7/6 of the random direction
    for t in (1, 3):
        chi = uniform_attention_coefficients(t, 6 - t)
        for s, coefficient in enumerate(chi):
            expected = float(coefficient) * by_end @ torch.linalg.matrix_power(network.matrix.detach(), s)
            torch.testing.assert_close(found.degrees[s, t - 1], expected, rtol=1e-6, atol=0)


def test_chains_are_those_of_an_exhaustive_search() -> None:
    network = RelRNN(3, 4, n_buffer=2, n_relevant=2, dtype=torch.float64)
    with torch.no_grad():
        network.alignment_vector.mul_(6)
    x, n = inputs(8), 8
    for only, step, threshold in itertools.product((False, True), (0, 2), (0.01, 0.2)):
        found = gradient_paths(network, x, step=step, threshold=threshold, attention_only=only)
        for row, chain in enumerate(found.dependencies):
            factor = 0.5 * found.attention[row] + (0 if only else 0.5) * torch.eye(n).double()
            best: dict[int, float] = {}
            for degree in range(n):
                for places in itertools.combinations(range(n - 1), degree):
                    ends, starts = [*places, n - 1], [step, *[place + 1 for place in places]]
                    product = math.prod(float(factor[k, j]) for j, k in zip(starts, ends, strict=True))
                    best[degree] = max(best.get(degree, 0.0), product)
            wanted = next((degree for degree in range(n) if best[degree] >= threshold), None)
            assert (None if chain is None else chain.degree) == wanted
            if chain is not None:
                assert abs(chain.product - best[chain.degree]) < 1e-12
                assert (chain.hops, chain.chain[-1]) == (chain.degree + 1, n - 1)


def test_attention_maps_and_sparsity() -> None:
    network = RelRNN(3, 4, n_buffer=2, n_relevant=2)
    found = gradient_paths(network, inputs().float())
    torch.testing.assert_close(found.attention.sum(-1), torch.ones(2, 12))
    assert not found.attention.triu(1).any()
    assert found.attended.max() <= 4
    assert bool((found.effective <= found.attended + 1e-3).all())
    assert found.log_norms.shape == (12,)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InvalidInput, match="LSTM does not"):
        gradient_paths(nn.LSTM(3, 4, batch_first=True), inputs().float())
    with pytest.raises(InvalidInput, match="log_attention=True"):
        gradient_paths(MemRNN(3, 4), inputs().float())
    with pytest.raises(InvalidInput, match="step must be below the 12 steps"):
        gradient_paths(RelRNN(3, 4), inputs().float(), step=12)
