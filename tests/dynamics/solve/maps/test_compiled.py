"""The compiled loops of a solve against their plain twins, alone and within whole solves."""

from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import use_backend
from separatrix.dynamics import Anderson, Broyden, find_equilibrium
from separatrix.dynamics.solve.convergence.crossing import Crossing
from separatrix.dynamics.solve.convergence.error import ErrorEstimate
from separatrix.dynamics.solve.convergence.stretch import Stretch, seen_stretch
from separatrix.dynamics.solve.find import _rested
from separatrix.dynamics.solve.maps import compiled
from separatrix.dynamics.solve.maps.absorbed import Slots, absorbed
from separatrix.dynamics.solve.maps.counted import CountedMap
from separatrix.dynamics.solve.maps.stacks import Selection
from separatrix.dynamics.solve.methods.anderson import AndersonHistory
from separatrix.dynamics.solve.methods.broyden import BroydenHistory

numba = pytest.importorskip("numba")
PRECISIONS = {torch.float32: 2e-5, torch.float64: 1e-12}


def linear_steps(batch: int, dim: int, count: int, dtype: torch.dtype):
    """States and images of a linear map, with its matrix."""
    generator = seeded(batch + dim)
    matrix = torch.randn(dim, dim, generator=generator, dtype=dtype) / (2 * dim**0.5)
    states = [torch.randn(batch, dim, generator=generator, dtype=dtype) for _ in range(count)]
    return matrix, [(z, z @ matrix.mT) for z in states]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("count", [2, 4, 6])
def test_stretch_agrees_with_its_twin(dtype: torch.dtype, count: int) -> None:
    for batch, dim in ((7, 9), (3, 1), (4, 30)):
        matrix, steps = linear_steps(batch, dim, count, dtype)
        rows = Selection(torch.arange(batch) != 1)
        noise = torch.full((batch,), 1e-6, dtype=dtype)[1:]
        unit = torch.linspace(0.1, 9.0, batch, dtype=dtype)[1:]
        with use_backend("torch"):
            plain, *expected_counts = seen_stretch(steps, rows, noise, unit)
        with use_backend("numba"):
            swift, *counts = seen_stretch(steps, rows, noise, unit)
        tol = PRECISIONS[dtype]
        torch.testing.assert_close(swift.size, plain.size, rtol=10 * tol, atol=tol)
        assert torch.equal(counts[0], expected_counts[0])
        torch.testing.assert_close(counts[1], expected_counts[1], rtol=10 * tol, atol=0)
        # the signs of eigenvectors are free, so the direction is; what it did to the residual is not
        expected = swift.direction @ (matrix - torch.eye(dim, dtype=dtype)).mT
        torch.testing.assert_close(swift.response, expected, rtol=100 * tol, atol=100 * tol)
        assert (torch.linalg.vector_norm(swift.direction, dim=-1) > 0).all()


