"""``converged`` is never said wrongly: maps with and without equilibria, every solver, every precision.

The judge and its rules are in ``tests/judged_maps.py``. The constants of the error estimate were chosen on the
development kinds. The fresh kinds were then run with seed 900,000: of 10,200 solves 7 wrong (all ghosts), and 77 missed
of 6,807 due (75 beside folds). That run led to three changes (length and number of probes, how long steps are
remembered), after which seed 2,600,000 gave 8 wrong (all ghosts) and 12 missed of 6,766. So the second figures are not
those of kinds never looked at, and the allowance for ghosts in the slow test was made after seeing both. On the
development kind ``slow`` in single precision 2 of 120 solves remain wrong.

Then claims came to be examined beyond the equilibrium (``Crossing``), by a rule chosen on seeds 50 and 100. Seed
7,310,000, drawn after it was committed, was then run over all kinds, fresh and strange, until a draw without truth
stopped it at the sixteenth: 7 wrong of 15,300 (5 ``ghost_pair``, 1 ``ghost``, 1 ``non_normal``), 19 missed. That led to
the look along one direction at a time and to the fresh judgement of states at rest, chosen on seeds 100, 7,310,000 and
20,000. Seed 30,000, looked at once: none wrong of 22,440, 13 missed of 12,665 due. Seed 8,640,000, drawn
after all that was committed: one wrong of 22,440 (``transient``), 14 missed of 12,625 due
(``benchmarks/results/converged.json``). Its cause, a slow direction that three probes of a strongly feedforward map do
not see, is mended by ``unseen_stretch``, developed on that seed and on seed 71. Seed 210,219,775, drawn after that was
committed: 13,080 solves over all kinds (17 rows of nine, 5 of thirteen), two wrong (``ghost``, Broyden in double, and
``transient``, Anderson in bfloat16, both of 11 dimensions), 10 missed of 9,064 due. Both were mended (a look along
single directions wherever a stretch of 1 / tol was seen; the tolerance of the map instead of that of the arithmetic;
strained maps probed along every direction), developed on that seed and on seeds 50, 4,242 and 4,343. Seeds 631,039,466
and 436,426,793, drawn after that was committed: none wrong of 44,880, 36 missed of 25,286 due. The residual's entries
above rounding then came to lead the second look; seed 332,335,207, drawn after that: none wrong of 22,440, 25 missed
of 12,605 due. In 64, 128 and 256 dimensions, seed 441,426,793 and the code before that: 10 wrong of 1,080, all of them
ghosts of one unit in bfloat16 whose motion is below the rounding of the whole state; so the liveliest unit came to be
looked at by itself in bfloat16. Seed 278,940,709, drawn after that: none wrong of 22,440, 10 missed of 12,595 due. Seed
816,491,136 in 64 to 256 dimensions: one wrong of 1,080 (``ghost_pair``, Anderson in single precision, 256 dimensions),
none of 512 missed. So a unit slow enough for a fold came to be looked at by itself, developed on that seed and on seed
77,001 (8,000 solves of ``ghost_pair`` in 64 and 256 dimensions: 4 wrong before, none after). Drawn after that was
committed: seed 301,973,031, 64 and 256 dimensions, four kinds beside folds, none wrong of 1,080, none missed of 218
due; seed 307,349,509, one wrong of 22,440 (``non_normal``, Anderson in bfloat16, two units, wrong before the change
as well: a stretch of 450 of which probes saw six, and a state at rest by rounding), 12 missed of 12,571 due. Its cause
has brothers in every precision: of an error along a direction that contracts by less than the tolerance the residual
shows nothing. Of maps with one such direction (seed 13, 6,000 solves in 2 to 32 dimensions) 913 were called converged
wrongly; looks along every unit in up to 16 dimensions, and along the state in more, were developed on seeds 11 to 13
and 3,100 to 3,143. Drawn after that was committed: seed 349,335,979, none wrong of 22,440, 7 missed of 12,602 due, and
of 3,060 of the kinds with a slow direction none wrong, 1 missed of 1,610 due. The error from which on a look is made
again with care was then raised from half the tolerance to twice it, which saves up to 2 d evaluations.

In more than 16 dimensions slow directions that nothing excites came to be searched for, by constants chosen on seeds
11,000 to 13,000 (before, 176 of 675 solves of three of the kinds were wrong in 17, 32 and 64 dimensions). Seed
727,136,661, drawn after that was committed: 13 wrong of 1,440 in 17, 32, 64 and 256 dimensions (eleven behind strong
feedforward parts in 256, two in bfloat16, which was not searched), 1 missed of 573 due. That led to searches that keep
all their images, and to those in half precision. Drawn after that was committed: seed 970,582,671, the same kinds and
dimensions, none wrong of 1,800, 2 missed of 736 due; seed 382,415,314, all kinds in 1 to 11 dimensions, none wrong of
6,720, 8 missed of 3,534 due.

Then the unit came to be looked at on one side first, which no seed had a part in. Seed 880,001, all kinds in 1 to 11
dimensions, by torch, before and after: 2 of 10,080 wrong by the rules and 2, the same two (one map of the kind
``slow_mode_of_a_net``, Anderson and auto in double precision, two dimensions, at an equilibrium that is not among the
known ones: Newton's method moves the answer by 8e-10, to a residual of 3e-16); 10 missed of 5,391
due and 9 of 5,390. Seed 880,101, seven kinds in 64 and 256 dimensions: none wrong of 630 and none missed of 261 due,
before and after.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from judged_maps import BUDGET, Verdict, judged
from known_maps import DEVELOPMENT, DTYPES, FRESH, HIDDEN, STRANGE, KnownMap, batches, known_maps
from separatrix.core import Outcome
from separatrix.dynamics import (
    AbstractEquilibriumSolver,
    Anderson,
    Auto,
    Broyden,
    NewtonKrylov,
    Picard,
    find_equilibrium,
    solvers,
)
from separatrix.dynamics.solve.convergence.crossing import Crossing
from separatrix.dynamics.solve.convergence.stretch import Stretch, inverse_of, unseen_stretch
from separatrix.dynamics.solve.find import solve_quietly

SOLVERS = solvers()
FRESH_SEED, SLICE_SEED, STRANGE_SEED = 2_600_000, 5_000, 50
pytestmark = pytest.mark.filterwarnings("ignore::separatrix.core.ConvergenceWarning")


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> type[AbstractEquilibriumSolver[Any]]:
    return SOLVERS[request.param]


def verdicts(maps: Iterable[KnownMap]) -> list[Verdict]:
    return [verdict for known in maps for kind in SOLVERS.values() for verdict in judged(known, kind(max_steps=BUDGET))]


def summary(found: list[Verdict]) -> str:
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for verdict in found:
        cell = counts[verdict.kind, verdict.solver]
        cell.update({"n": 1, "due": verdict.due, "wrong": verdict.wrong, "missed": verdict.missed})
    return "\n".join(f"{kind} {solver}: {dict(cell)}" for (kind, solver), cell in sorted(counts.items()))


EVERY_DAY = [(kind, DTYPES[number % 3 :][:1]) for number, kind in enumerate((*DEVELOPMENT, *FRESH))]
"""Each kind in one precision, taken in turn; the other two are tried by the slow tests."""
THE_OTHERS = [
    pytest.param(kind, tuple(dtype for dtype in DTYPES if dtype not in tried), marks=pytest.mark.slow)
    for kind, tried in EVERY_DAY
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("kind", "dtypes"), [*EVERY_DAY, *THE_OTHERS])
def test_no_solver_claims_what_is_not_there(kind: str, dtypes: tuple[torch.dtype, ...]) -> None:
    found = verdicts(batches([kind], dims=[3], rows=4, seed=SLICE_SEED, dtypes=dtypes))
    assert not [verdict for verdict in found if verdict.wrong], summary(found)
    assert not [verdict for verdict in found if verdict.missed], summary(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FRESH, *STRANGE])
def test_two_hundred_fresh_maps_of_a_kind(kind: str) -> None:
    """Three precisions and four dimensions, five solvers, nothing wrong and at most one of a hundred missed."""
    found = verdicts(batches([kind], dims=[1, 2, 5, 11], rows=17, seed=FRESH_SEED))
    assert len(found) == 5 * 204
    assert not any(verdict.wrong for verdict in found), summary(found)
    assert sum(verdict.missed for verdict in found) <= (0.02 if kind == "transient" else 0.01) * sum(
        verdict.due for verdict in found
    ), summary(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STRANGE)
def test_maps_of_strangers(kind: str) -> None:
    """Ghosts in two units, in one direction of many, flat ones, at 1e8; jumps, transients, kinks, forbidden regions."""
    found = verdicts(batches([kind], dims=[3], rows=10, seed=STRANGE_SEED))
    assert not [verdict for verdict in found if verdict.wrong], summary(found)
    # where rounding could have made the smallest response of a strained map nothing is claimed
    assert sum(verdict.missed for verdict in found) <= (0.03 if kind == "transient" else 0.02) * len(found), summary(
        found
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["anderson", "auto", "broyden"])
def test_a_fold_that_just_fails_to_have_an_equilibrium_is_not_taken_for_one(name: str) -> None:
    """z + s (gap + (z - 1)^2): for gaps this small the estimated error, about the root of the gap, is below tol."""
    z0 = torch.full((4, 1), 1 - 3e-6, dtype=torch.float64)
    gap = torch.tensor([[1e-13], [4e-13], [-1e-8], [-1e-6]], dtype=torch.float64)
    solution = solve_quietly(lambda z: z + 0.3 * (gap + (z - 1).square()), SOLVERS[name](max_steps=400), z0)
    assert Outcome.CONVERGED not in solution.outcomes()[:2]
    off = ((solution.value - 1).abs() - gap.abs().sqrt()).flatten()
    assert bool((off[2:].abs() <= 1e-5)[solution.outcome[2:] == Outcome.CONVERGED].all())


def test_a_start_whose_probes_would_cancel_is_probed_all_the_same(solver: type[AbstractEquilibriumSolver[Any]]) -> None:
    """In one dimension a probe along a fixed pattern plus the residual was none where these are opposite."""
    for drift in (-1e-7, 1e-7):
        solution = solve_quietly(lambda z, by=drift: z + by, solver(max_steps=3), torch.ones(2, 1, dtype=torch.float64))
        assert Outcome.CONVERGED not in solution.outcomes()


WITHOUT: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": lambda z: functional.softplus(z) + 0.01,
    "shift": lambda z: z + 1,
    "root": lambda z: torch.sqrt(z.square() + 1),
}


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", WITHOUT)
def test_a_state_that_grows_for_ever_has_not_converged(
    name: str, dtype: torch.dtype, solver: type[AbstractEquilibriumSolver[Any]]
) -> None:
    for start in (0.0, 1e8):
        solution = solve_quietly(WITHOUT[name], solver(max_steps=60), torch.full((2, 2), start, dtype=dtype))
        assert Outcome.CONVERGED not in solution.outcomes()
        assert bool(solution.value.isnan().all())


def test_a_drift_is_called_no_equilibrium() -> None:
    for method in (Picard(), Broyden(), NewtonKrylov()):
        solution = solve_quietly(lambda z: z + 1, method, torch.zeros(2, 3))
        assert set(solution.outcomes()) == {Outcome.NO_EQUILIBRIUM}
        assert "grows while the residual does not fall" in solution.failure_message()


def test_a_slow_map_is_not_accepted_before_its_end(solver: type[AbstractEquilibriumSolver[Any]]) -> None:
    solution = solve_quietly(lambda z: 0.9999 * z + 1, solver(max_steps=100), torch.zeros(1, 1, dtype=torch.float64))
    if solution.ok:
        assert float(solution.value) == pytest.approx(1e4, rel=1e-5)
    else:
        assert solver is Picard


def test_an_equilibrium_at_zero_is_found(solver: type[AbstractEquilibriumSolver[Any]]) -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for start in (0.0, 1e-6, 1.0):
            solution = find_equilibrium(lambda z: 0.5 * z, solver(), torch.full((2, 3), start, dtype=dtype))
            assert float(solution.value.abs().max()) <= 1e-2 * start


def test_two_states_in_turn_are_a_cycle_and_a_slow_oscillation_is_not() -> None:
    z0 = torch.full((1, 2), 0.3, dtype=torch.float64)
    assert solve_quietly(lambda z: -2 * torch.tanh(z), Picard(), z0).outcomes() == [Outcome.CYCLE]
    assert solve_quietly(lambda z: 1 - z, Picard(), z0).outcomes() == [Outcome.CYCLE]
    assert solve_quietly(lambda z: -0.9999 * z, Picard(), z0).outcomes() == [Outcome.OUT_OF_STEPS]


def test_the_error_is_that_of_the_answer(solver: type[AbstractEquilibriumSolver[Any]]) -> None:
    generator = torch.Generator().manual_seed(3)
    weight = 0.9 * torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))[0]
    x = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    solution = find_equilibrium(lambda z: z @ weight.mT + x, solver(tol=1e-4, max_steps=300), torch.zeros_like(x))
    exact = torch.linalg.solve(torch.eye(8, dtype=torch.float64) - weight, x.mT).mT
    error = (solution.value - exact).norm(dim=1)
    assert bool((error <= 2e-4 * exact.norm(dim=1)).all())  # twice what was asked for: the stretch is seen from below
    assert bool((error <= 2 * solution.error).all())


def test_the_default_tolerance_follows_the_precision_of_the_map() -> None:
    solver = Picard()
    assert solver.tolerance(torch.finfo(torch.float64).eps) == 1e-6
    assert solver.tolerance(torch.finfo(torch.float32).eps) == pytest.approx(1.2e-4, rel=0.01)
    assert solver.tolerance(torch.finfo(torch.bfloat16).eps) == 0.1


def test_half_precision_maps_are_solved_by_every_method(solver: type[AbstractEquilibriumSolver[Any]]) -> None:
    solution = find_equilibrium(lambda z: 0.5 * torch.tanh(z) + 1, solver(), torch.zeros(2, 3, dtype=torch.bfloat16))
    assert solution.value.dtype == torch.bfloat16
    assert torch.allclose(solution.value.double(), torch.tensor(1.4434, dtype=torch.float64), rtol=0.05)


def test_the_residual_alone_can_be_asked_for() -> None:
    solution = find_equilibrium(lambda z: 0.9999 * z + 1e-3, Picard(tol=1e-2, stop="residual"), torch.zeros(1, 1))
    assert solution.evaluations.tolist() == [1]
    assert bool(solution.error.isinf().all())


def test_a_feedforward_map_does_not_hide_its_slow_direction() -> None:
    """Eigenvalues within 0.6, responses of 41, 26 and 15, and a direction in which |(I - J)^-1| is 7,000."""
    known = known_maps("transient", torch.float64, 5, 17, 8_641_502)
    assert not any(verdict.wrong for verdict in judged(known, Auto(max_steps=BUDGET)))


@pytest.mark.slow
def test_terms_that_cancel_are_rounded_before_they_do() -> None:
    """In bfloat16 a map of norm 35 and |(I - J)^-1| = 217 cannot be solved to a tenth."""
    known = known_maps("transient", torch.bfloat16, 5, 17, 8_641_504)
    assert not any(verdict.wrong for verdict in judged(known, NewtonKrylov(max_steps=BUDGET)))


def test_a_ghost_whose_slope_is_hidden_by_its_curvature_is_looked_at_along_single_directions() -> None:
    """Gap 2.6e-13: probes longer than the fold take its curvature for a slope, and the others' responses hide it."""
    known = known_maps("ghost", torch.float64, 11, 17, 210_219_775 + 703)
    assert not any(verdict.wrong for verdict in judged(known, Broyden(max_steps=BUDGET)))


