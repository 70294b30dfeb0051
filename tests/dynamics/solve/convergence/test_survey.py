"""The search for slow directions that nothing excites: it finds what is there, and nothing else."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor

from separatrix.core import Outcome
from separatrix.dynamics import Anderson, Picard, find_equilibrium, solvers
from separatrix.dynamics.solve.convergence import survey
from separatrix.dynamics.solve.convergence.survey import slow_somewhere
from separatrix.dynamics.solve.find import solve_quietly

TOL, NOISE = 1e-6, 1e-16


def random_map(generator: torch.Generator, dim: int, radius: float, slowness: float) -> tuple[Tensor, Tensor]:
    """A random matrix with one eigenvalue 1 - slowness, and its right vector; all others lie within the radius."""
    right = torch.nn.functional.normalize(torch.randn(dim, generator=generator, dtype=torch.float64), dim=0)
    outside = torch.eye(dim, dtype=torch.float64) - torch.outer(right, right)
    weight = radius * torch.randn(dim, dim, generator=generator, dtype=torch.float64) / dim**0.5
    return outside @ weight @ outside + (1 - slowness) * torch.outer(right, right), right


def looked_at(weight: Tensor, z: Tensor) -> tuple[bool, int]:
    """Whether the equilibrium zero of an affine map, claimed at z, is refused, and after how many evaluations."""
    calls = [0]

    def image(z: Tensor) -> Tensor:
        calls[0] += 1
        return z @ weight.mT

    one, states = torch.ones(1, dtype=torch.float64), z.unsqueeze(0)
    refused, looks, _, _ = slow_somewhere(
        one > 0, states, states @ weight.mT - states, TOL * one, NOISE * one, NOISE, image
    )
    assert int(looks) == calls[0]
    return bool(refused), calls[0]


@pytest.mark.parametrize("dim", [17, 64, 300])
@pytest.mark.parametrize("slowness", [1e-3, 1e-6, 1e-9])
def test_an_error_along_a_slow_direction_is_found(generator: torch.Generator, dim: int, slowness: float) -> None:
    """Where the residual is below the tolerance, whatever the error is."""
    weight, right = random_map(generator, dim, 0.6, slowness)
    error = 0.3 * TOL / slowness
    assert error > 2 * TOL
    assert looked_at(weight, error * right)[0]


@pytest.mark.parametrize("dim", [100, 200])
def test_an_error_beside_which_the_map_bends_within_the_looks_is_found(generator: torch.Generator, dim: int) -> None:
    """Coarse tolerances make looks as long as the state; then the slowest combination of answers is no answer."""
    right = torch.nn.functional.normalize(torch.randn(dim, generator=generator, dtype=torch.float64), dim=0)
    weight = 0.8 * torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))[0]
    shift = torch.randn(dim, generator=generator, dtype=torch.float64)

    def image(z: Tensor) -> Tensor:
        along = (z @ right).unsqueeze(-1) * right
        rest = torch.relu((z - along) @ weight.mT + shift)
        return rest - (rest @ right).unsqueeze(-1) * right + (1 - 1e-5) * along

    z = torch.zeros(1, dim, dtype=torch.float64)
    for _ in range(200):
        z = image(z)
    size = float(torch.linalg.vector_norm(z))
    z = z + size * right  # the equilibrium has nothing along it
    one = torch.ones(1, dtype=torch.float64)
    found = slow_somewhere(one > 0, z, image(z) - z, 0.1 * size * one, 1e-3 * size * one, 1e-3, image)
    assert bool(found.slow)


@pytest.mark.parametrize("dim", [17, 64, 300])
@pytest.mark.parametrize("slowness", [1e-3, 1e-6, 1e-9])
def test_a_slow_map_at_its_equilibrium_is_believed(generator: torch.Generator, dim: int, slowness: float) -> None:
    """With an error along the slow direction of a tenth of the tolerance."""
    weight, right = random_map(generator, dim, 0.6, slowness)
    assert not looked_at(weight, 0.1 * TOL * right)[0]


@pytest.mark.parametrize("radius", [0.3, 0.6, 0.9])
def test_a_map_that_contracts_costs_what_its_radius_says(generator: torch.Generator, radius: float) -> None:
    """Until what is left of a direction is a thousandth of 1 / sqrt(d)."""
    dim = 100
    weight = radius * torch.randn(dim, dim, generator=generator, dtype=torch.float64) / dim**0.5
    refused, looks = looked_at(weight, TOL * torch.ones(dim, dtype=torch.float64) / 100)
    assert not refused
    expected = torch.tensor(1e3 * dim**0.5).log() / torch.tensor(1 / radius).log()
    assert looks <= 1.2 * expected + 3


def test_a_map_that_is_not_defined_beside_the_state_is_not_refused() -> None:
    """Nothing was seen there."""
    one, z = torch.ones(1, dtype=torch.float64), torch.zeros(1, 20, dtype=torch.float64)
    found = slow_somewhere(one > 0, z, z, TOL * one, NOISE * one, NOISE, lambda z: torch.full_like(z, torch.nan))
    assert found[0].tolist() == [False]


@pytest.mark.slow
def test_no_square_matrix_of_a_large_state_is_made(generator: torch.Generator) -> None:
    """Of 2^17 units, one of which is slow, it would take 128 GiB."""
    slopes = torch.full((2**17,), 0.3, dtype=torch.float64)
    slopes[7] = 1 - 1e-9
    one, z = torch.ones(1, dtype=torch.float64), torch.zeros(1, 2**17, dtype=torch.float64)
    z[0, 7] = 100 * TOL
    found = slow_somewhere(one > 0, z, (slopes - 1) * z, TOL * one, NOISE * one, NOISE, lambda z: slopes * z)
    assert found.slow.tolist() == [True]


def test_samples_are_looked_at_alone(generator: torch.Generator) -> None:
    """What is found of one does not depend on the others, nor on whether they are looked at."""
    slow, right = random_map(generator, 24, 0.6, 1e-6)
    weights = torch.stack([slow, 0.5 * slow, 0.9 * slow])
    z = 0.3 * right.expand(3, -1)
    image = lambda z: torch.bmm(weights[: len(z)], z.unsqueeze(-1)).squeeze(-1)  # noqa: E731
    one = torch.ones(3, dtype=torch.float64)
    given = (z, 1e-7 * z, TOL * one, NOISE * one)
    together = slow_somewhere(one > 0, *given, NOISE, image)
    alone = slow_somewhere((one > 0)[:1], *(part[:1] for part in given), NOISE, image)
    assert together[0].tolist() == [True, False, False]
    assert alone[0].tolist() == [True]
    assert int(alone[1][0]) == int(together[1][0])
    nobody = slow_somewhere(one < 0, *given, NOISE, image)
    assert nobody[0].tolist() == [False] * 3
    assert nobody[1].tolist() == [0] * 3


@pytest.mark.parametrize("name", solvers())
def test_a_solve_says_whether_it_was_surveyed(name: str, generator: torch.Generator) -> None:
    weight, right = random_map(generator, 32, 0.6, 1e-8)
    point = torch.randn(32, generator=generator, dtype=torch.float64) + 3 * right
    start, solver = torch.zeros(2, 32, dtype=torch.float64), solvers()[name](max_steps=40)
    hidden = functools.partial(lambda z, weight: point + (z - point) @ weight.mT, weight=weight)
    solution = solve_quietly(hidden, solver, start)
    if solution.ok:  # by steps that did excite it
        assert bool((solution.value - point).norm() <= 1e-4)
    # half the map is an ordinary one
    ordinary = functools.partial(hidden, weight=0.5 * weight)
    assert find_equilibrium(ordinary, solver, start).surveyed.tolist() == [True, True]
    without = solve_quietly(ordinary, solver, start, survey=False)
    assert without.ok
    assert without.surveyed.tolist() == [False, False]
    few = find_equilibrium(lambda z: 0.5 * z + 1, solver, start[:, :3])
    assert few.surveyed.tolist() == [True, True]


def test_what_is_not_looked_at_is_not_said_to_be() -> None:
    z = torch.zeros(2, 20)
    assert not find_equilibrium(lambda z: 0.5 * z + 1, Picard(stop="residual"), z).surveyed.any()
    assert find_equilibrium(lambda z: 0.5 * z + 1, Picard(), z.bfloat16()).surveyed.all()
    with pytest.warns(match="did not converge"):
        assert not find_equilibrium(lambda z: z + 1, Picard(max_steps=3), z, throw=False).surveyed.any()


def test_a_hidden_direction_is_found_inside_vmap(generator: torch.Generator) -> None:
    """Each member of a mapped axis has its own map."""
    weight, right = random_map(generator, 24, 0.6, 1e-8)
    point = torch.randn(24, generator=generator, dtype=torch.float64) + 3 * right
    weights = torch.stack([weight, 0.5 * weight])

    def outcome(weight: Tensor) -> Tensor:
        start = torch.zeros(1, 24, dtype=torch.float64)
        return solve_quietly(lambda z: point + (z - point) @ weight.mT, Anderson(max_steps=15), start).outcome

    mapped = torch.func.vmap(outcome)(weights)[:, 0].tolist()
    assert mapped[0] != Outcome.CONVERGED
    assert mapped[1] == Outcome.CONVERGED


def test_a_batch_without_room_for_its_images_is_not_called_surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    z0 = torch.zeros(3, 40, dtype=torch.float64)
    searched = find_equilibrium(lambda z: 0.3 * torch.tanh(z) + 1, Anderson(tol=1e-8), z0)
    assert searched.surveyed.all()
    monkeypatch.setattr(survey, "_MOST_NUMBERS", 32 * z0.numel() - 1)
    other = find_equilibrium(lambda z: 0.3 * torch.tanh(z) + 1, Anderson(tol=1e-8), z0)
    assert other.ok
    assert not other.surveyed.any()
    assert (other.evaluations < searched.evaluations).all()
