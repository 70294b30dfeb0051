"""What is known of every trajectory of one integration: where it ended, why, at what cost, and its frames."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Outcome

from ..flows.base import AbstractSphereFlow
from .stepping import Pool
from .trajectory import Trajectory


@final
class Bookkeeping:
    """Results of the flattened batch, filled as trajectories end."""

    def __init__(self, x0: Float[Tensor, "batch n d"], frames: Float[Tensor, " frames"] | None) -> None:
        count, device = len(x0), x0.device
        self.final = x0.clone()
        self.outcome = torch.full((count,), int(Outcome.OUT_OF_STEPS), device=device)
        self.residual = torch.zeros(count, dtype=torch.float64, device=device)
        self.time = torch.zeros_like(self.residual)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.rejected = torch.zeros_like(self.steps)
        self.evaluations = torch.zeros_like(self.steps)
        self.saddles = torch.zeros_like(self.steps)
        self.frames = frames
        self.states = None if frames is None else x0.unsqueeze(1).repeat(1, len(frames), 1, 1)
        self.next_frame = torch.zeros_like(self.steps)

    def count_step(self, index: Tensor, accepted: Tensor, evaluations: int) -> None:
        """One attempted step of the trajectories ``index``."""
        self.steps[index] += 1
        self.rejected[index] += (~accepted).long()
        self.evaluations[index] += evaluations

    def close(self, flow: AbstractSphereFlow, pool: Pool, tokens: Tensor, outcome: Outcome) -> None:
        """The trajectories of a pool end at ``tokens``; frames after their end show the end."""
        index = pool.index
        self.final[index] = tokens
        self.outcome[index] = int(outcome)
        self.time[index] = pool.t
        self.residual[index] = flow.residual(tokens, pool.t)
        if self.states is not None:
            later = torch.arange(self.states.shape[1], device=index.device) >= self.next_frame[index].unsqueeze(-1)
            self.states[index] = torch.where(later[..., None, None], tokens.unsqueeze(1), self.states[index])

    def record(self, pool: Pool, t_before: Tensor, x_before: Tensor, v_before: Tensor) -> None:
        """Fill the frames that the last step passed, by cubic Hermite interpolation."""
        if self.frames is None or self.states is None:
            return
        index, last = pool.index, len(self.frames) - 1
        size = (pool.t - t_before).clamp_min(1e-300)
        while True:
            frame = self.next_frame[index]
            time = self.frames[frame.clamp_max(last)]
            due = (frame <= last) & (time <= pool.t)
            if not bool(due.any()):
                return
            before = dataclasses.replace(pool, x=x_before, velocity=v_before).keep(due)
            theta = ((time - t_before) / size).clamp(0, 1)[due]
            self.states[index[due], frame[due]] = _hermite(before, pool.keep(due), theta, size[due])
            self.next_frame[index[due]] += 1

    def result(self, shape: tuple[int, ...]) -> Trajectory:
        """Everything in the shape of the caller's batch."""
        n, d = self.final.shape[-2:]
        return Trajectory(
            final=self.final.reshape(*shape, n, d),
            outcome=self.outcome.reshape(shape),
            residual=self.residual.reshape(shape),
            time=self.time.reshape(shape),
            steps=self.steps.reshape(shape),
            rejected_steps=self.rejected.reshape(shape),
            evaluations=self.evaluations.reshape(shape),
            saddles=self.saddles.reshape(shape),
            times=self.frames,
            states=None if self.states is None else self.states.reshape(*shape, -1, n, d),
        )


def _hermite(before: Pool, after: Pool, theta: Tensor, size: Tensor) -> Tensor:
    s, h = theta[:, None, None], size[:, None, None]
    v0, v1 = h * before.velocity.double(), h * after.velocity.double()
    a, b = before.x.double(), after.x.double()
    x = (1 + 2 * s) * (1 - s) ** 2 * a + s * (1 - s) ** 2 * v0 + s**2 * (3 - 2 * s) * b + s**2 * (s - 1) * v1
    x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x.gather(1, after.labels.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
