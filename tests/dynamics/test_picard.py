from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, Outcome
from separatrix.dynamics.picard import damped_picard
from separatrix.dynamics.random_equilibria import find_equilibria, jacobian_radius
from separatrix.matrices.ensembles import GOE, AbstractEnsemble, Antisymmetric, Elliptic, Gaussian, Haar

RATES = torch.tensor([[0.5], [0.9], [2.0], [math.nan]], dtype=torch.float64)


def test_every_element_has_its_own_fate() -> None:
    solution = damped_picard(lambda z: RATES * z + 1, torch.zeros(4, 1, dtype=torch.float64), tol=1e-9, max_steps=300)
    assert [Outcome(int(code)) for code in solution.outcome] == [
        Outcome.CONVERGED, Outcome.CONVERGED, Outcome.OUT_OF_STEPS, Outcome.NON_FINITE,
    ]  # fmt: skip
    torch.testing.assert_close(solution.value[:2, 0], torch.tensor([2.0, 10.0]).double(), atol=1e-7, rtol=0)
    assert bool(solution.value[2:].isnan().all())
    assert int(solution.steps[0]) < int(solution.steps[1]) < 300


def test_steps_follow_the_rate() -> None:
    solution = damped_picard(lambda z: 0.5 * z + 1, torch.zeros(1, 1, dtype=torch.float64), tol=1e-6)
    assert int(solution.steps[0]) == math.ceil(math.log(1e-6) / math.log(0.5)) + 1
    assert float(solution.residual[0]) <= 1e-6


def test_half_steps_settle_where_plain_iteration_rotates_away() -> None:
    rotation = torch.tensor([[0.0, -1.3], [1.3, 0.0]], dtype=torch.float64)
    start = torch.zeros(1, 2, dtype=torch.float64)
    plain = damped_picard(lambda z: z @ rotation.mT + 1, start, max_steps=200)
    half = damped_picard(lambda z: z @ rotation.mT + 1, start, beta=0.5, max_steps=400)
    assert plain.outcome.tolist() == [int(Outcome.OUT_OF_STEPS)]
    assert half.outcome.tolist() == [int(Outcome.CONVERGED)]


def test_batch_does_not_change_an_element(generator: torch.Generator) -> None:
    w = GOE().sample(40, 0.2, generator=generator)
    x = torch.randn(5, 40, generator=generator, dtype=torch.float64)
    together, alone = find_equilibria(w, torch.tanh, x), find_equilibria(w, torch.tanh, x[2:3])
    assert int(together.steps[2]) == int(alone.steps[0])
    torch.testing.assert_close(together.value[2], alone.value[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(together.value, torch.tanh(together.value @ w.mT) + x, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": 0.0}, r"beta must lie in \(0, 1\]"),
        ({"tol": 0.0}, "tol must be a positive"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        damped_picard(lambda z: z, torch.zeros(1, 1), **arguments)


@pytest.mark.parametrize("ensemble", [Gaussian(), Haar(), GOE(), Antisymmetric(), Elliptic(-0.5)], ids=lambda e: e.name)
def test_outermost_eigenvalue_is_that_of_the_dense_matrix(
    ensemble: AbstractEnsemble, generator: torch.Generator
) -> None:
    width = 640  # above the width at which all eigenvalues are computed
    w = ensemble.sample(width, 1.0, generator=generator)
    slopes = (torch.rand(width, generator=generator, dtype=torch.float64) < 0.4).double()
    kept = slopes.bool()
    dense = torch.linalg.eigvals(w[kept][:, kept]).abs().max()  # zero rows leave the rest of the spectrum alone
    assert jacobian_radius(w, slopes) == pytest.approx(float(dense), rel=2e-3)


def test_radius_of_a_circle_and_of_nothing(generator: torch.Generator) -> None:
    w = Haar().sample(610, 0.25, generator=generator)
    assert jacobian_radius(w, torch.ones(610, dtype=torch.float64)) == pytest.approx(0.5)
    assert jacobian_radius(w, torch.zeros(610, dtype=torch.float64)) == 0
