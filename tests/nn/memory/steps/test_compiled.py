"""Compiled loops of attentive networks against the loop that autograd follows, and when they are used."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix import nn as layers
from separatrix.core import use_backend
from separatrix.core.arithmetic.backend import has_numba
from separatrix.core.arithmetic.keeping import digest
from separatrix.nn.memory.steps import compiled

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")

MAKERS: dict[str, Callable[..., Any]] = {
    "RelRNN": lambda **o: layers.RelRNN(5, 9, 3, 2, **o),
    "RelRNN, modReLU, share": lambda **o: layers.RelRNN(5, 9, 1, 3, nonlinearity="modrelu", normalise="share", **o),
    "RelRNN, relu, paper mix": lambda **o: layers.RelRNN(5, 6, 2, 2, (0.3, -0.6), nonlinearity="relu", **o),
    "RelRNN, linear, window": lambda **o: layers.RelRNN(5, 7, 4, 0, nonlinearity="linear", readout="s", **o),
    "RelRNN, larger than the sequence": lambda **o: layers.RelRNN(5, 6, 40, 40, **o),
    "RelLSTM, mean": lambda **o: layers.RelLSTM(5, 8, 4, 3, normalise="mean", **o),
    "MemRNN": lambda **o: layers.MemRNN(5, 9, **o),
    "MemLSTM": lambda **o: layers.MemLSTM(5, 6, log_attention=True, **o),
}


def everything(make: Callable[..., Any], backend: str, dtype: torch.dtype, lengths: Tensor | None) -> dict[str, Any]:
    """Outputs, ends, gradients by input and parameters, and what is left behind."""
    reference = backend == "plain"
    core = make(dtype=dtype, memory="store" if reference else "recompute")
    x = torch.randn(7, 17, 5, generator=seeded(3), dtype=torch.float64).to(dtype).requires_grad_()
    with use_backend("torch" if reference else backend):  # type: ignore[arg-type]
        output, state = core(x, lengths=lengths)
    ends = state if isinstance(state, tuple) else (state,)
    loss = (output * torch.linspace(-1, 1, output.numel(), dtype=dtype).view_as(output)).sum()
    loss = loss + sum((0.3 * end).sin().sum() for end in ends)
    gradients = torch.autograd.grad(loss, [x, *core.parameters()], allow_unused=True)
    names = ["x", *(name for name, _ in core.named_parameters())]
    numbers = {"output": output, **{f"end {i}": end for i, end in enumerate(ends)}}
    numbers |= {name: by for name, by in zip(names, gradients, strict=True) if by is not None}
    return {"numbers": {name: value.detach().double() for name, value in numbers.items()}, "last": core.last}


def errors(found: dict[str, Any], reference: dict[str, Any]) -> dict[str, float]:
    """Largest difference of each, relative to the largest number."""
    return {
        name: float((found["numbers"][name] - value).abs().max() / value.abs().max().clamp_min(1e-3))
        for name, value in reference["numbers"].items()
    }


def require_same_memory(found: Any, reference: Any, lengths: Tensor | None, tolerance: float) -> None:
    """What was attended to, how much, what was kept and with which scores, within the lengths."""
    for name in ("relevant_index", "scores"):
        own, other = getattr(found, name), getattr(reference, name)
        assert (own is None) == (other is None)
        if own is not None:
            assert torch.allclose(own.double(), other.double(), atol=tolerance)
    if reference.trace.indices is None:
        assert found.trace.indices is None
        return
    steps = torch.arange(17).unsqueeze(0)
    there = torch.ones(7, 17, dtype=torch.bool) if lengths is None else steps < lengths.unsqueeze(1)
    assert torch.equal(found.trace.indices[there].long(), reference.trace.indices[there].long())
    assert torch.allclose(found.trace.weights[there].double(), reference.trace.weights[there].double(), atol=tolerance)


@pytest.mark.parametrize("with_lengths", [False, True], ids=["full", "lengths"])
def test_numbers_and_gradients_are_those_of_plain_autograd(with_lengths: bool) -> None:
    lengths = torch.tensor([17, 0, 1, 3, 16, 5, 9]) if with_lengths else None
    for name, make in MAKERS.items():
        found = everything(make, "numba", torch.float64, lengths)
        reference = everything(make, "plain", torch.float64, lengths)
        worst = errors(found, reference)
        assert max(worst.values()) <= 1e-12, (name, worst)
        require_same_memory(found["last"], reference["last"], lengths, 1e-13)


@pytest.mark.parametrize(("dtype", "scale", "edge"), [(torch.float32, 60.0, 42.0), (torch.float64, 500.0, 340.0)])
def test_keys_and_queries_beyond_the_range_of_their_powers_are_compared_by_tanh(
    dtype: torch.dtype, scale: float, edge: float
) -> None:
    def make(**options: Any) -> Any:
        core = layers.RelRNN(5, 9, 3, 2, nonlinearity="relu", **options)  # of relu, because states differ in size
        with torch.no_grad():
            core.query_weight.mul_(scale)
            core.key_weight.mul_(scale)
        return core

    found, reference = everything(make, "numba", dtype, None), everything(make, "plain", dtype, None)
    largest = (reference["last"].trace.hidden @ make(dtype=dtype).key_weight.mT).abs().amax(-1)
    assert 0.1 < float((largest > edge).double().mean()) < 0.9
    # logits are as large as the scale, and so is their rounding
    worst = errors(found, reference)
    assert max(worst.values()) <= 30 * scale * torch.finfo(dtype).eps, worst


@pytest.mark.slow
def test_single_precision_is_as_near_as_that_of_torch() -> None:
    for name, make in MAKERS.items():
        reference = everything(make, "plain", torch.float64, None)
        ours = errors(everything(make, "numba", torch.float32, None), reference)
        theirs = errors(everything(make, "torch", torch.float32, None), reference)
        for key, error in ours.items():  # both round; neither may be much worse than the other
            assert error <= max(1e-6, 4 * theirs[key]), (name, key, error, theirs[key])


def test_the_rational_tanh_has_seven_digits() -> None:
    import numba

    from separatrix.nn.memory.steps import attend_loops

    @numba.njit
    def of_all(x, out):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            out[i] = attend_loops.tanh(x[i])

    x = numpy.concatenate([numpy.linspace(-30, 30, 60_001), [1e-30, -1e-7, 0.0, numpy.inf, -numpy.inf]])
    for dtype, bound in ((numpy.float32, 5e-7), (numpy.float64, 1e-15)):
        given = x.astype(dtype)
        out = numpy.empty_like(given)
        of_all(given, out)
        true = numpy.tanh(given.astype(numpy.float64))
        assert numpy.all(abs(out - true) <= bound * abs(true))
    out = numpy.empty(1, numpy.float32)
    of_all(numpy.array([numpy.nan], numpy.float32), out)
    assert numpy.isnan(out).all()


def test_a_sample_does_not_depend_on_its_batch_nor_nan_on_its_neighbours() -> None:
    core = layers.RelLSTM(4, 6, 2, 2, check=False, dtype=torch.float64)
    x = torch.randn(7, 12, 4, generator=seeded(1), dtype=torch.float64)
    with use_backend("numba"):
        together = core(x)[0]
        for sample in range(7):
            assert torch.equal(together[sample], core(x[sample : sample + 1])[0][0])
        x[2, 5, 0] = torch.nan
        spoiled = core(x)[0]
    assert spoiled[2, 5:].isnan().all()
    others = [0, 1, 3, 4, 5, 6]
    assert torch.equal(spoiled[others], together[others])


def test_the_way_back_may_be_walked_twice_and_again_with_a_graph() -> None:
    core = layers.RelRNN(3, 5, 2, 2, dtype=torch.float64)
    x = torch.randn(2, 9, 3, generator=seeded(2), dtype=torch.float64, requires_grad=True)
    with use_backend("numba"):
        value = core(x)[0].square().sum()
    first, second = (torch.autograd.grad(value, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    (by,) = torch.autograd.grad(value, x, create_graph=True)
    assert torch.allclose(by, first, atol=1e-12)
    (curvature,) = torch.autograd.grad(by.sum(), x)
    with use_backend("torch"):
        (plain,) = torch.autograd.grad(core(x)[0].square().sum(), x, create_graph=True)
    assert torch.allclose(curvature, torch.autograd.grad(plain.sum(), x)[0], atol=1e-10)


def test_an_output_changed_in_place_is_noticed() -> None:
    core = layers.RelRNN(3, 5, 2, 2, dtype=torch.float64)
    with use_backend("numba"):
        output = core(torch.ones(2, 9, 3, dtype=torch.float64))[0]
    output.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_graphs_are_freed() -> None:
    core = layers.RelRNN(3, 5, 2, 2, dtype=torch.float64)
    x = torch.randn(2, 9, 3, generator=seeded(2), dtype=torch.float64)
    gc.collect()
    gc.disable()
    try:
        counts = []
        for _ in range(4):
            with use_backend("numba"):
                core(x)[0].sum().backward()
            counts.append(sum(type(thing) is compiled.CompiledRun for thing in gc.get_objects()))
    finally:
        gc.enable()
    assert counts[-1] == counts[1]


@pytest.mark.parametrize(
    "options",
    [{"screening": "fifo"}, {"alignment": "dot"}, {"combine": "concat"}, {"detach_memory": True}],
    ids=lambda options: next(iter(options)),
)
def test_what_has_no_compiled_loop_runs_by_torch(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.CompiledRun, "forward", lambda *_: pytest.fail("compiled"))
    core = layers.RelRNN(3, 5, 2, 2, **options)
    half = layers.RelRNN(3, 5, 2, 2, dtype=torch.bfloat16)
    for network, x in ((core, torch.ones(2, 4, 3)), (half, torch.ones(2, 4, 3, dtype=torch.bfloat16))):
        with use_backend("torch"):
            wanted = network(x)[0]
        with use_backend("numba"):
            assert torch.equal(network(x)[0], wanted)


def test_memory_carried_on_from_a_compiled_window_is_that_of_torch() -> None:
    x = torch.randn(3, 14, 4, generator=seeded(5), dtype=torch.float64)
    for make in (layers.RelRNN, layers.RelLSTM, layers.MemRNN):
        places = (3, 2) if make is not layers.MemRNN else ()
        core = make(4, 6, *places, carry_memory=True, dtype=torch.float64)
        with use_backend("numba"):
            first, state = core(x[:, :8], lengths=torch.tensor([8, 2, 5]))
            second, _ = core(x[:, 8:], state)
        with use_backend("torch"):
            other, state = core(x[:, :8], lengths=torch.tensor([8, 2, 5]))
            another, _ = core(x[:, 8:], state)
        assert torch.allclose(first, other, atol=1e-13)
        assert torch.allclose(second, another, atol=1e-13)


def test_auto_begins_with_torch_and_changes_when_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_READINESS", compiled.Readiness(lambda dtype: False, 10, 40))
    runs: list[int] = []
    true = compiled.CompiledRun.forward
    monkeypatch.setattr(compiled.CompiledRun, "forward", lambda *given: runs.append(1) or true(*given))
    core = layers.RelRNN(3, 5, 2, 2, dtype=torch.float64)
    with use_backend("auto"):
        outputs = [core(torch.ones(1, 12, 3, dtype=torch.float64))[0] for _ in range(4)]
    assert runs == [1]
    assert torch.allclose(outputs[0], outputs[3], atol=1e-13)


def test_the_cache_on_disk_is_found_by_what_was_compiled_before() -> None:
    core = layers.RelRNN(3, 5, 2, 2, dtype=torch.float64)
    with use_backend("numba"):
        core(torch.ones(1, 4, 3, dtype=torch.float64))[0].sum().backward()
    assert compiled.is_cached(torch.float64)


def test_code_on_disk_is_out_of_date_when_a_file_changes_that_it_comes_from() -> None:
    from separatrix.dynamics.integration.compiled.loops import lanes, layout, powers
    from separatrix.nn.memory.steps import attend_cells, attend_lanes, attend_loops, attend_slots
    from separatrix.nn.recurrent.steps import elman_loops

    called = (elman_loops, attend_cells, attend_lanes, attend_slots, lanes, layout, powers)
    for function in (attend_loops.forward, attend_loops.backward):
        stamp = function._cache._cache_file._source_stamp
        assert all(digest(str(file.__file__)) in stamp for file in called)
        assert function._cache._impl.locator.get_source_stamp() in stamp
