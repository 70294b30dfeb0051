"""Continual learning: exact loss, forgetting and their rates while a balanced network learns one task after another.

After a task the network is balanced as before, so exact solutions chain. The excess loss on task i is
``|w2 w1 - S_i|^2 / 2``; forgetting is its increase since the end of the training on a task.
"""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_float64, formula, suggest_options
from separatrix.core.described import Described

from .balanced_flow import BalancedFlow


@final
@suggest_options
class TaskSequence(Described):
    """A balanced network that trains on tasks in turn, exactly.

    Args:
        w1: first layer at the start, (*batch, n_hidden, n_in).
        w2: second layer at the start, (*batch, n_out, n_hidden).
        tasks: input-output correlations, (n_tasks, *batch, n_out, n_in), in the order of training (white inputs).
        durations: training time on each task; a single number stands for all.
        tau: time constant.

    Raises:
        OutsideTheory: the weights are not balanced.
    """

    flows: tuple[BalancedFlow, ...]
    """The exact flow on each task, started where the one before stopped."""

    def __init__(self, w1: Any, w2: Any, tasks: Any, durations: Any, tau: float = 1.0) -> None:
        self.tasks = as_float64(tasks, "tasks")
        if self.tasks.ndim < 3 or self.tasks.shape[0] == 0:
            raise ShapeError(
                f"tasks must have shape (n_tasks, ..., out, in) with at least one task; got {tuple(self.tasks.shape)}."
            )
        n_tasks = self.tasks.shape[0]
        lengths = as_float64(durations, "durations").reshape(-1)
        if lengths.numel() not in (1, n_tasks) or bool((lengths <= 0).any()):
            raise InvalidInput(f"durations must be positive, one or one per task ({n_tasks}); got {lengths.tolist()}.")
        self.durations = lengths.expand(n_tasks)
        self.ends = self.durations.cumsum(0)
        flows: list[BalancedFlow] = []
        for index in range(n_tasks):
            flows.append(BalancedFlow(w1, w2, self.tasks[index], tau))
            w1, w2 = flows[-1].factors(float(self.durations[index]))
        self.flows = tuple(flows)

    @formula("anguita2024", "Sec. 4.4")
    def product(self, t: Any) -> Float[Tensor, "*lead o i"]:
        """The network function at times ``t`` since the start of the first task; the last task goes on for ever."""
        times = as_float64(t, "t")
        if bool((times < 0).any()):
            raise InvalidInput(f"t must not be negative; got {float(times.min()):g}.")
        flat = times.reshape(-1)
        stage = torch.searchsorted(self.ends[:-1].contiguous(), flat)
        begins = torch.cat([self.ends.new_zeros(1), self.ends[:-1]])
        result = self.tasks.new_empty(flat.shape[0], *self.tasks.shape[1:])
        for index, flow in enumerate(self.flows):
            here = stage == index
            result[here] = flow.product(flat[here] - begins[index]).to(torch.float64)
        return result.reshape((*times.shape, *self.tasks.shape[1:]))

    @formula("anguita2024", "Eq. (4.40)", erratum="anguita2024-4.40")
    def losses(self, t: Any) -> Float[Tensor, " tasks *lead"]:
        """Excess loss on every task at times ``t``: (n_tasks, *times, *batch)."""
        product = self.product(t)
        lead = product.ndim - self.tasks.ndim + 1
        tasks = self.tasks.reshape(self.tasks.shape[0], *(1,) * lead, *self.tasks.shape[1:])
        return task_loss(product, tasks)

    @formula("anguita2024", "Sec. 2.3.4")
    def forgetting(self, t: Any, learned: int) -> Float[Tensor, " tasks *lead"]:
        """Increase of the excess loss on every task since the end of task ``learned``."""
        end = self.losses(float(self.ends[learned]))
        losses = self.losses(t)
        return losses - end.reshape(end.shape[0], *(1,) * (losses.ndim - end.ndim), *end.shape[1:])


@formula("anguita2024", "Eq. (4.40)", erratum="anguita2024-4.40")
def task_loss(product: Float[Tensor, "*lead o i"], task: Float[Tensor, "*task o i"]) -> Float[Tensor, "*out"]:
    """Excess loss ``|w2 w1 - S|^2 / 2`` on a task with white inputs; the full loss adds ``tr(corr_yy)/2 - |S|^2/2``."""
    return (product - task).square().sum((-2, -1)) / 2


@formula("anguita2024", "Theorem 4.4.1, Eqs. (4.35)-(4.36)", erratum="anguita2024-4.34")
def loss_rate(
    product: Float[Tensor, "*#batch o i"],
    first: Float[Tensor, "*#batch i i"],
    second: Float[Tensor, "*#batch o o"],
    training: Float[Tensor, "*#batch o i"],
    task: Float[Tensor, "*#batch o i"],
    tau: float = 1.0,
) -> Float[Tensor, "*out"]:
    r"""Rate of change of the loss on ``task`` while training on ``training``; also the rate of forgetting.

    .. math:: \tau \dot L_i = \mathrm{tr}[(W_2 W_2^\top E + E\, W_1^\top W_1)(W - \Sigma_i)^\top], \quad E = \Sigma_k
    - W
    """
    error = training - product
    velocity = second @ error + error @ first
    return (velocity * (product - task)).sum((-2, -1)) / tau


@formula("separatrix", "forgetting between converged tasks")
def converged_forgetting(
    task: Float[Tensor, "*batch o i"], learned: Float[Tensor, "*batch o i"], present: Float[Tensor, "*batch o i"]
) -> Float[Tensor, "*batch"]:
    """Loss on ``task`` after converging on ``present``, minus that after converging on ``learned`` before it."""
    return task_loss(present, task) - task_loss(learned, task)
