"""The training loop: batch, forward, backward, clip, update, measure, save. Nothing is hidden in callbacks."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from separatrix.core.devices import training_device
from separatrix.core.disk import require_place_for_file, why_not
from separatrix.core.errors import CorruptData, SeparatrixError, ShapeError
from separatrix.core.result import Result
from separatrix.core.stopping import WorkStopped, is_stoppable, stop_was_asked

from .best import BestState, Watch
from .carried import detached
from .checkpoint import (
    CheckpointWarning,
    load_checkpoint,
    require_equal_settings,
    require_same_model,
    require_whole,
    restore_streams,
    save_checkpoint,
    stream_states,
)
from .interrupt import FinishStep
from .log import History
from .members import Members
from .optim import clip_gradients, make_optimiser, rate_factor
from .parts import require_parts
from .placement import placed
from .settings import TrainingSettings

BatchAt: TypeAlias = Callable[[int], Any]
"""The batch of a step, the same whenever it is asked for: the position in the data is the step."""
Loss: TypeAlias = Callable[..., Any]
"""Model and batch to the loss: a number, or one per member trained side by side. With ``carries``, model, batch and
state to the loss and the next state."""
Measure: TypeAlias = Callable[[Any], Mapping[str, Any]]
"""Model to numbers by name, computed without gradients and in evaluation mode."""
_CONTENT = ("settings", "model", "optimiser", "members", "streams", "watch", "carried", "n_done", "measured", "history")
Ending: TypeAlias = Literal["finished", "diverged", "interrupted"]


@final
@dataclasses.dataclass(frozen=True, repr=False)
class TrainingRun(Result):
    """What a run did."""

    settings: TrainingSettings
    history: History
    ending: Ending
    """``"diverged"`` when nobody had a finite loss and gradient any more; the model holds the last good parameters."""
    n_done: int
    """Updates done, those before a resume included."""
    diverged_at: tuple[int | None, ...]
    """For each member the step whose loss or gradient was not finite, if there was one."""
    best: BestState | None
    """The state at the best value of the watched measurement."""
    resumed_at: int | None
    seconds: float
    unsaved: str | None = None
    """Why the last checkpoint could not be written, if it could not."""

    @property
    def ok(self) -> bool:
        """Whether every member reached the end."""
        return self.ending == "finished" and all(step is None for step in self.diverged_at)

    def message(self) -> str:
        """One sentence on how it ended."""
        lost = [step for step in self.diverged_at if step is not None]
        sentence = f"{self.ending} after {self.n_done} of {self.settings.n_steps} steps"
        if lost:
            sentence += (
                f"; {len(lost)} of {len(self.diverged_at)} runs met a loss or gradient that is not finite (first at "
                f"step {min(lost)}) and rest at their last good parameters: lower lr or the weights, or clip"
            )
        if self.unsaved is not None:
            sentence += f"; its checkpoint could not be written: {self.unsaved}"
        return sentence + "."


def train(
    model: nn.Module,
    batch_at: BatchAt,
    loss: Loss,
    settings: TrainingSettings,
    *,
    measure: Measure | None = None,
    optimiser: torch.optim.Optimizer | None = None,
    after_update: Callable[[Any], object] | None = None,
    carries: bool = False,
    streams: Mapping[str, torch.Generator] | None = None,
    checkpoint: str | Path | None = None,
    device: str | torch.device | None = None,
) -> TrainingRun:
    """Train a model, or several side by side.

    Args:
        model: changed in place. Parts may be ``SideBySide``; then every parameter must be inside such a part.
        batch_at: the batch of a step: an object of ``tasks.AbstractBatches``, or a function of the step alone.
        loss: model and batch to a number, or to one number per member; see ``carries``.
        settings: the page of settings.
        measure: numbers to record every ``measure_every`` steps and at the end.
        optimiser: instead of the one the settings name; its own learning rates are then the peak of the schedule.
        after_update: called with the model after every update, without gradients: to put weights back on a manifold,
            for instance. Modules of this package see to that themselves.
        carries: whether a state goes from batch to batch. Then ``loss(model, batch, state)`` gives the loss and the
            next state (tensors, in tuples or dictionaries if need be). The state is ``None`` at the first step and
            after every ``reset_every`` steps, carries no gradient into the next batch, and is part of the checkpoint.
        streams: generators that ``loss`` or the model draw from and that a checkpoint must keep. Modules that keep the
            state of their stream in ``state_dict`` (``VariationalDropout``) need no mention; for modules that draw from
            torch's global stream, pass ``{"torch": torch.default_generator}``.
        checkpoint: a file to save to, and to continue from if it exists. When it cannot be written any more (a full
            disk), the run goes on with a ``CheckpointWarning``, and ``TrainingRun.unsaved`` says why.
        device: where the model lies while it is trained; afterwards it is back. If not given, what the worker of a cell
            offers (``core.training_device``), else where it is. Batches may stay where they are: the model takes what
            it is called with to its device and brings its answer back.

    Returns:
        The history and how it ended. A loss or gradient that is not finite ends the run of that member at its last good
        parameters. The first Ctrl-C finishes the step and saves; so does a worker of the lab that is asked to stop, and
        there ``WorkStopped`` is raised instead, so that no record is made of half a training.

    Raises:
        InvalidInput: the checkpoint belongs to another model, other settings or other streams, or its place cannot be
            written; nothing was done then.
        CorruptData: the checkpoint cannot be read, or is not what was written.

    Cost: beside the model's own, one copy of the parameters in memory and one pass over them a step.
    """
    with placed(model, training_device() if device is None else device):
        return _train(model, batch_at, loss, settings, measure, optimiser, after_update, carries, streams, checkpoint)


def _train(
    model: nn.Module,
    batch_at: BatchAt,
    loss: Loss,
    settings: TrainingSettings,
    measure: Measure | None,
    optimiser: torch.optim.Optimizer | None,
    after_update: Callable[[Any], object] | None,
    carries: bool,
    streams: Mapping[str, torch.Generator] | None,
    checkpoint: str | Path | None,
) -> TrainingRun:
    begun = time.monotonic()
    run = _Run(model, settings, optimiser or make_optimiser(model, settings), streams or {}, checkpoint, carries)
    resumed_at = run.resume()
    model.train()
    with FinishStep() as interrupt:
        for step in range(run.n_done, settings.n_steps):
            if run.members.all_resting or interrupt.requested or stop_was_asked():
                break
            batch = batch_at(step)
            losses = run.forward(loss, batch, step)
            run.backward(losses)
            norms = run.clip(step)
            if run.members.all_resting:  # the last ones had a loss or gradient that is not finite
                break
            run.update(step, after_update)
            run.note(step, losses, norms)
            run.maybe_measure(step, measure)
            run.maybe_save(step)
    ending = run.ending()
    if measure is not None and ending != "interrupted":
        run.measure(run.n_done - 1, measure)
    run.save()
    if ending == "interrupted" and is_stoppable():
        raise WorkStopped
    diverged_at = tuple(run.members.diverged_at)
    seconds = time.monotonic() - begun
    return TrainingRun(
        settings, run.history, ending, run.n_done, diverged_at, run.watch.best, resumed_at, seconds, run.unsaved
    )


@final
class _Run:
    """The state of a run and its named steps."""

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        optimiser: torch.optim.Optimizer,
        streams: Mapping[str, torch.Generator],
        checkpoint: str | Path | None,
        carries: bool,
    ) -> None:
        self.model, self.settings, self.optimiser, self.streams = model, settings, optimiser, streams
        self.path = require_place_for_file(checkpoint, "checkpoint") if checkpoint is not None else None
        self.unsaved: str | None = None
        self.members = Members(model)
        self.watch = Watch(settings)
        self.carries, self.carried, self._next_carried = carries, None, None
        self.history = History()
        self.n_done = 0
        self._measured: int | None = None
        self._peaks = [group["lr"] for group in optimiser.param_groups]
        self._saved = time.monotonic()

    def forward(self, loss: Loss, batch: Any, step: int) -> Tensor:
        """The losses (members,); members whose loss is not finite go to rest."""
        if self.carries and self.settings.reset_every is not None and step % self.settings.reset_every == 0:
            self.carried = None
        losses = self._losses(loss, batch)
        if self.members.retire(~torch.isfinite(losses.detach()), step) and not self.members.all_resting:
            losses = self._losses(loss, batch)  # again, without what the lost ones did to the solve
        return losses

    def _losses(self, loss: Loss, batch: Any) -> Tensor:
        if self.carries:
            value, self._next_carried = loss(self.model, batch, self.carried)
        else:
            value = loss(self.model, batch)
        losses: Tensor = value.reshape(-1)
        if len(losses) != len(self.members.resting):
            raise ShapeError(f"loss must give one number per member, {len(self.members.resting)}; got {len(losses)}.")
        return losses

    def backward(self, losses: Tensor) -> None:
        """Gradients of the sum: members share no parameter, so each gets its own."""
        self.optimiser.zero_grad(set_to_none=True)
        if not self.members.all_resting:
            losses[~self.members.resting.to(losses.device)].sum().backward()

    def clip(self, step: int) -> Tensor:
        """Norms of the gradients, before clipping; members whose gradient is not finite go to rest."""
        norms = clip_gradients(self.members.parameters, self.settings.clip_norm, n_members=self.members.n_stacked)
        self.members.remember()
        self.members.retire(~torch.isfinite(norms), step)
        return norms

    def update(self, step: int, after_update: Callable[[Any], object] | None) -> None:
        """One step of the optimiser at the learning rate of this step; resting members stay where they are."""
        for group, peak in zip(self.optimiser.param_groups, self._peaks, strict=True):
            group["lr"] = peak * rate_factor(step, self.settings) * self.watch.factor
        self.optimiser.step()
        if after_update is not None:
            with torch.no_grad():
                after_update(self.model)
        self.members.restore()
        self.carried = detached(self._next_carried)
        self.n_done = step + 1

    def due(self, step: int, every: int | None) -> bool:
        """Whether something that happens every so many steps happens after this one; the last is left to the end."""
        return every is not None and (step + 1) % every == 0 and step + 1 < self.settings.n_steps

    def note(self, step: int, losses: Tensor, norms: Tensor) -> None:
        """Record loss and gradient norm."""
        if step % self.settings.log_every == 0 or step + 1 == self.settings.n_steps:
            self.history.add(step, loss=losses.detach(), gradient_norm=norms)

    def ending(self) -> Ending:
        """How the loop came to its end."""
        if self.members.all_resting:
            return "diverged"
        return "finished" if self.n_done >= self.settings.n_steps else "interrupted"

    def maybe_measure(self, step: int, measure: Measure | None) -> None:
        """Measure when it is time."""
        if measure is not None and self.due(step, self.settings.measure_every):
            self.measure(step, measure)

    def measure(self, step: int, measure: Measure) -> None:
        """Record measurements, in evaluation mode and without gradients."""
        if self._measured == step:  # a finished run that was asked for again
            return
        self.model.eval()
        with torch.no_grad():
            values = measure(self.model)
        self.model.train()
        self.history.add(step, **values)
        self.watch.judge(self.model, step, dict(values))
        self._measured = step

    def maybe_save(self, step: int) -> None:
        """Save when it is time, by steps or by the clock."""
        old = time.monotonic() - self._saved > self.settings.save_seconds
        if self.path is not None and (old or self.due(step, self.settings.save_every)):
            self.save()

    def save(self) -> None:
        """Write the checkpoint, if one was asked for."""
        if self.path is None:
            return
        try:
            save_checkpoint(self.path, self._content())
            self.unsaved = None
        except (OSError, RuntimeError) as error:  # torch turns some errors of the system into RuntimeError
            self._note_unsaved(error)
        self._saved = time.monotonic()

    def _content(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "settings": self.settings.to_dict(),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "members": self.members.state(),
            "streams": stream_states(self.streams),
            "watch": self.watch.state(),
            "carried": self.carried,
            "n_done": self.n_done,
            "measured": self._measured,
            "history": self.history.records,
        }

    def _note_unsaved(self, error: OSError | RuntimeError) -> None:
        first = self.unsaved is None
        self.unsaved = why_not(error) if isinstance(error, OSError) else str(error).splitlines()[0]
        if first:
            warnings.warn(
                f"the checkpoint {self.path} could not be written: {self.unsaved}; the run goes on without.",
                CheckpointWarning,
                stacklevel=4,
            )

    def resume(self) -> int | None:
        """Continue from the checkpoint if there is one; says at which step."""
        if self.path is None or not self.path.exists():
            return None
        content = load_checkpoint(self.path)
        missing = [name for name in _CONTENT if name not in content]
        if missing:
            raise CorruptData(f"{self.path} is not the checkpoint of a training run: it has no {missing[0]!r}.")
        try:
            self._restore(content, self.path)
        except SeparatrixError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, RuntimeError, ValueError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise CorruptData(f"{self.path} is not the checkpoint of a training run: {reason}.") from error
        return self.n_done

    def _restore(self, content: Mapping[str, Any], path: Path) -> None:
        require_equal_settings(content["settings"], self.settings.to_dict(), path)
        require_same_model(content["model"], self.model, path)
        require_whole(content, self.optimiser, self.settings.n_steps, path)
        require_parts(content, self._content(), path)
        restore_streams(self.streams, content["streams"])
        self.model.load_state_dict(content["model"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.members.load_state(content["members"])
        self.watch.load_state(content["watch"])
        self.carried = detached(content["carried"], next(self.model.parameters()).device)
        self.history = History(content["history"])
        self.n_done, self._measured = content["n_done"], content["measured"]
