from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from separatrix.core import InvalidInput, SeparatrixError
from separatrix.dynamics import (
    JacobianAt,
    NewtonKrylov,
    find_equilibrium,
    jacobian_product,
    non_normality,
    ritz_values,
    spectral_abscissa,
    spectral_norm,
    spectral_radius,
    transposed_product,
)
from separatrix.matrices import GOE, Gaussian, Haar
from stranger_operations import DetachedTanh, OnceTanh


def linear(matrix: Tensor) -> object:
    return lambda z: z @ matrix.mT


def point(dim: int, rows: int = 2) -> Tensor:
    return torch.zeros(rows, dim, dtype=torch.float64)


def test_radius_of_a_scaled_haar_matrix_is_its_scale(generator: torch.Generator) -> None:
    matrix = Haar().sample(256, 0.81, generator=generator)
    radius = spectral_radius(linear(matrix), point(256, rows=3))  # type: ignore[arg-type]
    assert torch.allclose(radius, torch.full((3,), 0.9, dtype=torch.float64), atol=5e-3)


@pytest.mark.parametrize("family", [Gaussian(), GOE()])
def test_radius_of_random_matrices_agrees_with_dense_eigenvalues(family: object, generator: torch.Generator) -> None:
    matrix = family.sample(200, 0.5, generator=generator)  # type: ignore[attr-defined]
    exact = torch.linalg.eigvals(matrix).abs().max()
    radius = spectral_radius(linear(matrix), point(200))  # type: ignore[arg-type]
    assert torch.allclose(radius, exact.expand(2), rtol=2e-2)  # two percent: a Krylov space of 40 in dimension 200


def test_small_jacobians_are_solved_exactly(generator: torch.Generator) -> None:
    matrices = torch.randn(5, 9, 9, generator=generator, dtype=torch.float64)
    z = torch.randn(5, 9, generator=generator, dtype=torch.float64)

    def cell(z: Tensor) -> Tensor:
        return torch.tanh((matrices @ z.unsqueeze(-1)).squeeze(-1))

    slope = 1 - cell(z).square()
    jacobians = slope.unsqueeze(-1) * matrices
    eigenvalues = torch.linalg.eigvals(jacobians)
    singular = torch.linalg.svdvals(jacobians)[:, 0]
    assert torch.allclose(spectral_radius(cell, z), eigenvalues.abs().amax(-1), rtol=1e-8)
    assert torch.allclose(spectral_abscissa(cell, z), eigenvalues.real.amax(-1), rtol=1e-8)
    assert torch.allclose(spectral_norm(cell, z, power=300), singular, rtol=1e-3)
    assert torch.allclose(non_normality(cell, z), singular / eigenvalues.abs().amax(-1), rtol=1e-2)


def test_non_normality_is_one_for_orthogonal_and_large_for_a_delay_line(generator: torch.Generator) -> None:
    orthogonal = Haar().sample(30, 0.49, generator=generator)
    assert torch.allclose(non_normality(linear(orthogonal), point(30)), torch.ones(2, dtype=torch.float64), rtol=1e-6)  # type: ignore[arg-type]
    delay = torch.diag(torch.ones(29, dtype=torch.float64), 1) + 0.1 * torch.eye(30, dtype=torch.float64)
    assert bool((non_normality(linear(delay), point(30)) > 2).all())  # type: ignore[arg-type]


def test_abscissa_separates_a_period_two_instability_from_a_loss_of_the_equilibrium() -> None:
    matrix = torch.diag(torch.tensor([-1.4, 0.2], dtype=torch.float64))
    assert torch.allclose(spectral_radius(linear(matrix), point(2)), torch.tensor(1.4, dtype=torch.float64))  # type: ignore[arg-type]
    assert torch.allclose(spectral_abscissa(linear(matrix), point(2)), torch.tensor(0.2, dtype=torch.float64))  # type: ignore[arg-type]


def test_a_nan_in_one_sample_leaves_the_others_right(generator: torch.Generator) -> None:
    matrix = Haar().sample(12, 0.25, generator=generator)

    def poisoned(z: Tensor) -> Tensor:
        image = z @ matrix.mT
        return torch.cat([image[:1] * torch.nan, image[1:]])

    radius = spectral_radius(poisoned, point(12, rows=3))
    assert bool(radius[0].isnan())
    assert torch.allclose(radius[1:], torch.full((2,), 0.5, dtype=torch.float64))