def test_a_strained_map_of_coarse_rounding_is_probed_along_every_direction() -> None:
    """In bfloat16 a response of 9 hides one of a thousandth from eight probes: an error of 36 was taken for 3."""
    known = known_maps("transient", torch.bfloat16, 11, 17, 210_219_775 + 1511)
    assert not any(verdict.wrong for verdict in judged(known, Anderson(max_steps=BUDGET)))


def test_a_strained_map_of_few_dimensions_is_probed_along_every_direction() -> None:
    """In single precision three probes of five directions were believed at a hundred times the tolerance."""
    known = known_maps("transient", torch.float32, 5, 17, 4_248)
    assert not any(verdict.wrong for verdict in judged(known, Anderson(max_steps=BUDGET)))


def test_one_unit_of_many_that_never_rests_is_not_hidden_by_the_size_of_the_others() -> None:
    """In bfloat16 its motion, .3, is below the rounding of a state of 128 units."""
    known = known_maps("ghost_pair", torch.bfloat16, 128, 3, 441_427_800)
    assert not any(verdict.wrong for verdict in judged(known, Picard(max_steps=BUDGET)))


def test_one_unit_of_many_that_never_rests_is_not_hidden_by_what_the_others_do() -> None:
    """Its slope is a thirteenth of the least that the steps show, and the others change their sign as predicted."""
    known = known_maps("ghost_pair", torch.float32, 256, 4, 816_492_141)
    assert not any(verdict.wrong for verdict in judged(known, Anderson(max_steps=BUDGET)))


