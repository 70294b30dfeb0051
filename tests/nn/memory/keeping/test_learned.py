"""The policy that is trained with its network."""

from __future__ import annotations

import copy

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.diagnose import gradient_paths
from separatrix.nn import Learned, RelLSTM, RelRNN


def network(spread: float = 0.0, **options: object) -> RelRNN:
    policy = Learned(6, spread=spread, generator=seeded(1), dtype=torch.float64)
    return RelRNN(3, 6, 2, 3, screening=policy, generator=seeded(0), dtype=torch.float64, **options)  # type: ignore[arg-type]


def sequences(batch: int = 2, steps: int = 12) -> torch.Tensor:
    return torch.randn(batch, steps, 3, generator=seeded(2), dtype=torch.float64)


def test_it_starts_as_the_policy_of_the_document() -> None:
    plain = RelRNN(3, 6, 2, 3, generator=seeded(0), dtype=torch.float64)
    own = network()
    x = sequences(steps=6)
    first, second = plain(x)[0], own(x)[0]
    assert torch.equal(own.last.relevant_index, plain.last.relevant_index)  # type: ignore[union-attr]
    assert torch.allclose(first[:, :3], second[:, :3])  # nothing has been kept yet
    assert not torch.allclose(first[:, 5:], second[:, 5:])  # kept states are gated


def test_gradients_of_its_weights_are_differences_of_the_loss() -> None:
    own, x = network(spread=0.5), sequences()
    policy = own.screening
    assert isinstance(policy, Learned)
    with torch.no_grad():
        policy.by_attention.zero_()  # attention counts without a gradient, which differences would see
    own(x)[0].square().sum().backward()
    assert policy.by_state.grad is not None
    for place in range(6):
        ends = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                policy.by_state[place] += step
                ends.append(own(x)[0].square().sum())
                policy.by_state[place] -= step
        assert float(policy.by_state.grad[place]) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_training_it_raises_the_score_of_what_is_worth_keeping() -> None:
    own, x = network(), sequences(batch=4)
    optimiser = torch.optim.Adam(own.screening.parameters(), lr=0.05)  # type: ignore[union-attr]
    losses = []
    for _ in range(8):
        optimiser.zero_grad()
        loss = -own(x)[0][:, -1].square().sum()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_its_weights_are_part_of_the_network_and_of_its_copies() -> None:
    own = network()
    assert "screening.by_state" in own.state_dict()
    other = copy.deepcopy(own)
    assert other.screening is not own.screening
    with torch.no_grad():
        other.screening.by_time.fill_(100.0)  # type: ignore[union-attr]
    x = sequences()
    own(x)
    other(x)
    assert other.last.relevant_index.tolist() == [[7, 8, 9]] * 2  # type: ignore[union-attr]
    assert own.last.relevant_index.tolist() != [[7, 8, 9]] * 2  # type: ignore[union-attr]


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(InvalidInput, match="carry_memory must be false"):
        network(carry_memory=True)
    with pytest.raises(ShapeError, match="is for 6 units; the network has 4"):
        RelLSTM(3, 4, screening=Learned(6))(torch.zeros(1, 3, 3))
    with pytest.raises(InvalidInput, match="paths cannot be followed"):
        gradient_paths(network(), sequences())
    with pytest.raises(InvalidInput, match="hidden_size"):
        Learned(0)