def test_stretch_of_rows_that_are_not_numbers_agrees() -> None:
    _, steps = linear_steps(5, 4, 5, torch.float64)
    steps[1][0][0] = torch.nan
    for z, f in steps:
        z[1] = 1.0
        f[1] = 1.0
    steps[3][1][2, 1] = torch.inf
    rows, ones = Selection(torch.ones(5, dtype=torch.bool)), torch.ones(5, dtype=torch.float64)
    with use_backend("torch"):
        plain, *expected_counts = seen_stretch(steps, rows, 1e-6 * ones, ones)
    with use_backend("numba"):
        swift, *counts = seen_stretch(steps, rows, 1e-6 * ones, ones)
    torch.testing.assert_close(swift.size, plain.size, rtol=1e-9, atol=0)
    assert torch.equal(counts[0], expected_counts[0])
    assert torch.isfinite(swift.direction).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_mixing_agrees_with_its_twin(dtype: torch.dtype) -> None:
    generator = seeded(3)
    for n_steps in (2, 5, 6, 9):
        history = AndersonHistory(torch.zeros(6, 20, dtype=dtype), 5, None)
        for _ in range(n_steps):
            residual = torch.randn(6, 20, generator=generator, dtype=dtype)
            residual[4] = 1.0  # all alike: weights are a matter of rounding
            residual[5] = torch.nan  # none: the newest
            slots = history.slots()
            slots.residuals[:, slots.place] = residual
            slots.images[:, slots.place] = torch.randn(6, 20, generator=generator, dtype=dtype)
            history.count()
        with use_backend("torch"):
            plain = history.mixed()
        with use_backend("numba"):
            swift = history.mixed()
        told = [0, 1, 2, 3, 5]
        tol = 1e3 * PRECISIONS[dtype]
        torch.testing.assert_close(swift[told], plain[told], rtol=tol, atol=tol)
        assert torch.equal(swift[5], history.images[5, (n_steps - 1) % 6])
        assert torch.isfinite(swift[4]).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_step_is_taken_in_as_its_twin_does(dtype: torch.dtype) -> None:
    z, f = (torch.randn(5, 40, generator=seeded(8), dtype=dtype) for _ in range(2))
    f[1, 3], f[2, 0] = torch.nan, torch.inf
    for keeps in (True, False, None):
        found = []
        for backend in ("torch", "numba"):
            stacks = [torch.zeros(5, 3, 40, dtype=dtype) for _ in range(2)]
            slots = None if keeps is None else Slots(stacks[0], stacks[1] if keeps else None, 1)
            with use_backend(backend):
                found.append((*absorbed(z, f, slots, True), *stacks))
        plain, swift = found
        for one, other in zip(plain, swift, strict=True):
            torch.testing.assert_close(
                torch.as_tensor(one), torch.as_tensor(other), rtol=PRECISIONS[dtype], atol=0, equal_nan=True
            )
        if keeps is not None:
            assert torch.equal(swift[3][:, 1].nan_to_num(), (f - z).nan_to_num())
            assert torch.equal(swift[4][:, 1].nan_to_num(), f.nan_to_num() if keeps else torch.zeros_like(f))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_steps_of_broyden_agree_with_their_twin(dtype: torch.dtype) -> None:
    start = torch.zeros(4, 15, dtype=dtype)
    matrix = torch.randn(15, 15, generator=seeded(9), dtype=dtype) / 8
    offset = torch.randn(4, 15, generator=seeded(10), dtype=dtype)
    walks = []
    for backend in ("torch", "numba"):
        z, solver = start, Broyden(memory=6)
        history = solver.begin(CountedMap(lambda v: v, z.shape, dtype), z)
        assert isinstance(history, BroydenHistory)
        walk = []
        for _ in range(9):  # a restart among them
            f = z @ matrix.mT + offset
            with use_backend(backend):
                residual, *_ = absorbed(z, f, solver.slots(history), True)
                z = solver.propose(history, z, f, residual.clone())
            walk.append(z)
        walks.append(torch.stack(walk))
    # residuals fall to rounding, and with them what the steps agree in
    torch.testing.assert_close(walks[1], walks[0], rtol=0, atol=1e3 * PRECISIONS[dtype])
    assert (walks[0][-1] - walks[0][-1] @ matrix.mT - offset).norm() < 1e-2 * offset.norm()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("directed", [True, False])
def test_errors_at_a_glance_are_those_of_the_long_way(dtype: torch.dtype, directed: bool) -> None:
    basis = torch.linalg.qr(torch.randn(12, 12, generator=seeded(6), dtype=torch.float64))[0]
    # symmetric, between 0.3 and 0.9: steps tell everything, and nobody is suspected
    matrix = (basis * torch.linspace(0.3, 0.9, 12, dtype=torch.float64) @ basis.mT).to(dtype)
    offset = torch.randn(6, 12, generator=seeded(4), dtype=dtype)

    def image(z: torch.Tensor) -> torch.Tensor:
        raise AssertionError("nobody probes")

    found = []
    for way in ("long", "torch", "numba"):
        z = torch.zeros(6, 12, dtype=dtype)
        estimate = ErrorEstimate(z, lambda rounding: 1e-3, directed=directed)
        errors = []
        with use_backend("numba" if way == "numba" else "torch"):
            for step in range(9):
                f = z @ matrix.mT + offset
                estimate.learn(z, f)
                wanted = torch.tensor([True, step > 4, True, False, step % 2 == 0, True])
                no, scale = torch.zeros(6, dtype=torch.bool), f.norm(dim=-1)
                columns = (wanted, (f - z).norm(dim=-1), scale, scale, no, no)
                if step >= 4:
                    given = columns if way == "long" else [column.numpy() for column in columns]
                    errors.append(torch.as_tensor(estimate.errors(*given, float(torch.finfo(dtype).eps), image)))
                z = f
        found.append((torch.stack(errors), estimate.slowest))
    for errors, slowest in found[1:]:
        torch.testing.assert_close(errors, found[0][0], rtol=max(1e-6, 1e3 * PRECISIONS[dtype]), atol=0)
        torch.testing.assert_close(slowest.size, found[0][1].size, rtol=max(1e-6, 1e3 * PRECISIONS[dtype]), atol=0)
        if directed:  # signs of the parts are free; what they did to the residual is not
            expected = slowest.direction @ (matrix - torch.eye(12, dtype=dtype)).mT
            torch.testing.assert_close(slowest.response, expected, rtol=0, atol=1e3 * PRECISIONS[dtype])


