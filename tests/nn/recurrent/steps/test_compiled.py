"""Compiled loops against the loops of torch: the same numbers up to rounding, and used only when told or worth it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix import nn as layers
from separatrix.core import use_backend
from separatrix.core.arithmetic.backend import has_numba
from separatrix.nn.recurrent.steps import compiled
from separatrix.nn.recurrent.steps.elman import NONLINEARITIES, AbstractNonlinearity, ElmanStep, Tanh
from separatrix.nn.recurrent.steps.scan import plain_scan, scan

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")

SHAPES = [(7, 1, 1), (3, 2, 5), (9, 7, 16), (5, 11, 33), (1, 3, 70)]
"""Time, batch, units: rows left over by tiles of five, columns left over by vectors, a single step."""


def drawn(step: ElmanStep, shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[Tensor, ...]:
    time, batch, n = shape
    generator = seeded(sum(shape))

    def draw(*sizes: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(*sizes, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    weights = (draw(n, n, scale=0.7 / n**0.5), *((draw(n, scale=0.2),) if step.phi.has_bias else ()))
    return draw(time, batch, n), draw(batch, n), *weights


def with_gradients(run: Callable[..., Tensor], given: tuple[Tensor, ...], gradient: Tensor) -> list[Tensor]:
    states = run(given[0], given[1], given[2:])
    return [states.detach(), *torch.autograd.grad(states, given, gradient)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("with_lengths", [False, True], ids=["full", "lengths"])
def test_states_and_gradients_are_those_of_the_plain_loop(dtype: torch.dtype, with_lengths: bool) -> None:
    tolerance = 1e-5 if dtype == torch.float32 else 1e-13  # roundings of at most 70 summands, a few steps
    for phi in NONLINEARITIES.values():
        for keep, rate in ((0.0, 1.0), (0.9, 0.3)):
            for shape in SHAPES:
                step, given = ElmanStep(phi, keep, rate), None
                given = drawn(step, shape, dtype)
                lengths = torch.arange(shape[1]) % (shape[0] + 1) if with_lengths else None
                gradient = torch.randn(shape[1], shape[0], shape[2], generator=seeded(1)).to(dtype).transpose(0, 1)
                with use_backend("numba"):
                    ours = with_gradients(lambda d, h, w: scan(step, d, h, w, lengths), given, gradient)  # noqa: B023
                plain = with_gradients(lambda d, h, w: plain_scan(step, d, h, w, lengths), given, gradient)  # noqa: B023
                for mine, theirs in zip(ours, plain, strict=True):
                    assert (mine - theirs).abs().max() <= tolerance * theirs.abs().max().clamp(min=1e-3)


def test_an_expanded_gradient_and_one_of_the_last_step_alone_arrive() -> None:
    step = ElmanStep(NONLINEARITIES["tanh"])
    given = drawn(step, (6, 4, 9), torch.float32)
    for read in (lambda states: states.sum(), lambda states: states[-1].square().sum()):
        found = []
        for name in ("numba", "torch"):
            with use_backend(name):  # type: ignore[arg-type]
                found.append(torch.autograd.grad(read(scan(step, *given[:2], given[2:])), given))
        for mine, theirs in zip(*found, strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_sums_of_outer_products_are_those_of_a_plain_product() -> None:
    from separatrix.nn.recurrent.steps import elman_loops

    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-12)):
        for terms, rows, columns in ((1, 1, 1), (3, 7, 33), (129, 6, 16), (300, 13, 40)):  # blocks and tiles left over
            left, right = (torch.randn(terms, n, generator=seeded(n), dtype=dtype) for n in (rows, columns))
            found = torch.from_numpy(elman_loops.outer_sums(left.numpy(), right.numpy()))
            assert torch.allclose(found, left.mT @ right, atol=tolerance)


def test_what_is_not_a_number_stays_in_its_sample() -> None:
    for phi in NONLINEARITIES.values():
        step = ElmanStep(phi)
        drives, initial, *weights = (part.detach() for part in drawn(step, (4, 7, 6), torch.float32))
        drives[1, 2, 3] = float("nan")
        drives[1, 4, 0] = float("inf")
        with use_backend("numba"):
            ours = scan(step, drives, initial, tuple(weights))
        plain = plain_scan(step, drives, initial, tuple(weights))
        assert torch.equal(ours.isnan(), plain.isnan())
        assert torch.isfinite(ours[:, [0, 1, 3, 5, 6]]).all()


def test_networks_train_alike_whichever_loop_they_run_by() -> None:
    ends = {}
    for name in ("torch", "numba"):
        with use_backend(name):  # type: ignore[arg-type]
            core = layers.NonNormalRNN(3, 10, dtype=torch.float64)
            optimiser = torch.optim.Adam(core.parameters(), lr=1e-2)
            x, target = torch.randn(6, 8, 3, generator=seeded(2)).double(), torch.zeros(6, 8, 10).double()
            for _ in range(20):
                optimiser.zero_grad()
                (core(x)[0] - target).square().mean().backward()
                optimiser.step()
        ends[name] = core.recurrent().detach()
    assert torch.allclose(ends["torch"], ends["numba"], atol=1e-9)


def test_gradients_run_by_the_loop_that_their_forward_pass_had(monkeypatch: pytest.MonkeyPatch) -> None:
    step = ElmanStep(NONLINEARITIES["relu"])
    given = drawn(step, (3, 2, 4), torch.float32)
    with use_backend("numba"):
        states = scan(step, *given[:2], given[2:])
    called: list[str] = []
    true = compiled.CompiledElmanKernel.backward_sequence
    monkeypatch.setattr(
        compiled.CompiledElmanKernel,
        "backward_sequence",
        lambda *arguments: called.append("compiled") or true(*arguments),
    )
    states.sum().backward()  # by now the backend is torch again
    assert called == ["compiled"]


class Softsign(AbstractNonlinearity):
    """A stranger's nonlinearity, which no compiled code knows."""

    name = "softsign"

    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        return a / (1 + a.abs())

    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        a.div_(1 + a.abs())

    def slope(self, value: Tensor) -> Tensor:
        return (1 - value.abs()).square()


