"""What an agent earns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.networks.modes import evaluation_mode
from separatrix.core.random import spawn
from separatrix.core.result import Result

from .agent import Agent
from .rollouts import Company
from .states import begun_anew, trimmed


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Episodes(Result):
    """Episodes that an agent went through."""

    rewards: Float[Tensor, " n"]
    """Sum of rewards of each."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.rewards.mean())


def play(
    agent: Agent,
    make: Callable[[], Any],
    n_episodes: int,
    *,
    n_environments: int = 16,
    greedy: bool = False,
    seed: int = 0,
) -> Episodes:
    """Let an agent act in fresh episodes, without learning.

    Each environment plays its share of the episodes to the end: were the first to end counted, short ones would be
    counted too often.

    Args:
        agent: who acts.
        make: gives a new environment.
        n_episodes: how many; rounded up to a multiple of ``n_environments``.
        n_environments: side by side.
        greedy: whether the likeliest action is taken; else actions are drawn as in training.
        seed: of episodes and actions; those of training are others.
    """
    require_integer(n_episodes, "n_episodes", at_least=1)
    n_environments = min(require_integer(n_environments, "n_environments", at_least=1), n_episodes)
    share = -(-n_episodes // n_environments)
    company, generator = Company(make, n_environments, seed, "play"), spawn(seed, "play")
    initial = agent.initial_state(n_environments)
    state, found = initial, [[] for _ in range(n_environments)]  # type: ignore[var-annotated]
    with evaluation_mode(agent), torch.no_grad():
        while min(map(len, found)) < share:
            logits, _, state = agent(torch.from_numpy(company.seen.copy()).unsqueeze(1), state)
            chances = torch.softmax(logits.squeeze(1), -1)
            actions = chances.argmax(1) if greedy else torch.multinomial(chances, 1, generator=generator).squeeze(1)
            earned = list(company.earned)
            rewards, ends = company.step(actions.tolist())
            for place in ends.nonzero().squeeze(1).tolist():
                found[place].append(earned[place] + float(rewards[place]))
            state = trimmed(begun_anew(state, initial, ends), initial)
    return Episodes(torch.tensor([reward for own in found for reward in own[:share]]))