def test_the_same_call_gives_the_same_number_and_the_global_stream_is_untouched(generator: torch.Generator) -> None:
    matrix = Gaussian().sample(80, 0.5, generator=generator)
    state = torch.get_rng_state()
    first, second = (spectral_radius(linear(matrix), point(80)) for _ in range(2))  # type: ignore[arg-type]
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_leading_axes_are_kept_and_bad_counts_refused() -> None:
    z = torch.zeros(2, 3, 4, dtype=torch.float64)
    assert spectral_norm(torch.tanh, z, batch_dims=2).shape == (2, 3)
    with pytest.raises(InvalidInput, match="power must be an integer of at least 2"):
        spectral_radius(torch.tanh, z, power=1)
    with pytest.raises(InvalidInput, match="krylov must be an integer of at least 1"):
        spectral_abscissa(torch.tanh, z, krylov=0)


def attention(z: Tensor) -> Tensor:
    """Tokens that look at each other, by the fused kernel, which has no forward derivative."""
    return 0.5 * functional.scaled_dot_product_attention(z, z, z) + 0.1 * z


def dense_jacobian(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    size = z.numel()
    return torch.autograd.functional.jacobian(function, z).reshape(size, size)  # type: ignore[no-untyped-call,no-any-return]


def test_blocks_without_forward_derivatives_have_spectra(generator: torch.Generator) -> None:
    z = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    for row in range(2):
        dense = dense_jacobian(lambda one: attention(one[None])[0], z[row])
        eigenvalues, norm = torch.linalg.eigvals(dense), torch.linalg.matrix_norm(dense, ord=2)
        assert float(spectral_radius(attention, z)[row]) == pytest.approx(float(eigenvalues.abs().max()), rel=1e-8)
        assert float(spectral_abscissa(attention, z)[row]) == pytest.approx(float(eigenvalues.real.max()), rel=1e-8)
        assert float(spectral_norm(attention, z, power=200)[row]) == pytest.approx(float(norm), rel=1e-4)


def test_tokens_are_no_samples(generator: torch.Generator) -> None:
    z = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    assert spectral_radius(attention, z).shape == (2,)
    for tool in (spectral_radius, spectral_norm, spectral_abscissa, non_normality):
        with pytest.raises(InvalidInput, match=r"sample \d depends on other samples of the batch.*batch_dims=2"):
            tool(attention, z, batch_dims=2)
    whole = torch.linalg.eigvals(dense_jacobian(attention, z)).abs().max()
    assert float(spectral_radius(attention, z, batch_dims=0)) == pytest.approx(float(whole), rel=1e-8)


def test_samples_coupled_by_their_mean_are_named() -> None:
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    with pytest.raises(InvalidInput, match="depends on other samples"):
        spectral_radius(lambda z: torch.tanh(z - z.mean(0)), z)
    with pytest.raises(InvalidInput, match=r"got shape \(3,\).*batch_dims=0 makes all of z one state"):
        spectral_radius(torch.tanh, z[0])


class Cubed(torch.autograd.Function):
    """A stranger's operation in the old form: no forward mode, no torch.func."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        out: Tensor = gradients[0] * 3 * x**2
        return out


def test_products_fall_back_to_double_backward(generator: torch.Generator) -> None:
    z, v = torch.randn(2, 2, 3, 4, generator=generator, dtype=torch.float64)
    expected = (dense_jacobian(attention, z) @ v.flatten()).view_as(z)
    assert torch.allclose(jacobian_product(attention, z, v), expected)
    mapped = torch.func.vmap(lambda v: jacobian_product(attention, z, v))(torch.stack([v, 2 * v]))
    assert torch.allclose(mapped[1], 2 * expected)
    assert torch.allclose(jacobian_product(Cubed.apply, z, v), 3 * z**2 * v)
    assert torch.allclose(transposed_product(Cubed.apply, z, v), 3 * z**2 * v)
    constant = jacobian_product(lambda z: torch.ones_like(z), z, v)
    assert bool((constant == 0).all())


def test_newton_finds_equilibria_of_attention(generator: torch.Generator) -> None:
    x = torch.randn(2, 12, generator=generator, dtype=torch.float64)

    def cell(z: Tensor) -> Tensor:
        return attention(z.view(2, 3, 4)).flatten(1) + x

    solution = find_equilibrium(cell, NewtonKrylov(tol=1e-10), torch.zeros_like(x))
    assert torch.allclose(cell(solution.value), solution.value, atol=1e-9)


@pytest.mark.parametrize("samples", [2, 5, 6, 8, 12])
def test_a_sample_that_reads_any_other_one_is_named(samples: int) -> None:
    z = torch.ones(samples, 3, dtype=torch.float64)
    for reader in range(samples):
        for read in set(range(samples)) - {reader}:

            def coupled(z: Tensor, reader: int = reader, read: int = read) -> Tensor:
                return 0.5 * z + 0.1 * functional.one_hot(torch.tensor(reader), samples).to(z).unsqueeze(1) * z[read]

            with pytest.raises(InvalidInput, match=f"sample {reader} depends on other samples"):
                spectral_norm(coupled, z)


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_tokens_that_look_at_distant_ones_are_no_samples(stride: int, generator: torch.Generator) -> None:
    z = torch.randn(2, 8, 3, generator=generator, dtype=torch.float64)
    with pytest.raises(InvalidInput, match="depends on other samples"):
        spectral_radius(lambda z: 0.5 * z + 0.2 * z.roll(stride, 1), z, batch_dims=2)


@pytest.mark.parametrize(
    "eigenvalues",
    [[-0.5] * 6, [-3.0, -3.0, -2.0, -2.0, -2.0, -3.0], [0.0] * 6, [-1.0, -1.0, -1.0, -1.0, -1.0, -0.25]],
)
@pytest.mark.parametrize("krylov", [3, 60])
def test_abscissa_of_repeated_eigenvalues_is_one_of_them(
    eigenvalues: list[float], krylov: int, generator: torch.Generator
) -> None:
    basis = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))[0]
    matrix = basis @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ basis.mT
    found = spectral_abscissa(linear(matrix), point(6), krylov=krylov)  # type: ignore[arg-type]
    assert torch.allclose(found, torch.full_like(found, max(eigenvalues)), atol=1e-12)


def test_abscissa_of_turning_planes_that_all_decay_is_negative() -> None:
    plane = torch.tensor([[-0.5, -1.0], [1.0, -0.5]], dtype=torch.float64)
    found = spectral_abscissa(linear(torch.block_diag(*[plane] * 4)), point(8))  # type: ignore[arg-type]
    assert torch.allclose(found, torch.full_like(found, -0.5), atol=1e-12)


def test_every_ritz_value_of_a_whole_space_is_an_eigenvalue_with_its_multiplicity(generator: torch.Generator) -> None:
    eigenvalues = torch.tensor([-1.0, -1.0, 0.5, 0.5, 0.5, 2.0], dtype=torch.float64)
    change = torch.randn(6, 6, generator=generator, dtype=torch.float64) + 3 * torch.eye(6, dtype=torch.float64)
    matrix = change @ torch.diag(eigenvalues) @ torch.linalg.inv(change)
    jacobian = JacobianAt(linear(matrix), point(6, rows=1))  # type: ignore[arg-type]
    values = ritz_values(jacobian, jacobian.random_directions(generator), 6)[0]
    assert torch.allclose(values.real.sort().values, eigenvalues, atol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1, -0.3])
def test_a_small_delay_line_has_the_spectrum_of_its_diagonal(decay: float) -> None:
    """One eigenvalue for thirty: an orthogonal change of basis would spread it over a circle of radius 0.28."""
    delay = torch.diag(torch.ones(29, dtype=torch.float64), 1) + decay * torch.eye(30, dtype=torch.float64)
    radius = spectral_radius(linear(delay), point(30))  # type: ignore[arg-type]
    abscissa = spectral_abscissa(linear(delay), point(30))  # type: ignore[arg-type]
    assert torch.allclose(radius, torch.full_like(radius, abs(decay)), atol=1e-14)
    assert torch.allclose(abscissa, torch.full_like(abscissa, decay), atol=1e-14)
    if decay == 0:
        assert bool(non_normality(linear(delay), point(30)).isinf().all())  # type: ignore[arg-type]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("krylov", [4, 40])
def test_spectra_of_an_ensemble_of_weights_can_be_mapped(krylov: int, generator: torch.Generator) -> None:
    weights = torch.randn(3, 8, 8, generator=generator, dtype=torch.float64)
    z = torch.randn(2, 8, generator=generator, dtype=torch.float64)
    for measure in (
        lambda f: spectral_radius(f, z, krylov=krylov, power=400),
        lambda f: spectral_abscissa(f, z, krylov=2 * krylov),
        lambda f: spectral_norm(f, z, power=400),
    ):
        one_by_one = torch.stack([measure(lambda z, w=w: torch.tanh(z @ w)) for w in weights])  # type: ignore[no-untyped-call]
        mapped = torch.func.vmap(lambda w, measure=measure: measure(lambda z: torch.tanh(z @ w)))(weights)  # type: ignore[no-untyped-call]
        assert torch.allclose(mapped, one_by_one, rtol=1e-2)  # inside, the random start is another one


def test_states_without_entries_are_refused_by_every_measure() -> None:
    for measure in (spectral_radius, spectral_abscissa, spectral_norm):
        with pytest.raises(InvalidInput, match="z must not be empty"):
            measure(torch.tanh, torch.zeros(3, 0))


@pytest.mark.parametrize("operation", [OnceTanh, DetachedTanh])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_backward_that_cannot_be_differentiated_does_not_count_as_zero(
    operation: type[torch.autograd.Function], share: float, generator: torch.Generator
) -> None:
    z = torch.randn(2, 4, generator=generator, dtype=torch.float64)

    def stranger(z: Tensor) -> Tensor:
        image: Tensor = operation.apply(z)  # type: ignore[no-untyped-call]
        return image + share * z

    for tool in (spectral_radius, spectral_norm, spectral_abscissa):
        with pytest.raises(SeparatrixError, match="second derivatives, and this one has neither"):
            tool(stranger, z)


def test_newtons_method_does_not_take_a_derivative_that_is_lost_for_zero(generator: torch.Generator) -> None:
    z = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    with pytest.raises(SeparatrixError, match="marked as once_differentiable"):
        find_equilibrium(OnceTanh.apply, NewtonKrylov(), z)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_double_backward_of_tiny_and_huge_maps_is_believed(scale: float) -> None:
    z = torch.full((2, 3), 2.0, dtype=torch.float64)
    product = jacobian_product(lambda z: scale * Cubed.apply(z), z, torch.ones_like(z))  # type: ignore[no-untyped-call]
    assert torch.allclose(product / scale, torch.full_like(z, 12.0))


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float64, 1e200), (torch.float64, 1e-200), (torch.float32, 1e30)])
def test_spectra_have_the_unit_of_the_map(dtype: torch.dtype, scale: float, generator: torch.Generator) -> None:
    weight = torch.randn(12, 12, generator=generator, dtype=torch.float64).to(dtype)
    z = torch.zeros(2, 12, dtype=dtype)
    for measure in (
        lambda f: spectral_radius(f, z, krylov=6, power=10),
        lambda f: spectral_radius(f, z),
        lambda f: spectral_abscissa(f, z, krylov=6),
        lambda f: spectral_norm(f, z, power=10),
    ):
        unscaled, scaled = measure(lambda z: z @ weight), measure(lambda z: scale * (z @ weight))  # type: ignore[no-untyped-call]
        assert torch.allclose(scaled / scale, unscaled, rtol=1e-4)


def test_a_constant_map_has_no_spectrum_but_zero() -> None:
    for radius in (spectral_radius(torch.ones_like, point(3)), spectral_radius(torch.ones_like, point(3), krylov=2)):
        assert torch.equal(radius, torch.zeros(2, dtype=torch.float64))


def through_numpy(z: Tensor) -> Tensor:
    return torch.as_tensor(numpy.tanh(z.detach().numpy()))


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("hidden", [lambda z: torch.tanh(z.detach()), through_numpy])
def test_a_map_whose_derivative_is_lost_has_no_spectrum(hidden: Callable[[Tensor], Tensor], share: float) -> None:
    for tool in (spectral_radius, spectral_abscissa, spectral_norm):
        with pytest.raises(InvalidInput, match=r"misses \d+% of what they do \(sample 0\).*detached, leaves torch"):
            tool(lambda z: hidden(z) + share * z, point(4))


def test_kinks_jumps_and_gradients_put_in_their_place_are_no_lost_derivatives(generator: torch.Generator) -> None:
    weight = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    for function in (torch.relu, torch.sign, torch.round, functional.hardtanh, torch.abs):
        for tool in (spectral_radius, spectral_norm):
            assert bool(tool(lambda z, f=function: f(z @ weight), point(30)).isfinite().all())  # type: ignore[misc]
    straight = spectral_radius(lambda z: z + (torch.sign(z) - z).detach(), point(30))
    assert torch.allclose(straight, torch.ones(2, dtype=torch.float64))


def test_a_map_that_answers_differently_each_time_has_no_spectrum() -> None:
    for rate in (0.5, 0.01):
        with pytest.raises(InvalidInput, match="two different results for the same state"):
            spectral_radius(lambda z, rate=rate: functional.dropout(z, rate), point(16))  # type: ignore[misc]
    drawn_in_vain = spectral_radius(lambda z: 0.5 * z + 0 * torch.rand_like(z), point(3))
    assert torch.allclose(drawn_in_vain, torch.full((2,), 0.5, dtype=torch.float64))


def test_gradients_switched_off_inside_do_not_make_a_norm_of_zero() -> None:
    with pytest.raises(InvalidInput, match="not differentiable backwards as it is forwards"):
        spectral_norm(torch.no_grad()(torch.sin), point(3))
