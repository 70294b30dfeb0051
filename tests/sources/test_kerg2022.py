from __future__ import annotations

import pytest
import torch

from separatrix.matrices import delay_line, henrici, schur_parts
from separatrix.sources import find_document, find_erratum
from separatrix.sources.kerg2022.recurrence import TABLE5
from separatrix.theory import delay_line_total


def test_table_5_has_every_combination_once() -> None:
    keys = {(row.sub, row.rest, row.diagonal) for row in TABLE5}
    assert len(keys) == len(TABLE5) == 12
    assert {row.diagonal for row in TABLE5} == {0.0, 0.2}


def test_tolerance_is_half_a_unit_of_the_last_printed_digit() -> None:
    for row in TABLE5:
        steps = row.total / (2 * row.tolerance)
        assert steps == pytest.approx(round(steps), abs=1e-9)


def test_errata_have_distinct_keys_that_name_the_document() -> None:
    keys = [erratum.key for erratum in find_document("kerg2022").errata]
    assert len(keys) == len(set(keys)) == 56
    assert all(key.startswith("kerg2022-") for key in keys)


def test_a_block_out_of_reach_of_rotations_is_reached_with_a_skew() -> None:
    assert "kappa" in find_erratum("kerg2022-reach").correct
    block = torch.tensor([[0.5, -2.0], [0.3, 0.5]], dtype=torch.float64)
    assert henrici(block).item() == pytest.approx(1.7)  # rotation blocks are normal: 0
    parts = schur_parts(block)
    assert torch.allclose(parts.basis @ parts.rotations @ parts.basis.mT, block, atol=1e-14)


def test_powers_of_a_product_are_not_the_product_with_a_power() -> None:
    assert "(DA)^k is not D^k A" in find_erratum("kerg2022-eq-a-2-6").correct
    theta, line = delay_line(3, 1.0, 0.5), delay_line(3, 1.0)
    factor = torch.cat([theta[1:], torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)])
    assert torch.allclose(line @ factor, theta)
    direct = sum(p @ p.mT for p in (torch.linalg.matrix_power(theta, k) for k in range(3)))
    printed = sum(p @ factor @ factor.mT @ p.mT for p in (torch.linalg.matrix_power(line, k) for k in range(3)))
    assert (direct - printed).abs().max() > 0.1


def test_rotations_by_a_full_turn_are_stationary_in_coordinates_though_not_on_the_group() -> None:
    assert "2 pi" in find_erratum("kerg2022-spurious").correct
    generators = torch.zeros(3, 3, 3, dtype=torch.float64)
    for index, (i, j) in enumerate(((1, 2), (0, 2), (0, 1))):
        generators[index, i, j], generators[index, j, i] = -1.0, 1.0
    around = torch.tensor([0.0, 0.0, 2 * torch.pi], dtype=torch.float64)
    wanted = generators[0]  # the function is the inner product with this matrix

    def function(coordinates: torch.Tensor) -> torch.Tensor:
        return (wanted * torch.linalg.matrix_exp(torch.einsum("k,kij->ij", coordinates, generators))).sum()

    slope = torch.func.grad(function)(around)
    assert float(slope.abs().max()) < 1e-12
    on_group = torch.func.grad(lambda t: (wanted * torch.linalg.matrix_exp(t * generators[0])).sum())
    assert abs(float(on_group(torch.zeros((), dtype=torch.float64)))) == pytest.approx(2.0)


def test_the_ceiling_of_memory_is_above_every_line() -> None:
    assert "reached by no" in find_erratum("kerg2022-ceiling").correct
    totals = delay_line_total(torch.tensor([2.0, 1e3, 1e6], dtype=torch.float64), 6)
    assert bool((totals < 6).all())
    assert float(6 - totals[-1]) == pytest.approx(5e-6, rel=1e-3)


def test_an_eigenvalue_on_the_circle_leaves_a_projection() -> None:
    assert "projection" in find_erratum("kerg2022-explodes-or-vanishes").correct
    turn = torch.linalg.qr(torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64))[0]
    power = torch.linalg.matrix_power(turn @ torch.diag(torch.tensor([1.0, 0.5], dtype=torch.float64)) @ turn.mT, 500)
    assert torch.allclose(power, torch.outer(turn[:, 0], turn[:, 0]), atol=1e-12)


def test_eigenvalues_without_real_part_do_not_make_a_matrix_skew() -> None:
    assert "normal" in find_erratum("kerg2022-skew-hermitian").correct
    block = torch.tensor([[1j, 1.0], [0.0, 1j]], dtype=torch.complex128)
    assert torch.linalg.eigvals(block).real.abs().max() == 0
    assert (block + block.mH).abs().max() == 1


def test_a_determinant_on_the_circle_does_not_make_a_matrix_unitary() -> None:
    assert "identity" in find_erratum("kerg2022-unitary-closed").correct
    stretch = torch.diag(torch.tensor([2.0, 0.5], dtype=torch.float64))
    assert torch.linalg.det(stretch).abs() == 1
    assert (stretch @ stretch.mT - torch.eye(2)).abs().max() == 3
