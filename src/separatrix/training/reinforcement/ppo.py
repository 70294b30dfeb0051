"""Proximal policy optimisation of agents with memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn
from separatrix.core.result import Result

from ..log import History
from .advantages import advantages, require_share
from .agent import Agent
from .rollouts import Company, Piece, Rollout, collect


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class PpoSettings:
    """Everything a run is decided by, beside agent and environment.

    Args:
        n_frames: steps in environments, all together.
        n_environments: side by side.
        n_steps: of each, between two rounds of learning.
        longest: steps through which gradients go back; memory from before is there, without gradient.
        n_epochs: how often each rollout is learned from.
        batch_frames: steps of an update, at least.
        lr: learning rate of Adam.
        discount: gamma.
        decay: lambda of the advantages.
        clip: how far the chance of an action may move, as a ratio, before it stops to count.
        entropy: weight of the entropy of actions.
        value_weight: weight of the error of expected rewards.
        clip_norm: largest norm of the gradient.
        standardise: whether the advantages of a rollout are brought to mean 0 and deviation 1.
        seed: of episodes, actions and order.
    """

    n_frames: int
    n_environments: int = 16
    n_steps: int = 128
    longest: int = 16
    n_epochs: int = 4
    batch_frames: int = 256
    lr: float = 1e-3
    discount: float = 0.99
    decay: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    clip_norm: float = 0.5
    standardise: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_frames", "n_environments", "n_steps", "longest", "n_epochs", "batch_frames"):
            require_integer(getattr(self, name), name, at_least=1)
        for name in ("lr", "clip", "clip_norm"):
            require_positive(getattr(self, name), name)
        for name in ("discount", "decay"):
            require_share(getattr(self, name), name)
        for name in ("entropy", "value_weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidInput(f"{name} must be a number of at least 0; got {getattr(self, name)!r}.")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class AgentRun(Result):
    """How an agent learned."""

    settings: PpoSettings
    history: History
    """By frames: mean sum of rewards of the episodes that ended, their number, entropy, error of the values, share of
    actions whose chance was clipped."""
    ending: str
    """``"finished"``, or ``"diverged"`` if a loss was not finite; the agent holds the last good parameters."""
    n_frames: int


def clipped_objective(ratios: Float[Tensor, " n"], gains: Float[Tensor, " n"], clip: float) -> Float[Tensor, " n"]:
    r""":math:`\min\bigl(r\hat A,\ \mathrm{clip}(r, 1-\epsilon, 1+\epsilon)\hat A\bigr)`, to be made large.

    Args:
        ratios: chance of each action now over that when it was taken.
        gains: advantages.
        clip: epsilon.

    Source: Schulman et al. 2017, arXiv 1707.06347, Eq. (7).

    Example:
        >>> clipped_objective(torch.tensor([2.0, 2.0]), torch.tensor([1.0, -1.0]), 0.2)
        tensor([ 1.2000, -2.0000])
    """
    return torch.minimum(ratios * gains, ratios.clamp(1 - clip, 1 + clip) * gains)


def train_agent(agent: Agent, make: Callable[[], Any], settings: PpoSettings) -> AgentRun:
    """Let an agent learn from rewards, by proximal policy optimisation.

    The rollout is cut into pieces at the ends of episodes and after ``longest`` steps. A piece begins with the state
    the agent had there, its memory included, so that a first look finds the chances with which the rollout was made.

    Args:
        agent: changed in place.
        make: gives a new environment with gymnasium's interface and arrays as observations.
        settings: the page of settings.

    Source: Schulman et al. 2017, arXiv 1707.06347, Algorithm 1.

    Cost: for each frame one step of the agent, and ``n_epochs`` steps forward and back.
    """
    company = Company(make, settings.n_environments, settings.seed)
    generator = spawn(settings.seed, "ppo")
    optimiser = torch.optim.Adam(agent.parameters(), lr=settings.lr)
    state, history, n_done = agent.initial_state(settings.n_environments), History(), 0
    agent.train()
    while n_done < settings.n_frames:
        rollout, state = collect(agent, company, state, settings.n_steps, generator)
        n_done += settings.n_steps * settings.n_environments
        told = _learn(agent, optimiser, rollout, settings, generator)
        if told is None:
            return AgentRun(settings, history, "diverged", n_done)
        done, company.finished = company.finished, []
        earned = sum(done) / len(done) if done else None
        history.add(n_done, reward=earned, n_episodes=len(done), **told)
    return AgentRun(settings, history, "finished", n_done)


def _learn(
    agent: Agent, optimiser: torch.optim.Optimizer, rollout: Rollout, settings: PpoSettings, generator: torch.Generator
) -> dict[str, float] | None:
    gains = advantages(
        rollout.rewards, rollout.values, rollout.ends, rollout.last_value, settings.discount, settings.decay
    )
    targets = gains + rollout.values
    if settings.standardise:
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
    pieces, told = rollout.pieces(settings.longest), []
    for _ in range(settings.n_epochs):
        for chosen in _batches(pieces, settings.batch_frames, generator):
            loss, numbers = piece_loss(agent, rollout, chosen, gains, targets, settings)
            optimiser.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(agent.parameters(), settings.clip_norm)
            if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
                return None
            optimiser.step()
            told.append(numbers)
    return {name: sum(one[name] for one in told) / len(told) for name in told[0]}


def _batches(pieces: Sequence[Piece], frames: int, generator: torch.Generator) -> list[list[Piece]]:
    """Pieces in random order, in groups of at least so many frames; the last group may have fewer."""
    groups: list[list[Piece]] = [[]]
    for place in torch.randperm(len(pieces), generator=generator).tolist():
        if sum(piece.length for piece in groups[-1]) >= frames:
            groups.append([])
        groups[-1].append(pieces[place])
    return groups


def piece_loss(
    agent: Agent, rollout: Rollout, pieces: Sequence[Piece], gains: Tensor, targets: Tensor, settings: PpoSettings
) -> tuple[Tensor, dict[str, float]]:
    """What is to be made small for some pieces, and numbers to write down."""
    lengths = torch.tensor([piece.length for piece in pieces])
    there = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)

    def flat(table: Tensor) -> Tensor:
        return rollout.padded(table, pieces)[there]

    logits, values, _ = agent(rollout.padded(rollout.seen, pieces), rollout.state_of(pieces), lengths)
    chances = torch.log_softmax(logits[there], -1)
    ratios = (chances.gather(1, flat(rollout.actions).unsqueeze(1)).squeeze(1) - flat(rollout.log_probabilities)).exp()
    policy = clipped_objective(ratios, flat(gains), settings.clip).mean()
    entropy = -(chances.exp() * chances).sum(-1).mean()
    before, wanted, now = flat(rollout.values), flat(targets), values[there]
    near = before + (now - before).clamp(-settings.clip, settings.clip)
    error = torch.maximum((now - wanted).square(), (near - wanted).square()).mean()
    loss = -policy - settings.entropy * entropy + settings.value_weight * error
    clipped = ((ratios - 1).abs() > settings.clip).float().mean()
    return loss, {"entropy": float(entropy.detach()), "value_error": float(error.detach()), "clipped": float(clipped)}
