"""Advantages by brute force, gradients by hand, and agents on problems whose answer is known."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix import training
from separatrix.core.errors import InvalidInput
from separatrix.nn import FreeRNN, MemLSTM, RelLSTM, RelRNN
from separatrix.tasks import Choices, ObservedArrays, RecallCorridor
from separatrix.training.reinforcement import ppo, rollouts


@dataclasses.dataclass
class Bandit:
    """One step: each arm pays what it pays."""

    pays: tuple[float, ...]

    def __post_init__(self) -> None:
        self.action_space, self.observation_space = Choices(len(self.pays)), ObservedArrays((1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[numpy.ndarray, dict[str, Any]]:
        return numpy.ones(1), {}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        return numpy.ones(1), self.pays[action], True, False, {}


class Walk:
    """Places in a row; 1 at the right end, where it is over."""

    def __init__(self, n: int = 4) -> None:
        self.n, self.place = n, 0
        self.action_space, self.observation_space = Choices(2), ObservedArrays((n,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[numpy.ndarray, dict[str, Any]]:
        self.place = 0
        return self.seen(), {}

    def seen(self) -> numpy.ndarray:
        return numpy.eye(self.n)[self.place]

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        at_end = action == 1 and self.place == self.n - 1
        self.place = min(self.n - 1, self.place + 1) if action == 1 else max(0, self.place - 1)
        return self.seen(), float(at_end), at_end, False, {}


def agent_of(core: nn.Module, n_actions: int, seed: int = 0) -> training.Agent:
    return training.Agent(nn.Identity(), core, n_actions, 16, seed)


def test_advantages_are_the_sum_they_stand_for() -> None:
    generator = seeded(0)
    rewards, values = torch.randn(2, 9, 4, generator=generator, dtype=torch.float64)
    last = torch.randn(4, generator=generator, dtype=torch.float64)
    ends = torch.rand(9, 4, generator=generator) < 0.3
    for discount, decay in ((0.9, 0.7), (1.0, 1.0), (0.5, 0.0), (0.0, 0.9)):
        found = training.advantages(rewards, values, ends, last, discount, decay)
        following = torch.cat([values[1:], last.unsqueeze(0)])
        surprise = rewards + discount * following * ~ends - values
        for t in range(9):
            for place in range(4):
                total, factor = 0.0, 1.0
                for later in range(t, 9):
                    total += factor * float(surprise[later, place])
                    if ends[later, place]:
                        break
                    factor *= discount * decay
                assert math.isclose(float(found[t, place]), total, abs_tol=1e-12)
    with pytest.raises(InvalidInput, match=r"decay must be a number in \[0, 1\]; got 1.5"):
        training.advantages(rewards, values, ends, last, 0.9, 1.5)


def test_the_gradient_of_the_clipped_objective_is_that_of_the_text() -> None:
    ratios = torch.tensor([0.5, 0.9, 1.1, 1.5, 0.5, 0.9, 1.1, 1.5], dtype=torch.float64, requires_grad=True)
    gains = torch.tensor([1.0] * 4 + [-2.0] * 4, dtype=torch.float64)
    (by,) = torch.autograd.grad(training.clipped_objective(ratios, gains, 0.2).sum(), ratios)
    # a good action is no longer pushed beyond 1.2, a bad one no longer below .8
    assert by.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, -2.0, -2.0, -2.0]


def test_the_first_gradient_on_a_bandit_is_the_policy_gradient_by_hand() -> None:
    pays = (0.0, 1.0, 0.3)
    agent = agent_of(FreeRNN(1, 4, dtype=torch.float64), 3).double()
    settings = training.PpoSettings(n_frames=1, entropy=0.0, value_weight=0.0, standardise=False)
    company = rollouts.Company(lambda: Bandit(pays), 6, 0)
    company.seen = company.seen.astype(numpy.float64)
    rollout, _ = rollouts.collect(agent, company, agent.initial_state(6), 5, seeded(1))
    rollout.seen = rollout.seen.double()
    gains = training.advantages(rollout.rewards.double(), rollout.values, rollout.ends, rollout.last_value)
    loss, _ = ppo.piece_loss(agent, rollout, rollout.pieces(5), gains, gains, settings)
    bias = agent.actor[2].bias
    (by,) = torch.autograd.grad(loss, bias)
    with torch.no_grad():
        logits = agent(torch.ones(1, 1, 1, dtype=torch.float64), agent.initial_state(1))[0][0, 0]
    chances = torch.softmax(logits, -1)  # the same at every step: each episode has one
    expected = torch.zeros(3, dtype=torch.float64)
    for action, gain in zip(rollout.actions.flatten(), gains.flatten(), strict=True):
        expected -= gain * (nn.functional.one_hot(action, 3) - chances) / gains.numel()
    assert torch.allclose(by, expected, atol=1e-12)
    assert torch.allclose(gains, rollout.rewards.double() - rollout.values)  # one step: reward minus what was expected


@pytest.mark.parametrize(
    "core",
    [
        lambda: RelLSTM(4, 8, 2, 2, carry_memory=True),
        lambda: RelRNN(4, 8, 1, 1, carry_memory=True),
        lambda: MemLSTM(4, 8, carry_memory=True),
        lambda: FreeRNN(4, 8),
    ],
    ids=["RelLSTM", "RelRNN", "MemLSTM", "FreeRNN"],
)
def test_pieces_with_their_states_repeat_what_was_thought_while_acting(core: Any) -> None:
    agent, company = agent_of(core(), 3), rollouts.Company(lambda: RecallCorridor(2), 5, 0)
    state, generator = agent.initial_state(5), seeded(3)
    for _ in range(2):  # the second rollout begins in the middle of episodes
        rollout, state = rollouts.collect(agent, company, state, 15, generator)
    assert bool(rollout.ends.any())
    for longest in (1, 4, 15):
        pieces = rollout.pieces(longest)
        assert sum(piece.length for piece in pieces) == 75
        lengths = torch.tensor([piece.length for piece in pieces])
        there = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
        with torch.no_grad():
            logits, values, _ = agent(rollout.padded(rollout.seen, pieces), rollout.state_of(pieces), lengths)
        chances = torch.log_softmax(logits, -1).gather(2, rollout.padded(rollout.actions, pieces).unsqueeze(2))
        before = rollout.padded(rollout.log_probabilities, pieces)
        assert torch.allclose(chances.squeeze(2)[there], before[there], atol=1e-6)
        assert torch.allclose(values[there], rollout.padded(rollout.values, pieces)[there], atol=1e-6)


def test_a_bandit_is_solved_and_its_values_are_what_it_pays() -> None:
    agent = agent_of(FreeRNN(1, 4), 3)
    settings = training.PpoSettings(n_frames=1500, n_environments=10, n_steps=10, lr=0.02, batch_frames=50, entropy=0.0)
    training.train_agent(agent, lambda: Bandit((0.0, 1.0, 0.3)), settings)
    logits, values, _ = agent(torch.ones(1, 1, 1), agent.initial_state(1))
    assert torch.softmax(logits, -1)[0, 0, 1] > 0.95
    assert abs(float(values.detach()) - 1) < 0.1


@pytest.mark.slow
def test_values_along_a_walk_are_powers_of_the_discount() -> None:
    agent = agent_of(FreeRNN(4, 16), 2)
    settings = training.PpoSettings(
        n_frames=12_000, n_environments=10, n_steps=20, lr=5e-3, batch_frames=100, discount=0.8, entropy=0.0
    )
    training.train_agent(agent, Walk, settings)
    found = training.play(agent, Walk, 20)
    assert found.mean == 1.0
    with torch.no_grad():
        _, values, _ = agent(torch.eye(4).unsqueeze(0), agent.initial_state(1))
    best = torch.tensor([0.8**3, 0.8**2, 0.8, 1.0])  # of the way that goes straight on
    assert torch.allclose(values[0], best, atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_an_agent_with_bounded_memory_learns_what_one_without_cannot(seed: int) -> None:
    settings = training.PpoSettings(
        n_frames=8000, n_environments=8, n_steps=32, batch_frames=64, longest=8, lr=3e-3, seed=seed
    )
    agent = agent_of(RelLSTM(4, 16, 3, 3, carry_memory=True), 3, seed)
    training.train_agent(agent, lambda: RecallCorridor(3), settings)
    blind = agent_of(Forgetful(), 3, seed)
    training.train_agent(blind, lambda: RecallCorridor(3), settings)
    assert training.play(agent, lambda: RecallCorridor(3), 64, seed=seed).mean > 0.9
    assert training.play(blind, lambda: RecallCorridor(3), 64, seed=seed).mean < 0.75


class Forgetful(nn.Module):
    """Has no state: the best it can do is to guess."""

    input_size = hidden_size = 4

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x * self.scale, x.new_zeros(1, len(x), 1)


def test_runs_repeat_and_wrong_settings_are_named() -> None:
    ends = []
    for _ in range(2):
        agent = agent_of(RelRNN(4, 6, 2, 2, carry_memory=True), 3)
        settings = training.PpoSettings(n_frames=100, n_environments=4, n_steps=20, batch_frames=32)
        run = training.train_agent(agent, lambda: RecallCorridor(1), settings)
        ends.append((run.history.records, [parameter.detach().clone() for parameter in agent.parameters()]))
    assert ends[0][0] == ends[1][0]
    assert all(torch.equal(a, b) for a, b in zip(ends[0][1], ends[1][1], strict=True))
    with pytest.raises(InvalidInput, match="n_epochs must be an integer of at least 1; got 0"):
        training.PpoSettings(n_frames=1, n_epochs=0)
    with pytest.raises(InvalidInput, match="entropy must be a number of at least 0"):
        training.PpoSettings(n_frames=1, entropy=-1.0)


def test_playing_counts_each_environment_alike_and_leaves_the_agent_alone() -> None:
    agent = agent_of(RelRNN(4, 6, 2, 2, carry_memory=True), 3)
    before = [parameter.detach().clone() for parameter in agent.parameters()]
    found = training.play(agent, lambda: RecallCorridor(1), 10, n_environments=4)
    assert len(found.rewards) == 12
    assert set(found.rewards.tolist()) <= {0.0, 1.0}
    assert torch.equal(found.rewards, training.play(agent, lambda: RecallCorridor(1), 10, n_environments=4).rewards)
    assert all(torch.equal(a, b) for a, b in zip(before, agent.parameters(), strict=True))


def test_the_reader_of_grids_tells_missions_apart() -> None:
    reader = training.GridEncoder((7, 7, 3), 5)
    seen = torch.zeros(3, 147 + 4)
    seen[:, :147] = torch.randint(0, 5, (147,), generator=seeded(0))
    seen[0, 147:149], seen[1, 147:150] = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])
    features = reader(seen)
    assert features.shape == (3, reader.output_size)
    assert torch.equal(features[0, :64], features[1, :64])
    assert not torch.allclose(features[0, 64:], features[1, 64:])
    alone = torch.cat([reader(row.unsqueeze(0)) for row in seen])
    assert torch.allclose(features, alone, atol=1e-6)


class Unequal:
    """Episodes of lengths in turn, ended by a goal or by a limit; the observation tells episode, step and action."""

    action_space, observation_space = Choices(3), ObservedArrays((3,))

    def __init__(self, lengths: tuple[int, ...], limited: bool) -> None:
        self.lengths, self.limited, self.episode, self.time = lengths, limited, -1, -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[numpy.ndarray, Any]:
        self.episode, self.time = self.episode + 1, 0
        return numpy.array([self.episode, 0, 0], dtype=numpy.float32), {}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, Any]:
        assert self.time >= 0, "a step after the end"
        self.time += 1
        seen = numpy.array([self.episode, self.time, action], dtype=numpy.float32)
        ends = self.time >= self.lengths[self.episode % len(self.lengths)]
        self.time = -1 if ends else self.time
        return seen, 1.0, ends and not self.limited, ends and self.limited, {}


@pytest.mark.sampled(1, each="kind")
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("kind", [RelLSTM, MemLSTM])
def test_memory_is_that_of_the_episode_over_rollouts_and_never_of_another(kind: Any, limited: bool) -> None:
    places = () if kind is MemLSTM else (2, 2)
    agent = training.Agent(nn.Identity(), kind(3, 5, *places, carry_memory=True, generator=seeded(0)), 3, 8)
    lengths = iter(((3, 1, 5, 2), (7,), (1,), (40,)))
    company = rollouts.Company(lambda: Unequal(next(lengths), limited), 4, 0)
    state, parts = agent.initial_state(4), []
    for _ in range(2):
        rollout, state = rollouts.collect(agent, company, state, 17, seeded(1))
        parts.append((rollout.seen, rollout.ends, rollout.values))
    seen, ends, values = (torch.cat(pair) for pair in zip(*parts, strict=True))
    for place in range(4):
        cuts = [0, *(ends[:, place].nonzero().squeeze(1) + 1).tolist(), 34]
        for first, last in itertools.pairwise(cuts):
            with torch.no_grad():
                alone = agent(seen[None, first:last, place], agent.initial_state(1))[1][0]
            torch.testing.assert_close(alone, values[first:last, place], atol=1e-5, rtol=1e-4)


def test_building_and_training_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    agent = agent_of(RelLSTM(4, 6, 2, 2, carry_memory=True), 3)
    training.GridEncoder((7, 7, 3), 5)
    training.train_agent(
        agent, RecallCorridor, training.PpoSettings(n_frames=32, n_environments=2, n_steps=8, batch_frames=16)
    )
    assert torch.equal(before, torch.get_rng_state())


def test_what_cannot_learn_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"carry_memory=True, or RelLSTM forgets its memory"):
        agent_of(RelLSTM(4, 6, 2, 2), 3)
    with pytest.raises(InvalidInput, match="Linear has no input_size"):
        agent_of(nn.Linear(4, 4), 3)
    agent = agent_of(FreeRNN(4, 6), 3)
    with pytest.raises(InvalidInput, match="make must give environments with reset and step; it gave 3"):
        training.train_agent(agent, lambda: 3, training.PpoSettings(n_frames=8))
    for name, value in (("discount", 2), ("decay", -0.1), ("discount", math.nan), ("decay", "x")):
        with pytest.raises(InvalidInput, match=f"{name} must be a number in"):
            training.PpoSettings(n_frames=8, **{name: value})  # type: ignore[arg-type]
