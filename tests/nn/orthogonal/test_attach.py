from __future__ import annotations

import inspect
import itertools

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.nn import (
    SingularMargin,
    bound_spectrum_,
    make_orthogonal_,
    nearest_orthogonal,
    orthogonality_penalty,
)


def test_the_nearest_orthogonal_matrix_is_nearer_than_any_other() -> None:
    matrix = torch.randn(4, 4, dtype=torch.float64, generator=spawn(0, "m"))
    nearest = nearest_orthogonal(matrix)
    best = float((matrix - nearest).norm())
    for seed in range(50):
        other = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=spawn(seed, "q")))[0]
        assert float((matrix - other).norm()) >= best
    with pytest.raises(InvalidInput, match="must be finite"):
        nearest_orthogonal(torch.full((2, 2), float("nan")))
    with pytest.raises(ShapeError, match="must be square"):
        nearest_orthogonal(torch.ones(2, 3))


def test_a_layer_starts_from_the_matrix_nearest_to_its_weight() -> None:
    layer = nn.Linear(5, 5)
    expected = nearest_orthogonal(layer.weight.detach())
    assert torch.allclose(make_orthogonal_(layer).weight, expected, atol=1e-6)


def test_a_second_call_with_the_same_generator_gives_the_same_start() -> None:
    first, second = (make_orthogonal_(nn.Linear(4, 4), start="henaff").weight for _ in range(2))
    assert torch.equal(first, second)  # a fixed seed where none is given
    other = make_orthogonal_(nn.Linear(4, 4), start="henaff", generator=spawn(1, "start")).weight
    assert not torch.equal(first, other)


@pytest.mark.parametrize("layer", [nn.Linear(3, 4), nn.Conv1d(3, 3, 2), nn.ReLU()])
def test_what_is_no_square_matrix_is_refused(layer: nn.Module) -> None:
    with pytest.raises(ShapeError, match="must have a square matrix 'weight'"):
        inspect.unwrap(make_orthogonal_)(layer)


def test_the_soft_constraint_vanishes_on_orthogonal_matrices_alone() -> None:
    q = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=spawn(0, "q")))[0]
    for norm in ("frobenius", "spectral"):
        assert float(orthogonality_penalty(q, norm)) < 1e-25  # type: ignore[arg-type]
        assert float(orthogonality_penalty(q[:, :2], norm)) < 1e-25  # type: ignore[arg-type]
        assert float(orthogonality_penalty(q[:2], norm)) < 1e-25  # type: ignore[arg-type]
    stretched = torch.diag(torch.tensor([2.0, 1.0, 1.0]))
    assert float(orthogonality_penalty(stretched)) == pytest.approx(9.0)
    assert float(orthogonality_penalty(stretched, "spectral")) == pytest.approx(9.0)


def test_singular_values_follow_their_formula() -> None:
    chart = SingularMargin(4, margin=0.3).to(torch.float64)
    free = chart.right_inverse(chart.sample(generator=spawn(0, "svd")))
    assert isinstance(free, tuple)
    spectrum = torch.tensor([-50.0, -1.0, 0.5, 50.0], dtype=torch.float64)
    values = torch.linalg.svdvals(chart(free[0], free[1], spectrum)).flip(0)
    assert torch.allclose(values, 1 + 0.6 * (torch.sigmoid(spectrum) - 0.5), atol=1e-12)
    assert float(values.min()) == pytest.approx(0.7)
    assert float(values.max()) == pytest.approx(1.3)


def test_a_weight_that_is_parametrised_already_is_refused() -> None:
    for first, second in itertools.product((make_orthogonal_, _bounded), repeat=2):
        with pytest.raises(InvalidInput, match="parametrised already"):
            second(first(nn.Linear(3, 3)))


def _bounded(layer: nn.Module) -> nn.Module:
    return bound_spectrum_(layer, 0.9)
