"""One training run of a relational network, by either protocol, with what is needed to judge where its answers come
from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import spawn
from separatrix.core.result import Result
from separatrix.nn.relational.network import AbstractRelationalNetwork
from separatrix.tasks.batches import ShuffledBatches
from separatrix.tasks.relational.cognitive import PatternTask
from separatrix.tasks.relational.enumeration import finite_problems
from separatrix.tasks.relational.task import Part, ProblemBatches, Problems, RelationalTask

from ..loop import TrainingRun, train
from ..settings import TrainingSettings
from .evaluation import Answers, evaluate_problems, require_logits
from .pictures import PictureSource

Protocol: TypeAlias = Literal["stream", "finite"]
FINITE_BATCH = 32


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class RelationalSettings:
    """The settings of a run; those of the source by default.

    Args:
        n_steps: updates of the stream protocol; the finite one has its epochs.
        batch_size: problems of a batch; by default that of the task's design, 32 for games.
        lr: of the optimiser.
        optimiser: ``"adam"``, or ``"sgd"`` (the table of the source says gradient descent, its code Adam).
        protocol: ``"stream"``, fresh problems at every step, or ``"finite"``, fixed sets of at most 10,000.
        n_test: problems of the last test.
        n_curve: problems of each measurement during training, of either part.
        measure_every: steps between two measurements; ``None`` for twenty in a run.
    """

    n_steps: int = 5000
    batch_size: int | None = None
    lr: float = 5e-4
    optimiser: Literal["adam", "sgd"] = "adam"
    protocol: Protocol = "stream"
    n_test: int = 10_000
    n_curve: int = 1000
    measure_every: int | None = None

    def __post_init__(self) -> None:
        require_integer(self.n_steps, "n_steps", at_least=1)
        for name in ("n_test", "n_curve"):
            require_integer(getattr(self, name), name, at_least=1)
        for name in ("batch_size", "measure_every"):
            if getattr(self, name) is not None:
                require_integer(getattr(self, name), name, at_least=1)
        require_positive(self.lr, "lr")
        choose("optimiser", self.optimiser, ("adam", "sgd"))
        choose("protocol", self.protocol, ("stream", "finite"))


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RelationalRun(Result):
    """What a run came to; accuracies are on problems of the test part, with pictures that training never showed."""

    task: str
    last: Answers
    """After the last step."""
    chosen: float
    """Accuracy at the measured step with the least loss on fresh problems of training: a choice that knows no test."""
    chosen_step: int
    greatest: float
    """The greatest on the curve: what choosing on the test would give. No result, but it tells a collapse."""
    train_accuracy: float
    """On fresh problems of training, after the last step."""
    steps: list[int]
    curve: list[float]
    """Accuracy on the test part at these steps."""
    train_curve: list[float]
    first_perfect: int | None
    """The first measured step at which at least 99 % of training problems are right."""
    gradient_ratio: float | None
    """Norm of the encoder's gradient over that of everything else, at the start; ``None`` without an encoder."""
    encoder_movement: float | None
    """Length of the encoder's change over its length at the start."""
    n_parameters: int
    batch_size: int
    ending: str
    equal_patterns: bool
    """Whether patterns of a batch occurred exactly by weight; otherwise each problem drew its own."""
    seconds: float


