"""``watch``: a training run looked at every few steps, against its own beginning."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, require_integer
from separatrix.core.described import Described
from separatrix.core.names import suggest_options

from ..detectors.layers.time import layer_rate
from ..findings.finding import Finding
from ..findings.thresholds import threshold
from ..recording.functions import FunctionRecorder
from ..recording.operations import OperationRecorder
from ..recording.places import ModuleStack
from ..recording.reductions import rms
from .visits import RATE, Visit, alarms, broken

_BASE = 3
"""First visits that later ones are compared with."""
_START = 10
"""The step of the second visit, when nothing is known of its cost yet."""
_REMEMBERED = 11
"""Visits whose dearest tells what the next may cost: among so many is one that measured the rate."""
_RATED = 10
"""Of so many visits one measures the recurrent rate."""


@suggest_options
class Watcher(Described):
    """Attached to a model and its optimiser until ``close``; usable as a context manager.

    ``visits`` are what was seen, ``findings`` the early warnings, ``every`` the interval it has tuned itself to and
    ``share`` what it has cost so far.

    It keeps an account in processor time of this process, all threads of torch included, which a busy machine stretches
    little (in wall time where the model is not on the processor). Left to itself it visits steps 0 and 10, and after
    that only when all visits so far and one more as dear as the dearest of the last eleven cost at most 3 % of the
    steps done, which leaves room for what a visit does to the steps after it; a visit that cost more than expected is
    followed by a longer pause. The first visit, whose step also warms up the process, counts as much as the second,
    and what it took to measure the recurrent rate.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, *, every: int | None = None, writer: Any = None
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InvalidInput(f"model must be a torch.nn.Module; got {type(model).__name__}.")
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise InvalidInput(f"optimizer must be a torch.optim.Optimizer; got {type(optimizer).__name__}.")
        if every is not None:
            require_integer(every, "every", at_least=1)
        if writer is not None and not callable(getattr(writer, "add_scalar", None)):
            raise InvalidInput(f"writer must have add_scalar(name, value, step); got {type(writer).__name__}.")
        on_processor = all(value.device.type == "cpu" for value in model.parameters())
        clock = time.process_time if on_processor else time.perf_counter
        self.model, self.optimizer, self.writer, self.clock = model, optimizer, writer, clock
        self.every = _START if every is None else every
        self.visits: list[Visit] = []
        self.findings: list[Finding] = []
        self.on_finding: Callable[[Finding], None] | None = None
        self._fixed, self._paused, self._steps = every is not None, False, 0
        self._due = True
        self._costs: list[float] = []
        self._spent, self._trained = 0.0, 0.0
        self._loss: float | None = None
        self._durations: list[float] = []
        self._last_step = clock()
        self._recorders: tuple[contextlib.ExitStack, FunctionRecorder, OperationRecorder] | None = None
        self._seen: tuple[float | None, float | None, float | None] = (None, None, None)
        self._rate: float | None = None
        self._before: dict[str, Tensor] = {}
        self._pending: set[str] = set()
        self._handles = [
            model.register_forward_pre_hook(self._enter, prepend=True),
            model.register_forward_hook(self._leave, always_call=True),
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]

    def note(self, loss: Tensor | float) -> None:
        """Tell it the loss of this step, before the optimiser steps; without it the rest is watched alone."""
        self._loss = float(loss.detach()) if isinstance(loss, Tensor) else float(loss)

    def pause(self) -> None:
        """Do nothing until ``resume``."""
        self._paused = True

    def resume(self) -> None:
        """Go on after ``pause``."""
        self._paused, self._last_step = False, self.clock()

    def close(self) -> None:
        """Remove every hook."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def _is_visit(self) -> bool:
        return not self._paused and self._due

    @property
    def share(self) -> float:
        """Processor time of all visits by that of the steps without them; 0 before the second visit is known."""
        return self._spent / self._trained if self._trained > 0 else 0.0

    def _enter(self, module: nn.Module, args: Any) -> None:
        if not (self._is_visit and self.model.training and self._recorders is None and torch.is_grad_enabled()):
            return
        named = [*self.model.named_parameters(), *self.model.named_buffers()]
        stack = ModuleStack()
        n = next((int(arg.shape[0]) for arg in args if isinstance(arg, Tensor) and arg.ndim), 1)
        above = FunctionRecorder({id(value): (name,) for name, value in named}, n, stack, [])
        below = OperationRecorder({value.untyped_storage()._cdata: name for name, value in named}, stack)
        held = contextlib.ExitStack()
        held.enter_context(below)
        held.enter_context(above)
        self._recorders = (held, above, below)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._recorders is None:
            return
        (held, above, below), self._recorders = self._recorders, None
        held.close()
        units = [unit.dead for unit in below.units.rectified.values() if unit.values >= 16]
        rows = [row.entropy for row in below.rows if row.entropy is not None]
        spread = above.uses[-1].centred_in if above.uses else None
        self._seen = (spread, max(units, default=None), min(rows, default=None))
        began = self.clock()
        self._rate = self._recurrent_rate(above) if len(self.visits) % _RATED == 0 else None
        if not self._costs:  # the second visit does not measure it
            self._spent = self.clock() - began

    def _recurrent_rate(self, above: FunctionRecorder) -> float | None:
        """Of the first recurrent layer on at most four samples of what entered it."""
        for _, x in above.recurrent:
            for module in self.model.modules():
                if isinstance(module, nn.RNNBase) and module.input_size == x.shape[-1]:
                    rate = layer_rate(module, x[:4] if module.batch_first else x[:, :4], 0)
                    return None if rate is None else rate.mean
        return None

    def _before_step(self, *_: Any) -> None:
        if not self._is_visit:
            return
        with torch.no_grad():
            self._before = {n: p.detach().clone() for n, p in self.model.named_parameters() if p.grad is not None}

    def _after_step(self, *_: Any) -> None:
        now = self.clock()
        if not self._paused:
            if self._is_visit:
                self._visit(now)
            elif self._steps:
                self._durations = [*self._durations[-49:], now - self._last_step]
                self._trained += now - self._last_step
        self._steps += 1
        self._due = self._steps % self.every == 0 if self._fixed else self._is_affordable()
        self._last_step = self.clock()

    @property
    def _usual(self) -> float:
        """Seconds of a step without a visit."""
        return statistics.median(self._durations) if self._durations else 0.0

    def _is_affordable(self) -> bool:
        """Whether one more visit, as dear as the dearest of the last, keeps all of them within their share."""
        if len(self._costs) < 2:
            return self._steps % _START == 0
        expected, share = max(self._costs[1:][-_REMEMBERED:]), threshold("watch", "share")
        self.every = max(1, math.ceil(expected / (share * max(self._usual, 1e-9))))
        return self._spent + expected <= share * self._trained

    def _visit(self, now: float) -> None:
        """See, write, warn, and charge what this step took longer than others, which lasted until now."""
        usual = self._usual
        extra = max(now - self._last_step - usual, 0.0)
        if self._before:
            self._look(extra)
        cost = extra + self.clock() - now
        self._costs.append(cost)
        if len(self._costs) > 1:
            self._spent += 2 * cost if len(self._costs) == 2 else cost
            self._trained += usual

    def _look(self, seconds: float) -> None:
        began = self.clock()
        with torch.no_grad():
            parameters = dict(self.model.named_parameters())
            gradients = {
                name: rms(value.grad)
                for name, value in parameters.items()
                if value.grad is not None and value.ndim >= 2 and not value.grad.is_sparse
            }
            moved = math.sqrt(sum(float((parameters[n] - b).double().square().sum()) for n, b in self._before.items()))
            size = math.sqrt(sum(float(b.double().square().sum()) for b in self._before.values()))
        spread, dead, entropy = self._seen
        seconds += self.clock() - began
        visit = Visit(
            self._steps, self._loss, gradients, moved / size if size > 0 else None, spread, dead, entropy, seconds,
            self._rate,
        )  # fmt: skip
        self._before, self._seen, self._loss = {}, (None, None, None), None
        self.visits.append(visit)
        self._write(visit)
        self._warn(visit)

    def _write(self, visit: Visit) -> None:
        if self.writer is None:
            return
        scalars = {f"gradient/{name}": value for name, value in visit.gradients.items()}
        for name in ("loss", "step_ratio", "head_spread", "dead", "entropy", "rate"):
            scalars[name] = getattr(visit, name)
        for name, value in scalars.items():
            if value is not None:
                self.writer.add_scalar(f"separatrix/{name}", value, visit.step)

    def _warn(self, visit: Visit) -> None:
        """Findings of this visit that the visit before had too, or that are not finite."""
        raised = dict(alarms(visit, self.visits[:_BASE])) if len(self.visits) > _BASE else dict(broken(visit))
        waiting = {key for key in self._pending if key.endswith(RATE)} if visit.rate is None else set()
        for key, finding in raised.items():
            known = any(old.id == finding.id and old.where == finding.where for old in self.findings)
            if not known and (key in self._pending or finding.severity == "fault"):
                self.findings.append(finding)
                if self.on_finding is not None:
                    self.on_finding(finding)
        self._pending = set(raised) | waiting


def watch(
    model: nn.Module, optimizer: torch.optim.Optimizer, *, every: int | None = None, writer: Any = None
) -> Watcher:
    """Look at a training run every few steps and warn when it leaves its own beginning.

    Nothing in the training loop changes: hooks on the model and the optimiser do the work. A visit records gradients,
    the size of the step, dead units, attention entropy and the difference between samples at the head; no forward is
    added. A warning needs two visits in a row; numbers that are not finite are told at once.

    Args:
        model: what is trained.
        optimizer: what trains it.
        every: steps between visits; by default so that all of them cost less than 5 % of the steps (``Watcher``).
        writer: something with ``add_scalar(name, value, step)``, such as TensorBoard's ``SummaryWriter``.

    Returns:
        The watcher; ``.close()`` removes the hooks.

    Raises:
        InvalidInput: the model or the optimiser cannot be watched.

    Cost: a recorded forward and a copy of the parameters per visit; nothing but a counter between visits.

    Example:
        >>> model = nn.Linear(3, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with watch(model, optimizer, every=1) as watcher:
        ...     loss = model(torch.ones(4, 3)).square().mean()
        ...     loss.backward()
        ...     optimizer.step()
        >>> len(watcher.visits)
        1
    """
    return Watcher(model, optimizer, every=every, writer=writer)
