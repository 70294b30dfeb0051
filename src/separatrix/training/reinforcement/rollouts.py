"""Steps of an agent in several environments at once, and their pieces to learn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy
import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.random import stream_seed

from .agent import Agent
from .states import begun_anew, rows_of, together, trimmed


@final
@dataclasses.dataclass(frozen=True)
class Piece:
    """Steps of one environment within one episode, and the state before the first of them."""

    start: int
    place: int
    length: int


@final
@dataclasses.dataclass
class Rollout:
    """What was seen, done and earned, (t, environments, ...), and what the agent thought of it."""

    seen: Tensor
    actions: Tensor
    rewards: Tensor
    ends: Tensor
    log_probabilities: Tensor
    values: Tensor
    states: list[Any]
    """Of the agent before each step."""
    last_value: Tensor

    def pieces(self, longest: int) -> list[Piece]:
        """The rollout cut at the ends of episodes, and where a piece would be longer than wanted."""
        found = []
        for place in range(self.ends.shape[1]):
            start = 0
            for t in range(len(self.ends)):
                if bool(self.ends[t, place]) or t - start + 1 == longest or t + 1 == len(self.ends):
                    found.append(Piece(start, place, t - start + 1))
                    start = t + 1
        return found

    def state_of(self, pieces: Sequence[Piece]) -> Any:
        """States before the first steps of some pieces."""
        return together([rows_of(self.states[piece.start], torch.tensor([piece.place])) for piece in pieces])

    def padded(self, table: Tensor, pieces: Sequence[Piece]) -> Tensor:
        """Rows of a table (t, environments, ...) by piece, filled up with zeros."""
        rows = [table[piece.start : piece.start + piece.length, piece.place] for piece in pieces]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@final
class Company:
    """Several environments side by side, each begun anew when its episode ends, with seeds of its own.

    Args:
        make: gives a new environment.
        n: how many.
        seed: with the number of the environment and of the episode, names the seed of an episode.
    """

    def __init__(self, make: Callable[[], Any], n: int, seed: int, name: str = "train") -> None:
        self.members = [make() for _ in range(n)]
        if not all(hasattr(self.members[0], name) for name in ("reset", "step")):
            raise InvalidInput(f"make must give environments with reset and step; it gave {self.members[0]!r}.")
        self.seed, self.name = seed, name
        self.n_episodes, self.earned = [0] * n, [0.0] * n
        self.finished: list[float] = []
        """Sums of rewards of the episodes that ended, in the order of their ends."""
        self.seen = numpy.stack([self._begin(place) for place in range(n)])

    def _begin(self, place: int) -> numpy.ndarray:
        seed = stream_seed(self.seed, self.name, place, self.n_episodes[place]) % 2**31
        self.n_episodes[place] += 1
        self.earned[place] = 0.0
        return numpy.asarray(self.members[place].reset(seed=seed)[0], dtype=numpy.float32)

    def step(self, actions: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Rewards and which episodes ended; ``seen`` is what comes next. A limit of time counts as an end."""
        rewards, ends = [], []
        for place, (member, action) in enumerate(zip(self.members, actions, strict=True)):
            seen, reward, over, late, _ = member.step(int(action))
            self.earned[place] += float(reward)
            rewards.append(float(reward))
            ends.append(bool(over or late))
            if ends[-1]:
                self.finished.append(self.earned[place])
                seen = self._begin(place)
            self.seen[place] = seen
        return torch.tensor(rewards), torch.tensor(ends)


def collect(
    agent: Agent, company: Company, state: Any, n_steps: int, generator: torch.Generator
) -> tuple[Rollout, Any]:
    """Let the agent act, and say in which state it is afterwards."""
    initial, rows = agent.initial_state(len(company.members)), []
    states = []
    with torch.no_grad():
        for _ in range(n_steps):
            seen = torch.from_numpy(company.seen.copy())
            states.append(state)
            logits, values, state = agent(seen.unsqueeze(1), state)
            chances = torch.log_softmax(logits.squeeze(1), -1)
            actions = torch.multinomial(chances.exp(), 1, generator=generator).squeeze(1)
            rewards, ends = company.step(actions.tolist())
            rows.append(
                (seen, actions, rewards, ends, chances.gather(1, actions.unsqueeze(1)).squeeze(1), values[:, 0])
            )
            state = trimmed(begun_anew(state, initial, ends), initial)
        last = agent(torch.from_numpy(company.seen.copy()).unsqueeze(1), state)[1][:, 0]
    seen, actions, rewards, ends, log_probabilities, values = map(torch.stack, zip(*rows, strict=True))
    return Rollout(seen, actions, rewards, ends, log_probabilities, values, states, last), state
