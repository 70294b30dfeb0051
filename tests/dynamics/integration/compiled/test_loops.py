"""Each kernel against its plain twin, in both precisions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from helpers import seeded
from separatrix.core import Outcome
from separatrix.core.arithmetic.backend import has_numba
from separatrix.dynamics import AttentionFlow
from separatrix.dynamics.equilibria.clusters import cluster_means, find_clusters
from separatrix.dynamics.equilibria.stability import transversal_blocks
from separatrix.dynamics.flows.sphere import normalise, random_tokens
from separatrix.dynamics.integration.methods.base import Start
from separatrix.dynamics.integration.methods.runge_kutta import RungeKutta
from separatrix.dynamics.integration.methods.tableau import BS32, TSIT5

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")

# the parts in single precision are compared by the slow tests, and with all that they make up by test_carrying
KINDS = [pytest.param(numpy.float32, 3e-6, marks=pytest.mark.slow), (numpy.float64, 3e-14)]
SHAPES = [(1, 2), (2, 2), (10, 3), (7, 5), (33, 9), (50, 17)]
"""Tokens and dimension: vectors, tiles and blocks left over."""


def loops() -> Any:
    """All kernels in one name space."""
    from separatrix.dynamics.integration.compiled.loops import (
        carry,
        contraction,
        kernels,
        lanes,
        layout,
        merging,
        mixing,
        powers,
        report,
        steps,
        velocity,
    )

    modules = (layout, lanes, powers, mixing, velocity, steps, contraction, merging, carry, report, kernels)
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})


def drawn(n: int, d: int, beta: float = 1.0) -> tuple[AttentionFlow, torch.Tensor]:
    generator = seeded(100 * n + d)
    coupling, value = (torch.randn(d, d, generator=generator, dtype=torch.float64) / d**0.5 for _ in range(2))
    return AttentionFlow.from_coupling(coupling, value, beta), random_tokens(n, d, generator=generator)


class Memory:
    """Working memory with a state in it; compiled functions are called one by one."""

    def __init__(self, flow: AttentionFlow, x: torch.Tensor, kind: Any, sizes: Any = None) -> None:
        self.n, self.d = x.shape
        self.k = loops()
        self.at, length = self.k.places(self.n, self.d, TSIT5.n_stages, numpy.dtype(kind).itemsize)
        self.w = numpy.zeros(length, kind)
        self.exact = torch.stack([flow.weights.scaled_coupling[0], flow.value])[None].numpy().copy()
        self.sizes = numpy.ones((1, self.n), kind) if sizes is None else numpy.array([sizes], kind)
        self.k.put_weights(self.w, self.at, self.d, self.exact, 0, math.log2(math.e))
        tokens = x.numpy().astype(kind)[None]
        self.ld = self.k.put_rows(self.w, self.at, self.d, self.n, tokens, self.sizes, 0)

    def read(self, start: int) -> torch.Tensor:
        """Columns as rows."""
        part = self.w[start : start + self.d * self.ld].reshape(self.d, self.ld)
        return torch.as_tensor(part[:, : self.n].T.astype(numpy.float64))


@pytest.mark.parametrize(("kind", "tolerance"), KINDS)
def test_the_velocity_is_that_of_the_flow(kind: Any, tolerance: float) -> None:
    for n, d in SHAPES:
        for beta in (0.1, 3.0, 100.0, 1000.0):  # moderate logits, and those from which the largest is taken away
            flow, x = drawn(n, d, beta)
            rounded = x.numpy().astype(kind).astype(numpy.float64)
            memory = Memory(flow, x, kind)
            memory.k.velocity(memory.w, memory.at, d, n, memory.ld, memory.at.x, memory.at.slopes)
            exact = flow.velocity(torch.as_tensor(rounded))
            # a logit of this size is rounded by so much, and its weight by that factor
            logits = float((rounded @ flow.weights.scaled_coupling[0].numpy() @ rounded.T).__abs__().max())
            assert (memory.read(memory.at.slopes) - exact).abs().max() <= tolerance * (1 + logits) * float(flow.rate)


@pytest.mark.parametrize(("kind", "tolerance"), KINDS)
def test_rows_with_sizes_move_as_so_many_tokens(kind: Any, tolerance: float) -> None:
    flow, x = drawn(6, 3)
    sizes = [3.0, 1.0, 2.5, 0.0, 7.0, 1.0]
    memory = Memory(flow, x, kind, sizes)
    memory.k.velocity(memory.w, memory.at, 3, 6, memory.ld, memory.at.x, memory.at.slopes)
    rounded = torch.as_tensor(x.numpy().astype(kind).astype(numpy.float64))
    exact = flow.with_sizes(torch.tensor(sizes, dtype=torch.float64)).velocity(rounded)
    exact[3] = 0.0  # a place holder stays
    assert (memory.read(memory.at.slopes) - exact).abs().max() <= tolerance * float(flow.rate)


@pytest.mark.parametrize(("bits", "limit"), [(32, 8e-8), (64, 4e-18)])
def test_the_polynomials_are_as_near_to_powers_of_two_as_is_said(bits: int, limit: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    coefficients = [mpmath.mpf(number) for number in loops().EXPONENTIAL[bits]]
    with mpmath.workdps(30):
        points = [mpmath.mpf(i) / 400 for i in range(-200, 201)]
        worst = max(abs(mpmath.polyval(coefficients[::-1], r) / mpmath.power(2, r) - 1) for r in points)
    assert worst < max(limit, 2.0**-53 if bits == 64 else 0)  # the coefficients are rounded to float64


@pytest.mark.parametrize(("bits", "widest", "limit"), [(32, 64, 5.5e-8), (64, 32, 1.5e-17)])
def test_the_rest_of_a_part_is_as_near_as_is_said(bits: int, widest: int, limit: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    coefficients = [mpmath.mpf(number) for number in loops().REST_OF_PART[bits]]
    with mpmath.workdps(30):
        points = [mpmath.mpf(i) / (400 * widest) for i in range(-400, 401)]
        worst = max(abs((1 + r * mpmath.polyval(coefficients[::-1], r)) / mpmath.power(2, r) - 1) for r in points)
    assert worst < limit


@pytest.mark.parametrize("kind", [numpy.float32, numpy.float64])
def test_weighted_sums_of_blocks_are_those_of_numpy(kind: Any, generator: torch.Generator) -> None:
    k, block, length = loops(), 48, 37
    lanes = k.VECTOR_BYTES // numpy.dtype(kind).itemsize
    for n_terms in range(1, 10):
        w = torch.randn((n_terms + 2) * block, generator=generator, dtype=torch.float64).numpy().astype(kind)
        weights, terms = w[:n_terms].copy(), w[block : block * (1 + n_terms)].reshape(n_terms, block).copy()
        out = block * (1 + n_terms)
        before = w.copy()
        k.mix(w, n_terms, out, 0, block, block, length)
        whole = -(-length // lanes) * lanes  # vectors are filled up
        exact = weights.astype(float) @ terms.astype(float)[:, :whole]
        room = 8 * n_terms * numpy.finfo(kind).eps * (abs(weights).astype(float) @ abs(terms[:, :whole]).astype(float))
        assert (abs(w[out : out + whole] - exact) <= room).all()
        w[out : out + whole] = before[out : out + whole]
        assert (w == before).all()


@pytest.mark.parametrize(("kind", "tolerance"), [(numpy.float32, 3e-7), (numpy.float64, 4e-16)])
def test_powers_of_two_reach_from_the_smallest_normal_number_to_large_ones(kind: Any, tolerance: float) -> None:
    import numba

    k = loops()
    exp2, load, store = k.exp2, k.load_lanes, k.store

    @numba.njit
    def power(w: Any) -> None:
        store(w, 0, exp2(load(w, 0)))

    lanes = k.VECTOR_BYTES // numpy.dtype(kind).itemsize
    for first in numpy.linspace(-120, 60, 91):
        w = (first + numpy.arange(lanes) / lanes).astype(kind)
        exact = numpy.exp2(w.astype(numpy.float64))
        power(w)
        assert (numpy.abs(w / exact - 1) <= tolerance).all()
    w = numpy.full(lanes, numpy.nan, kind)
    w[0] = -1e30
    power(w)
    assert 0 <= w[0] < 2e-38
    assert numpy.isnan(w[1:]).all()


@pytest.mark.parametrize(("kind", "tolerance"), KINDS)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("tableau", [TSIT5, BS32], ids=lambda tableau: tableau.name)
def test_a_step_is_that_of_the_method(kind: Any, tolerance: float, tableau: Any) -> None:
    for n, d in SHAPES:
        flow, x = drawn(n, d)
        memory, h = Memory(flow, x, kind), 0.3 / float(flow.rate)
        rounded = torch.as_tensor(x.numpy().astype(kind).astype(numpy.float64))[None]
        start = Start(rounded, flow.velocity(rounded), torch.zeros(1).double(), torch.tensor([h], dtype=torch.float64))
        expected = RungeKutta(tableau).attempt(flow, start)
        w, at, table = memory.w, memory.at, tableau.rows().astype(kind)
        memory.k.velocity(w, at, d, n, memory.ld, at.x, at.slopes)
        error = memory.k.attempt(w, at, table, d, n, memory.ld, h)
        largest = float(torch.linalg.vector_norm(expected.errors, dim=-1).max())
        assert abs(error - largest) <= 10 * tolerance
        assert (memory.read(at.next) - expected.state[0]).abs().max() <= 10 * tolerance
        last = at.slopes + (tableau.n_stages - 1) * at.block
        assert (memory.read(last) - expected.velocity[0]).abs().max() <= 20 * tolerance * float(flow.rate)


def test_a_number_that_is_none_is_seen_in_speed_and_error() -> None:
    flow, x = drawn(20, 4)
    for token in (0, 7, 19):
        memory = Memory(flow, x, numpy.float32)
        w, at = memory.w, memory.at
        w[at.slopes : at.slopes + 4 * memory.ld] = 1.0
        w[at.slopes + memory.ld + token] = numpy.nan
        assert math.isnan(memory.k.largest_speed(w, at, 4, 20, memory.ld, at.slopes))
        assert math.isnan(memory.k.attempt(w, at, TSIT5.rows().astype(numpy.float32), 4, 20, memory.ld, 0.1))


@pytest.mark.parametrize("kind", [numpy.float32, numpy.float64])
def test_clusters_are_those_of_single_linkage(kind: Any) -> None:
    generator = seeded(3)
    for n, d in ((5, 2), (23, 3), (40, 6)):
        flow, _ = drawn(n, d)
        centres = random_tokens(4, d, generator=generator)
        labels = torch.randint(4, (n,), generator=generator)
        x = normalise(centres[labels] + 3e-4 * torch.randn(n, d, generator=generator, dtype=torch.float64))
        memory, roots = Memory(flow, x, kind), numpy.zeros(n, numpy.int64)
        found = memory.k.cluster(memory.w, memory.at, d, n, memory.ld, 1e-3, memory.sizes, 0, roots)
        expected = find_clusters(torch.as_tensor(x.numpy().astype(kind)), 1e-3)
        assert found == int(expected.n_clusters)
        same = roots[:, None] == roots[None]
        assert numpy.array_equal(same, (expected.labels[:, None] == expected.labels[None]).numpy())
        assert all(roots[i] == numpy.nonzero(same[i])[0][0] for i in range(n))


@pytest.mark.parametrize("kind", [numpy.float32, numpy.float64])
def test_a_quick_look_never_hides_that_half_of_the_rows_can_go(kind: Any) -> None:
    answers = []
    for case in range(40):
        generator = seeded(case)
        n, d = 3 + 5 * (case % 8), 2 + case % 4
        flow, _ = drawn(n, d)
        centres = random_tokens(n, d, generator=generator)
        labels = torch.randint(1 + case % n, (n,), generator=generator) if case % 4 else torch.arange(n)
        x = normalise(centres[labels] + 1e-4 * torch.randn(n, d, generator=generator, dtype=torch.float64))
        memory, roots = Memory(flow, x, kind), numpy.zeros(n, numpy.int64)
        rest = (memory.ld, 1e-3, memory.sizes, 0)
        halves = 2 * memory.k.cluster(memory.w, memory.at, d, n, *rest, roots) <= n
        may = memory.k.may_halve(memory.w, memory.at, n, *rest)
        assert may or not halves
        answers.append((halves, may))
    assert {(True, True), (False, False)} <= set(answers)  # both were asked for


def test_clusters_contract_where_their_transversal_block_says_so() -> None:
    k, answers = loops(), []
    for case in range(60):
        generator = seeded(case)
        d, m = 2 + case % 5, 1 + case % 4
        draw = [torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(2)]
        flow = AttentionFlow.from_coupling(*draw, 0.2 + case % 7)
        labels = torch.arange(m).repeat_interleave(2)
        x = random_tokens(m, d, generator=generator)[labels]
        w, sizes = cluster_means(x[None], labels[None], m, None)
        blocks = transversal_blocks(flow, w, sizes)
        expected = torch.linalg.eigvalsh((blocks + blocks.mT) / 2).amax(dim=-1)[0] < 0
        memory, n = Memory(flow, x, numpy.float64), 2 * m
        roots = numpy.arange(n) // 2 * 2
        f, vectors, squares = numpy.zeros(n * d), numpy.zeros((k.MERGE_VECTORS, max(n, d))), numpy.zeros((2, d, d))
        k.means(memory.w, memory.at, d, n, memory.ld, memory.sizes, 0, roots, f, vectors[6])
        for bound in (math.inf, float(numpy.linalg.norm(memory.exact[0], 2, axis=(-2, -1)).prod())):
            for a in range(m):
                arguments = (memory.exact, numpy.array([bound]), 0, d, n, f, vectors[6], roots, 2 * a, vectors, squares)
                assert k.contracts(*arguments) == bool(expected[a])
                answers.append(bool(expected[a]))
    assert 50 < sum(answers) < len(answers) - 50  # both answers were asked for


def test_what_is_told_of_the_ends_is_what_the_loop_left() -> None:
    k, generator = loops(), seeded(7)
    index, n, d = numpy.array([3, 0, 4, 1]), 5, 3
    codes = numpy.array([k.RESTING, k.BROKEN, k.SLOW, k.SMALL])
    tokens = torch.randn(4, n, d, generator=generator, dtype=torch.float64).numpy()
    labels = torch.randint(2, (4, n), generator=generator).numpy()
    numbers = torch.rand(4, k.N_NUMBERS, generator=generator, dtype=torch.float64).numpy()
    counts = torch.randint(1, 50, (4, k.N_COUNTS), generator=generator).numpy()
    counts[:, k.CODE] = codes
    final, whole, real = numpy.zeros((5, n, d)), numpy.zeros((k.N_WHOLE, 5), numpy.int64), numpy.zeros((k.N_REAL, 5))
    assert k.report(index, tokens, labels, numbers, counts, 6, final, whole, real) == (1, 1)
    lost = (codes == k.BROKEN)[:, None, None]
    spread = numpy.take_along_axis(tokens, labels[..., None], axis=1)
    numpy.testing.assert_array_equal(final[index], numpy.where(lost, numpy.nan, spread))
    numpy.testing.assert_array_equal(
        real[k.RESIDUAL, index], numpy.where(lost[:, 0, 0], numpy.nan, numbers[:, k.SPEED])
    )
    numpy.testing.assert_array_equal(real[k.ENDED, index], numbers[:, k.TIME])
    ends = [Outcome.CONVERGED, Outcome.NON_FINITE, Outcome.OUT_OF_STEPS, Outcome.OUT_OF_STEPS]
    assert whole[k.OUTCOME, index].tolist() == list(map(int, ends))
    assert (whole[k.ATTEMPTED, index] == counts[:, k.STEPS]).all()
    assert (whole[k.REFUSED, index] == counts[:, k.REJECTED]).all()
    assert (whole[k.EVALUATIONS, index] == 6 * counts[:, k.STEPS]).all()
    assert not whole[[k.SADDLES, k.RETURNS]].any()
    assert not final[2].any()  # an element that is not among them is left alone