def test_a_rest_by_coarse_rounding_proves_nothing() -> None:
    """In bfloat16 a state five times as far off as it is large does not move; |(I - J)^-1| is 450, probes saw six."""
    known = known_maps("non_normal", torch.bfloat16, 2, 17, 307_349_509 + 409)
    found = judged(known, Anderson(max_steps=BUDGET))
    assert not any(verdict.wrong or verdict.missed for verdict in found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_slow_direction_that_nothing_excites_is_found_in_few_dimensions(kind: str, dtype: torch.dtype) -> None:
    """The residual along it is below the tolerance wherever the state is: only a look from the side shows it."""
    for dim in (2, 7):
        known = known_maps(kind, dtype, dim, 8, 3_100 + dim)
        for solver in (Anderson, Broyden, Picard):
            found = judged(known, solver(max_steps=60))
            assert not any(verdict.wrong for verdict in found), summary(found)


@pytest.mark.slow
def test_a_state_that_grew_along_a_slow_direction_of_many_is_looked_at_along_itself() -> None:
    known = known_maps("line_driven", torch.float32, 40, 8, 3_143)
    found = [verdict for solver in (Anderson, Broyden) for verdict in judged(known, solver(max_steps=BUDGET))]
    assert not any(verdict.wrong for verdict in found), summary(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_slow_direction_that_nothing_excites_is_found_in_many_dimensions(kind: str, dtype: torch.dtype) -> None:
    for dim in (17, 40):
        known = known_maps(kind, dtype, dim, 6, 3_200 + dim)
        for solver in (Anderson, Broyden, Picard):
            found = judged(known, solver(max_steps=60))
            assert not any(verdict.wrong for verdict in found), summary(found)


@pytest.mark.slow
def test_a_slow_direction_behind_a_strong_feedforward_part_is_found_in_256_dimensions() -> None:
    """A search that begins anew every 32 images stands still there, at a response of 4e-4 where 3e-11 is the least."""
    known = known_maps("line_of_rest", torch.float64, 256, 4, 727_138_864)
    assert not any(verdict.wrong for verdict in judged(known, Picard(max_steps=BUDGET)))


def test_a_slow_direction_of_many_is_found_in_half_precision() -> None:
    known = known_maps("line_of_rest", torch.bfloat16, 32, 8, 5_019)
    assert not any(verdict.wrong for verdict in judged(known, Anderson(max_steps=BUDGET)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_slow_directions_of_up_to_256(kind: str) -> None:
    """Three precisions and four dimensions, five solvers."""
    found = verdicts(batches([kind], dims=[17, 32, 64, 256], rows=6, seed=FRESH_SEED))
    assert not any(verdict.wrong for verdict in found), summary(found)
    assert sum(verdict.missed for verdict in found) <= 0.01 * sum(verdict.due for verdict in found), summary(found)


def test_a_unit_that_was_not_looked_at_is_suspected() -> None:
    """A ghost in a unit in which the first look has no part."""
    z = torch.ones(1, 3, dtype=torch.float64)
    crossing, flat = Crossing(z), torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    residual = torch.tensor([[1e-7, 0.0, 1e-7]], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    seen = Stretch(one, flat, -flat)
    crossing.claim(torch.tensor([True]), residual, 1e-7 * one, 1e-6 * one, 1e-16 * one, one, one < 0, seen)
    ghost = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    refused = crossing.refused(z, 1e-16, lambda x: x + residual - (1 - ghost) * (x - z) + ghost * (x - z).square())
    assert refused.tolist() == [True]


def test_what_was_not_seen_must_stretch_as_much_as_the_rest_shrinks(generator: torch.Generator) -> None:
    """For a map whose I - J has determinant one, the unseen stretches multiply to the seen responses."""
    responses = torch.tensor([30.0, 10.0, 3.0, 0.5, 1 / 450], dtype=torch.float64)
    left, right = (torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0] for _ in range(2))
    difference = left @ torch.diag(responses) @ right.mT
    moves = 1e-6 * right.mT[:3].unsqueeze(0)
    changes = -moves @ difference.mT
    noise, unit = torch.full((1,), 1e-16, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    unseen = unseen_stretch(moves, changes, noise, unit)
    assert float(unseen) == pytest.approx((2 * 450) ** 0.5, rel=1e-4)
    every = 1e-6 * right.mT.unsqueeze(0)
    assert float(unseen_stretch(every, -every @ difference.mT, noise, unit)) == 0
    inverse, norm = inverse_of(every, -every @ difference.mT, noise)
    torch.testing.assert_close(inverse[0], torch.linalg.inv(difference))
    assert float(norm) == pytest.approx(450, rel=1e-5)  # what rounding may have made is taken off
    _, hidden = inverse_of(every, -every @ difference.mT, 1e-9 * unit)
    assert hidden.isinf().all()  # rounding could have made the smallest response
