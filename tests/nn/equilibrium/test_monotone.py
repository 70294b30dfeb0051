from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.dynamics import Picard
from separatrix.nn import Exact, Implicit, MonotoneDEQ

SPLITTINGS = ["peaceman-rachford", "forward-backward"]


def layer(splitting: Any, generator: torch.Generator, **options: Any) -> MonotoneDEQ:
    return MonotoneDEQ(
        5,
        8,
        splitting=splitting,
        solver=Picard(tol=1e-10, max_steps=20000),
        on_fail="raise",
        generator=generator,
        dtype=torch.float64,
        **options,
    )


def test_the_weight_is_monotone_by_at_least_the_margin(generator: torch.Generator) -> None:
    weight = layer(SPLITTINGS[0], generator, margin=0.3).weight().detach()
    symmetric = torch.eye(8, dtype=torch.float64) - (weight + weight.mT) / 2
    assert float(torch.linalg.eigvalsh(symmetric).min()) >= 0.3 - 1e-12


@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_the_output_solves_the_original_equation_also_where_picard_diverges(
    splitting: str, generator: torch.Generator
) -> None:
    model = layer(splitting, generator)
    with torch.no_grad():
        model.skew.mul_(3)  # the spectral radius of W is now well above one
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    z = model(x)
    assert bool((torch.linalg.eigvals(model.weight()).abs().max() > 1.2).item())
    assert torch.allclose(z, torch.relu(z @ model.weight().mT + model.inject(x)), atol=1e-7)
    assert bool((z > 0).any())


def test_both_splittings_give_the_same_output_and_gradient(generator: torch.Generator) -> None:
    first = layer(SPLITTINGS[0], generator, backward=Exact())
    second = layer(SPLITTINGS[1], generator, backward=Implicit(solver=Picard(tol=1e-11, max_steps=20000)))
    second.load_state_dict(first.state_dict())
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    outputs = [model(x) for model in (first, second)]
    assert torch.allclose(*outputs, atol=1e-7)
    for output in outputs:
        output.pow(2).sum().backward()
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        assert a.grad is not None, name
        assert b.grad is not None, name
        assert torch.allclose(a.grad, b.grad, atol=1e-6), name


def test_copies_and_pickles_work(generator: torch.Generator) -> None:
    model = layer(SPLITTINGS[0], generator)
    x = torch.ones(2, 5, dtype=torch.float64)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(x), model(x))


def test_bad_options_are_refused(generator: torch.Generator) -> None:
    make = inspect.unwrap(MonotoneDEQ.__init__)
    with pytest.raises(InvalidInput, match=r"unknown splitting 'admm'. Known: forward-backward, peaceman-rachford"):
        make(MonotoneDEQ.__new__(MonotoneDEQ), 3, 4, splitting="admm", generator=generator)
    with pytest.raises(InvalidInput, match="margin must be a positive number"):
        MonotoneDEQ(3, 4, margin=0.0, generator=generator)