def test_what_has_no_compiled_loop_runs_by_torch_even_when_numba_is_wanted() -> None:
    given = [part.detach() for part in drawn(ElmanStep(Tanh()), (3, 2, 4), torch.float32)]
    step = ElmanStep(Softsign())
    with use_backend("numba"):
        assert not compiled.runs_compiled(step, *given[:2], tuple(given[2:]))
        half = [part.bfloat16() for part in given]
        assert not compiled.runs_compiled(ElmanStep(NONLINEARITIES["tanh"]), *half[:2], tuple(half[2:]))
        assert torch.allclose(scan(step, *given[:2], tuple(given[2:])), plain_scan(step, *given[:2], tuple(given[2:])))


def test_auto_waits_until_the_work_outlasts_import_and_compilation() -> None:
    after = (compiled.IMPORT_AFTER, compiled.COMPILE_AFTER)
    readiness = compiled.Readiness(lambda dtype: bool(looks.append(dtype)), *after)
    looks: list[torch.dtype] = []
    assert not readiness.after(compiled.IMPORT_AFTER - 1, torch.float32)
    assert looks == []
    assert not readiness.after(1, torch.float32)
    assert not readiness.after(1, torch.float32)
    assert looks == [torch.float32]  # once
    assert readiness.after(compiled.COMPILE_AFTER, torch.float32)
    fresh = compiled.Readiness(lambda dtype: True, *after)
    assert fresh.after(compiled.IMPORT_AFTER, torch.float64)
    assert not compiled.Readiness(lambda dtype: True, *after).after(1, torch.float64)


def test_the_cache_on_disk_is_found_by_what_was_compiled_before() -> None:
    step = ElmanStep(NONLINEARITIES["linear"])
    given = drawn(step, (2, 1, 2), torch.float32)
    with use_backend("numba"):
        scan(step, *given[:2], given[2:]).sum().backward()
    assert compiled.is_cached(torch.float32)


def test_auto_leaves_large_products_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_READINESS", compiled.Readiness(lambda dtype: False, 0, 0))
    step = ElmanStep(NONLINEARITIES["relu"])
    sizes = (4, 1000, 2000)
    given = [[torch.zeros(1, batch, 64), torch.zeros(batch, 64)] for batch in sizes]
    for n_threads, expected in ((1, [True, True, False]), (4, [True, False, False])):
        monkeypatch.setattr(torch, "get_num_threads", lambda n_threads=n_threads: n_threads)
        with use_backend("auto"):
            assert [compiled.runs_compiled(step, *one, (torch.zeros(64, 64),)) for one in given] == expected