def train_relational(
    network: nn.Module,
    task: RelationalTask,
    settings: RelationalSettings | None = None,
    *,
    seed: int = 0,
    encoder: nn.Module | None = None,
    checkpoint: str | Path | None = None,
) -> RelationalRun:
    """Train a network on a task and follow its accuracy on pictures it never saw.

    Every step encodes the distinct pictures of its batch once; a frozen encoder is run once for the whole training.

    Args:
        network: changed in place; called with images (n, 3, h, w) and index (batch, T), and for networks of this
            package with a frozen encoder, with kept features.
        task: where problems come from.
        settings: those of the source by default.
        seed: of the problems.
        encoder: the part of a network of yours whose gradient and movement are followed; known of ours.
        checkpoint: a file to save to, and to continue from if it exists.

    Returns:
        Accuracies and curves. A loss that is not finite ends the run at its last good weights, with ``ending``
        ``"diverged"``.

    Example:
        >>> from separatrix.nn import CoRelNet
        >>> from separatrix.tasks import make_task
        >>> task = make_task("same_diff", n_shapes=12, holdout=6)
        >>> run = train_relational(CoRelNet(2, 2), task, RelationalSettings(n_steps=3, n_test=50, n_curve=20))
        >>> run.last.n_problems
        50
    """
    if not isinstance(task, RelationalTask):
        raise InvalidInput(f"task must be a RelationalTask; got {type(task).__name__}.")
    _require_trainable(network, encoder)
    settings = RelationalSettings() if settings is None else settings
    encoder = network.encoder if encoder is None and isinstance(network, AbstractRelationalNetwork) else encoder
    batch_at, n_steps, batch_size = _batches(task, settings, seed)
    source = PictureSource(task, network)

    def loss(model: Any, problems: Problems) -> Tensor:
        logits = model(*source.given(model, "train", problems.index))
        require_logits(logits, problems.label)
        value = nn.functional.cross_entropy(logits, problems.label)
        return value + model.penalty() if isinstance(model, AbstractRelationalNetwork) else value

    fixed: dict[Part, Problems] = {
        part: task.problems(part, settings.n_curve, generator=spawn(seed, "relational", repr(task), "curve", part))
        for part in ("train", "test")
    }

    def measure(model: Any) -> dict[str, float]:
        seen, unseen = (evaluate_problems(model, task, fixed[part]) for part in ("train", "test"))
        return {"train": seen.accuracy, "train_loss": seen.loss, "test": unseen.accuracy}

    before = None if encoder is None else _vector(encoder)
    ratio = _gradient_ratio(network, encoder, loss, batch_at(0))
    every = settings.measure_every or max(1, n_steps // 20)
    plan = TrainingSettings(
        n_steps=n_steps,
        lr=settings.lr,
        optimiser=settings.optimiser,
        beta1=0.0 if settings.optimiser == "sgd" else None,
        measure_every=every,
        log_every=every,
    )
    run = train(network, batch_at, loss, plan, measure=measure, checkpoint=checkpoint)
    stream = spawn(seed, "relational", repr(task), "last")
    last = evaluate_problems(network, task, task.problems("test", settings.n_test, generator=stream))
    movement = None if encoder is None or before is None else _movement(before, _vector(encoder))
    return _told(task, network, run, last, ratio, movement, batch_size, batch_at(0).equal_counts)


def _require_trainable(network: Any, encoder: Any) -> None:
    for name, module in (("network", network), ("encoder", encoder)):
        if not isinstance(module, nn.Module) and not (module is None and name == "encoder"):
            raise InvalidInput(f"{name} must be a torch module; got {type(module).__name__}.")
    if any(nn.parameter.is_lazy(parameter) for parameter in network.parameters()):
        raise InvalidInput("network must have parameters of known shape; call it once with images and index before.")
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise InvalidInput(f"network must have a parameter to train; {type(network).__name__} has none.")


def _batches(
    task: RelationalTask, settings: RelationalSettings, seed: int
) -> tuple[Callable[[int], Problems], int, int]:
    """The problems of a step, the number of steps, and the size of a batch."""
    design = task.plan.batch if isinstance(task, PatternTask) else 32 if task.name.startswith("game_") else 96
    size = settings.batch_size or (FINITE_BATCH if settings.protocol == "finite" else design)
    if settings.protocol == "stream":
        return ProblemBatches(task, size, seed), settings.n_steps, size
    if not isinstance(task, PatternTask):
        raise InvalidInput(f"protocol 'finite' is for tasks made of patterns; got {task.name}.")
    sets = finite_problems(task, seed)
    size = min(size, len(sets.train_label))
    order = ShuffledBatches(len(sets.train_label), size, seed, "relational", "order")

    def batch_at(step: int) -> Problems:
        chosen = order(step)
        unknown = torch.zeros(len(chosen), dtype=torch.int64)
        return Problems(sets.train_index[chosen], sets.train_label[chosen], unknown, ("any",), False)

    return batch_at, sets.n_epochs * order.per_epoch, size


def _vector(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in module.parameters()])


def _movement(before: Tensor, after: Tensor) -> float:
    return float((after - before).norm() / before.norm())


def _gradient_ratio(network: nn.Module, encoder: nn.Module | None, loss: Any, problems: Problems) -> float | None:
    if encoder is None:
        return None
    own = {id(parameter) for parameter in encoder.parameters()}
    network.zero_grad(set_to_none=True)
    loss(network, problems).backward()
    squares = {True: 0.0, False: 0.0}
    for parameter in network.parameters():
        if parameter.grad is not None:
            squares[id(parameter) in own] += float(parameter.grad.double().square().sum())
    network.zero_grad(set_to_none=True)
    return (squares[True] / squares[False]) ** 0.5 if squares[False] > 0 else None


def _told(
    task: RelationalTask,
    network: nn.Module,
    run: TrainingRun,
    last: Answers,
    ratio: float | None,
    movement: float | None,
    batch_size: int,
    equal: bool,
) -> RelationalRun:
    steps, curve = run.history.column("test")
    _, train_curve = run.history.column("train")
    _, losses = run.history.column("train_loss")
    place = min(range(len(losses)), key=lambda k: losses[k])
    perfect = [step for step, share in zip(steps, train_curve, strict=True) if share >= 0.99]
    return RelationalRun(
        task=task.name,
        last=last,
        chosen=last.accuracy if place == len(losses) - 1 else curve[place],
        chosen_step=steps[place],
        greatest=max(*curve, last.accuracy),
        train_accuracy=train_curve[-1],
        steps=steps,
        curve=curve,
        train_curve=train_curve,
        first_perfect=perfect[0] if perfect else None,
        gradient_ratio=ratio,
        encoder_movement=movement,
        n_parameters=sum(parameter.numel() for parameter in network.parameters()),
        batch_size=batch_size,
        ending=run.ending,
        equal_patterns=equal,
        seconds=run.seconds,
    )
