"""What is seen at a glance is what ``seen_stretch`` sees, whatever was looked at before."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separatrix.core import use_backend
from separatrix.dynamics.solve.convergence.glance import Pairs
from separatrix.dynamics.solve.convergence.stretch import seen_stretch
from separatrix.dynamics.solve.maps.stacks import Selection

WINDOW = 6


def steps_of(dtype: torch.dtype, generator: torch.Generator, n_steps: int) -> list[tuple[Tensor, Tensor]]:
    weight = 0.8 * torch.randn(30, 30, generator=generator, dtype=torch.float64) / 30**0.5
    x = torch.randn(7, 30, generator=generator, dtype=torch.float64).to(dtype)
    z, steps = torch.zeros_like(x), []
    for _ in range(n_steps):
        f = torch.tanh(z @ weight.to(dtype).mT) + x
        steps.append((z, f))
        z = f
    return steps


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("looks", [(2, 3, 4, 5, 6, 7, 8), (4, 5, 9), (11,)])
def test_a_glance_sees_what_a_look_sees(dtype: torch.dtype, looks: tuple[int, ...], generator: torch.Generator) -> None:
    steps, pairs = steps_of(dtype, generator, 11), Pairs(WINDOW - 1, directed=True)
    near = 200 * torch.finfo(dtype).eps
    for number in looks:
        window = steps[max(0, number - WINDOW) : number]
        mask = torch.arange(7) % number != 1
        unit = torch.linalg.vector_norm(window[-1][1], dim=1)[mask]
        noise = torch.finfo(dtype).eps * unit
        with use_backend("torch"):
            stretch, evidence, response = seen_stretch(window, Selection(mask), noise, unit)
        index = mask.nonzero()[:, 0].numpy()
        found = pairs.seen(window, number, index, noise.numpy(), unit.numpy())
        assert found is not None
        torch.testing.assert_close(torch.from_numpy(found.size), stretch.size.double(), rtol=near, atol=0)
        torch.testing.assert_close(torch.from_numpy(found.response), response.double(), rtol=near, atol=0)
        assert found.evidence.tolist() == evidence.tolist()
        kept = torch.zeros(2, 7, 30, dtype=dtype)
        pairs.write_directions(index, found.weights, kept)
        assert not kept[:, ~mask].any()
        for part, whole in zip((stretch.direction, stretch.response), kept, strict=True):
            torch.testing.assert_close(whole[mask], part, rtol=0, atol=1e3 * near)
        alone = Pairs(WINDOW - 1, directed=False).seen(window, number, index, noise.numpy(), unit.numpy())
        assert alone is not None
        torch.testing.assert_close(alone.size, found.size, rtol=near, atol=0)


def test_what_is_no_number_is_not_seen_at_a_glance(generator: torch.Generator) -> None:
    steps = steps_of(torch.float64, generator, 4)
    steps[-1][1][2] = torch.nan
    one = torch.ones(2, dtype=torch.float64).numpy()
    pairs = Pairs(WINDOW - 1, directed=True)
    assert pairs.seen(steps, 4, torch.tensor([1, 2]).numpy(), 1e-16 * one, one) is None
    assert pairs.seen(steps, 4, torch.tensor([1, 3]).numpy(), 1e-16 * one, one) is not None
