"""What is known of every trajectory of one integration: where it ended, why, at what cost, and its frames."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Outcome

from ..flows.base import AbstractFlow
from .methods.base import AbstractMethod, Attempt
from .orbits.floquet import Floquet
from .pool import Pool
from .trajectory import Trajectory


@final
class Bookkeeping:
    """Results of the flattened batch, filled as trajectories end."""

    def __init__(self, x0: Float[Tensor, "batch n d"], frames: Float[Tensor, " frames"] | None) -> None:
        count, device = len(x0), x0.device
        self.start = x0
        self.final = x0.clone()
        self.outcome = torch.full((count,), int(Outcome.OUT_OF_STEPS), device=device)
        self.residual = torch.zeros(count, dtype=torch.float64, device=device)
        self.time = torch.zeros_like(self.residual)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.rejected = torch.zeros_like(self.steps)
        self.evaluations = torch.zeros_like(self.steps)
        self.saddles = torch.zeros_like(self.steps)
        self.returns = torch.zeros_like(self.steps)
        self.cycles: dict[int, Floquet] = {}
        self.frames = frames
        self.states = None if frames is None else x0.unsqueeze(1).repeat(1, len(frames), 1, 1)
        self.log: list[tuple[Tensor, Tensor, Tensor]] | None = None
        # The start itself is already in place.
        self.next_frame = self.steps + (0 if frames is None or not len(frames) else int(frames[0] == 0))

    def count_step(self, index: Tensor, accepted: Tensor, evaluations: int) -> None:
        """One attempted step of the trajectories ``index``."""
        self.steps[index] += 1
        self.rejected[index] += (~accepted).long()
        self.evaluations[index] += evaluations

    def count_carried(self, index: Tensor, attempted: Tensor, rejected: Tensor, evaluations: int) -> None:
        """Steps of trajectories that have attempted so many by now."""
        self.evaluations[index] += (attempted - self.steps[index]) * evaluations
        self.steps[index] = attempted
        self.rejected[index] += rejected

    def note(self, pool: Pool, accepted: Tensor) -> None:
        """Keep where an accepted step led, if a log is kept."""
        if self.log is not None:
            self.log.append((pool.index[accepted], pool.t[accepted], pool.x[accepted]))

    def path(self) -> tuple[Float[Tensor, "batch steps1"], Float[Tensor, "batch steps1 n d"], Tensor]:
        """Times and states after every accepted step, the start first; and the number of steps of each trajectory.

        Those with fewer steps than others stay at their last one.
        """
        assert self.log is not None
        every = torch.arange(len(self.start), device=self.start.device)
        index = torch.cat([every, *(part for part, _, _ in self.log)])
        order = index.argsort(stable=True)
        times = torch.cat([torch.zeros_like(self.time), *(t for _, t, _ in self.log)])[order]
        states = torch.cat([self.start, *(x.double() for _, _, x in self.log)])[order]
        count = torch.bincount(index, minlength=len(every))
        place = torch.arange(int(count.max()), device=index.device).minimum(count.unsqueeze(-1) - 1)
        place = place + (count.cumsum(0) - count).unsqueeze(-1)
        return times[place], states[place], count - 1

    def pending(self, index: Tensor) -> Tensor:
        """Which trajectories have frames still to come."""
        if self.frames is None:
            return torch.zeros(len(index), dtype=torch.bool, device=index.device)
        return self.next_frame[index] < len(self.frames)

    def next_time(self, index: Tensor) -> Tensor:
        """Time of the next frame, infinite after the last."""
        if self.frames is None:
            return torch.full((len(index),), torch.inf, dtype=torch.float64, device=index.device)
        padded = torch.cat([self.frames, self.frames.new_tensor([torch.inf])])
        return padded[self.next_frame[index]]

    def close(self, flow: AbstractFlow, pool: Pool, tokens: Tensor, outcome: Outcome) -> None:
        """The trajectories of a pool end at ``tokens``.

        Frames after their end show the end if they rest there, and NaN otherwise: those times were not reached.
        """
        index = pool.index
        self.final[index] = tokens
        self.outcome[index] = int(outcome)
        self.time[index] = pool.t
        self.residual[index] = flow.residual(tokens, pool.t)
        if self.states is not None:
            later = torch.arange(self.states.shape[1], device=index.device) >= self.next_frame[index].unsqueeze(-1)
            rests = outcome in (Outcome.CONVERGED, Outcome.STALLED)
            shown = tokens if rests else torch.full_like(tokens, torch.nan)
            self.states[index] = torch.where(later[..., None, None], shown.unsqueeze(1), self.states[index])

    def record(
        self,
        flow: AbstractFlow,
        method: AbstractMethod,
        pool: Pool,
        t_before: Tensor,
        x_before: Tensor,
        attempt: Attempt,
    ) -> None:
        """Fill the frames that the last step passed, by the dense output of the method."""
        if self.frames is None or self.states is None:
            return
        index, last = pool.index, len(self.frames) - 1
        size = pool.t - t_before
        while True:
            frame = self.next_frame[index]
            time = self.frames[frame.clamp_max(last)]
            due = (frame <= last) & (time <= pool.t) & (size > 0)
            if not bool(due.any()):
                return
            if method.lands:
                x = pool.x[due].double()
            else:
                theta = ((time - t_before) / size.clamp_min(1e-300))[due]
                x = x_before.double().clone()
                x[due] = method.between(x_before[due], attempt.part(due), size[due], theta)
                x = flow.project(x)[due]  # of the whole pool: the space of an element may be its own
            self.states[index[due], frame[due]] = pool.keep(due).spread_out(x)
            self.next_frame[index[due]] += 1

    def result(self, shape: tuple[int, ...], backend: str = "torch") -> Trajectory:
        """Everything in the shape of the caller's batch."""
        n, d = self.final.shape[-2:]
        frames = 0 if self.frames is None else len(self.frames)
        return Trajectory(
            final=self.final.reshape(*shape, n, d),
            outcome=self.outcome.reshape(shape),
            residual=self.residual.reshape(shape),
            time=self.time.reshape(shape),
            steps=self.steps.reshape(shape),
            rejected_steps=self.rejected.reshape(shape),
            evaluations=self.evaluations.reshape(shape),
            saddles=self.saddles.reshape(shape),
            returns=self.returns.reshape(shape),
            times=self.frames,
            states=None if self.states is None else self.states.reshape(*shape, frames, n, d),
            cycles=self.cycles,
            backend=backend,
        )
