from __future__ import annotations

import math

import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.matrices import complex_schur_form, henrici, rotation_block, schur_parts

ROUNDING = 1e-12  # a backward-stable decomposition of a matrix of norm about 10 in float64


def random_matrices(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10_000))
def test_parts_build_the_matrix_again(size: int, seed: int) -> None:
    matrix = random_matrices(seed, size, size)
    parts = schur_parts(matrix)
    assert torch.allclose(parts.basis @ parts.schur_form @ parts.basis.mT, matrix, atol=ROUNDING)
    assert torch.allclose(parts.basis.mT @ parts.basis, torch.eye(size, dtype=torch.float64), atol=ROUNDING)
    assert int(parts.block_sizes.sum()) == size


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10_000))
def test_blocks_hold_the_spectrum_in_order_of_falling_modulus(size: int, seed: int) -> None:
    matrix = random_matrices(seed, size, size)
    parts = schur_parts(matrix)
    moduli = torch.repeat_interleave(parts.gamma, parts.block_sizes)
    expected = torch.linalg.eigvals(matrix).abs().sort(descending=True).values
    assert torch.allclose(moduli, expected, atol=1e-7)  # eigenvalues of random matrices may be ill-conditioned


def test_feedforward_part_is_zero_on_and_above_the_blocks() -> None:
    parts = schur_parts(random_matrices(1, 8, 8))
    assert not bool(parts.feedforward.triu().any())
    inside = parts.rotations != 0
    assert not bool((parts.feedforward[inside] != 0).any())


def test_each_pair_block_is_rebuilt_from_its_three_numbers() -> None:
    parts = schur_parts(random_matrices(2, 10, 10))
    row = 0
    for size, gamma, theta, kappa in zip(parts.block_sizes, parts.gamma, parts.theta, parts.kappa, strict=True):
        block = parts.rotations[row : row + size, row : row + size]
        if size == 2:
            assert torch.allclose(rotation_block(gamma, theta, kappa), block, atol=ROUNDING)
        else:
            assert torch.allclose(gamma * torch.cos(theta), block[0, 0], atol=ROUNDING)
        row += int(size)


def test_rotation_block_has_the_documented_numbers() -> None:
    gamma, theta, kappa = (torch.tensor(value, dtype=torch.float64) for value in (0.9, 1.1, 0.4))
    block = rotation_block(gamma, theta, kappa)
    eigenvalues = torch.linalg.eigvals(block)
    assert eigenvalues.real[0].item() == pytest.approx(0.408237, abs=1e-6)
    assert eigenvalues.imag.abs()[0].item() == pytest.approx(0.802087, abs=1e-6)
    assert henrici(block).item() == pytest.approx(0.658918, abs=1e-6)
    assert henrici(block).item() == pytest.approx(2 * 0.9 * math.sin(1.1) * math.sinh(0.4), abs=1e-12)
    assert torch.linalg.matrix_norm(block, 2).item() == pytest.approx(1.287866, abs=1e-6)


def test_schur_blocks_are_not_rotations_in_general() -> None:
    parts = schur_parts(torch.tensor([[0.5, -2.0], [0.3, 0.5]], dtype=torch.float64))
    assert abs(parts.kappa.item()) == pytest.approx(math.log(2 / 0.3) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("angle", "entry", "modulus"), [(1.0, 0.3, 1.1191), (1.0, -0.5, 0.7611), (math.pi / 2, -0.5, 0.7071)]
)
def test_an_entry_inside_a_rotation_block_moves_its_spectrum(angle: float, entry: float, modulus: float) -> None:
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    block = rotation_block(one, one * angle, zero)
    block[1, 0] += entry
    parts = schur_parts(block)
    assert parts.gamma.item() == pytest.approx(modulus, abs=1e-4)
    assert parts.gamma.item() == pytest.approx(math.sqrt(1 + entry * math.sin(angle)), abs=1e-12)


def test_a_strong_entry_inside_a_rotation_block_makes_the_pair_real() -> None:
    one = torch.ones((), dtype=torch.float64)
    block = rotation_block(one, one, 0 * one)
    block[1, 0] -= 2
    parts = schur_parts(block)
    assert parts.block_sizes.tolist() == [1, 1]
    assert parts.gamma.tolist() == pytest.approx([1.5277, 0.4471], abs=1e-4)
    assert parts.theta.tolist() == pytest.approx([0.0, math.pi])


def test_orthogonal_matrices_have_no_feedforward_part_and_sorted_angles() -> None:
    matrix = torch.linalg.qr(random_matrices(4, 12, 12)).Q
    parts = schur_parts(matrix)
    assert parts.feedforward.abs().max() < ROUNDING
    assert torch.allclose(parts.gamma, torch.ones_like(parts.gamma))
    angles = parts.theta.abs()
    assert bool((angles[1:] >= angles[:-1] - 1e-9).all())


def test_matrices_of_a_batch_are_split_alone_and_padded() -> None:
    real, turning = torch.diag(torch.tensor([3.0, -2.0])), torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    parts = schur_parts(torch.stack([real, turning]).double())
    assert parts.block_sizes.tolist() == [[1, 1], [2, 0]]
    assert parts.gamma[0].tolist() == [3.0, 2.0]
    assert parts.gamma[1, 0].item() == pytest.approx(1.0)
    assert math.isnan(parts.gamma[1, 1].item())
    assert parts.basis.shape == (2, 2, 2)
    assert schur_parts(torch.zeros(0, 3, 3)).basis.shape == (0, 3, 3)


def test_complex_form_is_unitarily_similar_to_the_matrix() -> None:
    matrix = random_matrices(5, 2, 6, 6)
    form = complex_schur_form(matrix)
    assert not bool(form.tril(-1).any())
    assert torch.allclose(torch.linalg.svdvals(form), torch.linalg.svdvals(matrix), atol=ROUNDING)
    eigenvalues = (torch.diagonal(form[1]).numpy(), torch.linalg.eigvals(matrix[1]).numpy())
    found, expected = (numpy.sort_complex(values.round(8)) for values in eigenvalues)
    assert numpy.allclose(found, expected, atol=1e-7)


def test_dtype_is_respected() -> None:
    assert schur_parts(torch.eye(3)).gamma.dtype == torch.float32
    assert complex_schur_form(torch.eye(3)).dtype == torch.complex64


def test_bad_matrices_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"matrix must be a square matrix .* got shape \(2, 3\)"):
        complex_schur_form(torch.zeros(2, 3))
    with pytest.raises(InvalidInput, match=r"matrix must be finite; entry \(0, 1\) is inf"):
        complex_schur_form(torch.tensor([[0.0, math.inf], [0.0, 0.0]]))