def test_who_is_finished_rests() -> None:
    z, proposal = torch.zeros(3, 4), torch.full((3, 4), torch.nan)
    proposal[1] = 2.0
    running = torch.tensor([False, True, False])
    for backend in ("torch", "numba"):
        with use_backend(backend):
            rested = _rested(proposal, running.numpy(), z)
        assert rested.tolist() == [[0.0] * 4, [2.0] * 4, [0.0] * 4]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_whole_solves_end_alike(dtype: torch.dtype) -> None:
    generator = seeded(5)
    weight = torch.randn(12, 12, generator=generator, dtype=dtype)
    shift = torch.randn(40, 12, generator=generator, dtype=dtype)
    scales = torch.linspace(0.05, 1.8, 40, dtype=dtype)[:, None]  # the last ones have no stable equilibrium

    def image(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(scales * (z @ weight.mT)) + shift

    solutions = []
    for backend in ("torch", "numba"):
        with use_backend(backend), pytest.warns():
            solutions.append(find_equilibrium(image, Anderson(max_steps=30), 0 * shift, throw=False))
    plain, swift = solutions
    assert 5 < plain.n_failed < 35
    assert (plain.outcome != swift.outcome).sum() <= 1
    both = (plain.outcome == 0) & (swift.outcome == 0)
    torch.testing.assert_close(swift.value[both], plain.value[both], rtol=1e-3, atol=1e-3)


def test_what_has_no_compiled_loop_stays_with_torch() -> None:
    z = torch.zeros(3, 2)
    with use_backend("numba"):
        assert compiled.runs_compiled(z)
        assert not compiled.runs_compiled(z.half())
        assert not compiled.runs_compiled(z[:0])
        assert not compiled.runs_compiled(torch.nn.Parameter(z))
        assert torch.func.vmap(lambda row: row + compiled.runs_compiled(row))(z).sum() == 0
    with use_backend("torch"):
        assert not compiled.runs_compiled(z)


def test_auto_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = compiled.Readiness(lambda dtype: dtype is torch.float32, 3.0, 6.0)
    monkeypatch.setattr(compiled, "_READINESS", ready)
    single, double = torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.float64)
    with use_backend("auto"):
        assert [compiled.runs_compiled(single) for _ in range(4)] == [False, False, True, True]
        assert [compiled.runs_compiled(double) for _ in range(4)] == [False, False, True, True]
        monkeypatch.setattr(compiled, "MOST_NUMBERS", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
        assert not compiled.runs_compiled(single)
    assert compiled.is_cached(torch.float64) in (True, False)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_examination_of_claims_agrees_with_its_twin(dtype: torch.dtype) -> None:
    """Where claims look, what they predict, who saw it, who differs on both sides, and the slowest unit."""
    batch, dim = 40, 9
    generator = seeded(5)
    best, residual, moved, seen, noticed, other = (
        torch.randn(batch, dim, generator=generator, dtype=dtype) for _ in range(6)
    )
    residual[3] = 0.0
    residual[5, 2] = torch.nan
    moved[:, 1] = 0.0
    error, allowed = (torch.rand(batch, generator=generator, dtype=dtype) + 0.1 for _ in range(2))
    noise, unit = torch.full_like(error, 1e-3), torch.full_like(error, 5.0)
    found = {}
    for backend in ("torch", "numba"):
        with use_backend(backend):
            crossing = Crossing(best)
            for rows in (torch.arange(batch) % 3 == 0, torch.arange(batch) % 3 != 0):
                grown = torch.zeros_like(rows)
                crossing.claim(rows, residual, error, allowed, noise, unit, grown, Stretch(error, moved, seen))
            near = crossing._residual + crossing._predicted + 0.3 * noticed
            found[backend] = (
                crossing._look,
                crossing._predicted,
                crossing._residual,
                crossing._as_predicted(near),
                crossing._differ(noticed, torch.where(other > 1, other, -noticed), 0.1 * allowed),
                *crossing._slowest_unit(best, near, 1e-3),
            )
    tol = PRECISIONS[dtype]
    for plain, swift in zip(found["torch"], found["numba"], strict=True):
        if plain.dtype == torch.bool:
            assert torch.equal(plain, swift)
            assert 0 < int(plain.sum()) < batch
        else:
            torch.testing.assert_close(swift, plain, rtol=tol, atol=tol, equal_nan=True)
