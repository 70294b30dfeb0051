from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.nn import modrelu


def test_zero_stays_zero_whatever_the_bias() -> None:
    x = torch.zeros(3, requires_grad=True)
    bias = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    value = modrelu(x, bias)
    assert value.tolist() == [0.0, 0.0, 0.0]
    value.sum().backward()
    assert x.grad is not None
    assert bias.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert bias.grad.tolist() == [0.0, 0.0, 0.0]


def test_sign_and_size() -> None:
    x = torch.tensor([-2.0, -0.5, 0.5, 3.0, -0.0])
    bias = torch.tensor([-1.0, -1.0, 0.25, 1.0, 1.0])
    assert modrelu(x, bias).tolist() == [-1.0, 0.0, 0.75, 4.0, 0.0]


def test_derivatives_are_one_and_the_sign_where_the_value_is_not_zero() -> None:
    x = torch.randn(200, dtype=torch.float64, generator=spawn(0, "x")).requires_grad_()
    bias = torch.randn(200, dtype=torch.float64, generator=spawn(1, "b")).requires_grad_()
    value = modrelu(x, bias)
    by_x, by_bias = torch.autograd.grad(value.sum(), (x, bias))
    assert torch.equal(by_x, (value != 0).double())
    assert torch.equal(by_bias, torch.sign(value))


def test_a_complex_number_keeps_its_phase() -> None:
    x = torch.tensor([3 + 4j, 0.3j, 0j])
    value = modrelu(x, torch.tensor([-1.0, -1.0, 1.0]))
    assert value[0].item() == pytest.approx((3 + 4j) * 4 / 5)
    assert value[1:].abs().tolist() == [0.0, 0.0]


def test_complex_derivatives_by_central_differences() -> None:
    x = torch.randn(6, dtype=torch.complex128, generator=spawn(0, "x")).requires_grad_()
    bias = torch.tensor([-0.3, 0.2, -0.1, 0.4, -5.0, 0.0], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(modrelu, (x, bias))


def test_a_complex_bias_is_refused() -> None:
    with pytest.raises(InvalidInput, match="bias must be real"):
        modrelu(torch.ones(2), torch.ones(2, dtype=torch.complex64))
