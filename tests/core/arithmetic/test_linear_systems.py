"""Batches of large systems are solved rightly by several threads, where torch alone is wrong without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import inv, inv_ex, logabsdet, lu_factor_ex, solve, solve_ex

LARGE = 160


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def matrices(generator: torch.Generator, size: int = LARGE, dtype: torch.dtype = torch.float64) -> Tensor:
    noise = torch.randn(3, 1, size, size, generator=generator, dtype=dtype)
    return torch.eye(size, dtype=dtype) + 0.3 * noise / size**0.5


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
def test_many_large_systems_leave_no_residual(dtype: torch.dtype, generator: torch.Generator) -> None:
    a = matrices(generator, dtype=dtype)
    b = torch.randn(2, LARGE, 2, generator=generator, dtype=dtype)  # broadcasts to (3, 2)
    least = 1e-3 if dtype == torch.float32 else 1e-11
    factors, pivots = lu_factor_ex(a)
    for x in (solve(a, b), solve_ex(a, b)[0], inv(a) @ b, inv_ex(a)[0] @ b, torch.linalg.lu_solve(factors, pivots, b)):
        assert x.shape == (3, 2, LARGE, 2)
        assert float((a @ x - b).abs().max()) <= least
    assert solve_ex(a, b)[1].tolist() == [[0, 0]] * 3
    assert inv_ex(a)[1].tolist() == [[0]] * 3


@pytest.mark.usefixtures("two_threads")
def test_determinants_are_products_of_singular_values(generator: torch.Generator) -> None:
    a = matrices(generator)
    assert torch.allclose(logabsdet(a), torch.linalg.svdvals(a).log().sum(-1), atol=1e-9)


@pytest.mark.usefixtures("two_threads")
def test_vectors_and_gradients_are_as_in_torch(generator: torch.Generator) -> None:
    a, b = matrices(generator)[:, 0], torch.randn(3, LARGE, generator=generator, dtype=torch.float64)
    a.requires_grad_()
    x = solve(a, b)
    assert x.shape == b.shape
    assert float((a @ x.unsqueeze(-1) - b.unsqueeze(-1)).detach().abs().max()) <= 1e-11
    (slope,) = torch.autograd.grad(x.sum(), a)
    adjoint = torch.stack([torch.linalg.solve(one.T, torch.ones(LARGE, dtype=torch.float64)) for one in a.detach()])
    assert torch.allclose(slope, -adjoint.unsqueeze(-1) * x.detach().unsqueeze(-2), atol=1e-10)
    one_side = solve(a.detach(), b[0])
    assert torch.allclose(one_side[1], torch.linalg.solve(a.detach()[1], b[0]))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("function", [solve, lambda a, _: inv(a)])
def test_a_singular_matrix_is_refused_as_by_torch(
    function: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator
) -> None:
    a = matrices(generator)
    a[1] = 0.0
    with pytest.raises(torch.linalg.LinAlgError):
        function(a, a)
    assert (solve_ex(a, a)[1] != 0).flatten().tolist() == [False, True, False]
    assert (inv_ex(a)[1] != 0).flatten().tolist() == [False, True, False]


def test_small_systems_are_left_to_torch_bit_by_bit(generator: torch.Generator) -> None:
    a = matrices(generator, size=20)
    b = torch.randn(3, 1, 20, 4, generator=generator, dtype=torch.float64)
    assert torch.equal(solve(a, b), torch.linalg.solve(a, b))
    assert torch.equal(inv(a), torch.linalg.inv(a))
    mapped = torch.func.vmap(solve)(a, b)
    assert torch.allclose(mapped, solve(a, b))
