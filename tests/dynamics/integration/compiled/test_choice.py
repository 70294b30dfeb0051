"""When the compiled loop is used: where it is known, wanted, and worth it; the rest runs by torch and says so."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, use_backend
from separatrix.core.arithmetic.backend import has_numba
from separatrix.core.arithmetic.readiness import Readiness
from separatrix.dynamics import AttentionFlow, OjaFlow, integrate, random_tokens
from separatrix.dynamics.integration.compiled import choice

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")

COUPLING = torch.tensor([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.1, 0.0, 0.8]], dtype=torch.float64)
VALUE = torch.diag(torch.tensor([2.0, 1.0, -0.5], dtype=torch.float64))


def plain(**options: Any) -> AttentionFlow:
    return AttentionFlow.from_coupling(COUPLING, VALUE, **options)


def starts(n: int = 4) -> torch.Tensor:
    return random_tokens(n, 3, 2, generator=seeded(0))


def test_what_the_loop_does_not_know_runs_by_torch_with_the_same_answer() -> None:
    heads = AttentionFlow.from_coupling(torch.stack([COUPLING] * 2), torch.stack([VALUE, 0.1 * VALUE]), heads=True)
    biased = AttentionFlow(query=torch.eye(3), key=COUPLING, value=VALUE, query_bias=torch.ones(3).double())
    others = [
        heads,
        biased,
        plain(mask="causal"),
        plain(mask=torch.ones(4, 4, dtype=torch.bool)),
        plain(bias=torch.zeros(4, 4).double()),
        plain(value_bias=torch.ones(3).double()),
        plain(normalisation="uniform"),
        plain(normalisation="sinkhorn"),
        OjaFlow(VALUE),
    ]
    for flow in others:
        with use_backend("numba"):
            ours = integrate(flow, starts(), max_steps=60)
        with use_backend("torch"):
            theirs = integrate(flow, starts(), max_steps=60)
        assert ours.backend == "torch"
        assert torch.equal(ours.final, theirs.final)


@pytest.mark.parametrize("options", [{"times": [0.0, 1.0]}, {"method": "dop853"}, {"method": "rodas4"}])
def test_frames_and_other_methods_run_by_torch(options: dict[str, Any]) -> None:
    with use_backend("numba"):
        assert integrate(plain(), starts(), **options).backend == "torch"
        assert integrate(plain(), starts(), method="dp54").backend == "numba"


def test_the_backend_is_the_one_that_was_asked_for() -> None:
    for name in ("numba", "torch"):
        with use_backend(name):  # type: ignore[arg-type]
            assert integrate(plain(), starts()).backend == name


def test_weights_that_are_to_be_differentiated_are_left_to_torch() -> None:
    flow = AttentionFlow.from_coupling(COUPLING.clone().requires_grad_(), VALUE)
    with use_backend("numba"), torch.no_grad():
        assert integrate(flow, starts()).backend == "torch"


def test_auto_looks_into_the_cache_when_that_is_worth_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for cached in (False, True):
        readiness = Readiness(lambda kind, cached=cached: asked.append(kind) or cached, 0.5, 15.0)
        monkeypatch.setattr(choice, "_READINESS", readiness)
        with use_backend("auto"):
            assert integrate(plain(), starts()).backend == "torch"  # too little work to ask
            assert asked == []
            readiness.work = 0.5
            assert integrate(plain(), starts()).backend == ("numba" if cached else "torch")
            assert asked == [torch.float32]
            readiness.work = 15.0
            assert integrate(plain(), starts()).backend == "numba"  # worth compiling
        asked.clear()


def test_work_is_estimated_by_size_and_number() -> None:
    assert choice.seconds_by_torch(100, 10, 3) < 1 < choice.seconds_by_torch(100, 256, 64)


def test_a_short_integration_does_not_ask_for_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.dtype] = []
    fresh = Readiness(lambda dtype: bool(asked.append(dtype)), choice.IMPORT_AFTER, choice.COMPILE_AFTER)
    monkeypatch.setattr(choice, "_READINESS", fresh)
    with use_backend("auto"):
        assert integrate(plain(), starts(), max_steps=3).backend == "torch"
        assert not asked
        assert integrate(plain(), random_tokens(40, 3, 300, generator=seeded(0)), max_steps=3).backend == "torch"
        assert asked  # whether there is code, which takes an import


@pytest.mark.slow  # a process of its own
def test_a_short_integration_does_not_import_numba() -> None:
    code = (
        "import sys, torch; from separatrix.dynamics import AttentionFlow, integrate\n"
        "flow = AttentionFlow.from_coupling(torch.eye(2), torch.eye(2))\n"
        "integrate(flow, torch.eye(2), max_steps=3); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_code_is_found_where_it_was_compiled() -> None:
    choice.compile_loop(torch.float64)
    assert choice.is_cached(torch.float64)


def test_derivatives_forward_are_not_lost_in_the_loop() -> None:
    with use_backend("numba"), torch.autograd.forward_ad.dual_level():
        assert integrate(plain(), starts()).backend == "numba"
        for moved in (starts(), VALUE):
            dual = torch.autograd.forward_ad.make_dual(moved.clone(), torch.ones_like(moved))
            flow = plain() if moved is not VALUE else AttentionFlow.from_coupling(COUPLING, dual)
            with pytest.raises((InvalidInput, NotImplementedError), match="forward AD"):  # what torch has to say
                integrate(flow, dual if moved is not VALUE else starts())
