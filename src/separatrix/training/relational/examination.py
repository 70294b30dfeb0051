"""Does a relational result come from the architecture? One call asks everything that could explain it otherwise."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.networks.modes import evaluation_mode
from separatrix.core.random import spawn
from separatrix.core.result import Result
from separatrix.nn.relational.network import AbstractRelationalNetwork
from separatrix.tasks.relational.shortcuts import ONE_BY_ONE, shortcut_accuracy
from separatrix.tasks.relational.task import RelationalTask, equal_pairs

from ..over_seeds import Spread, spread
from .evaluation import area_under_curve
from .findings import COLLAPSE, findings
from .leaks import Leaks, find_leaks
from .oracle import oracle_answers
from .pictures import distinct_pictures
from .run import RelationalRun, RelationalSettings, train_relational

N_RELATIONS = 500


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RelationalExamination(Result):
    """What was found, as numbers and as sentences."""

    task: str
    accuracy: Spread
    """After the last step, over seeds."""
    chosen: Spread
    """At the step that fresh problems of training choose."""
    greatest: Spread
    train: Spread
    """On fresh problems of training, after the last step."""
    diverged: int
    """Runs that ended at a loss that is no number."""
    leaks: Leaks
    """Of the network of the first seed."""
    frozen: Spread | None
    """The same with the encoder left at its random start; ``None`` if it was not run."""
    oracle: float
    oracle_by_pattern: dict[str, float]
    by_pattern: dict[str, float]
    shortcut: str
    shortcut_accuracy: float
    """Of the rule of thumb about equal objects that goes farthest."""
    one_by_one: float
    """Of a sum over single pictures: what is told without any two being compared."""
    chance: float
    collapses: int
    """Runs that lost more than 5 points on unseen pictures while training problems stayed at 99 %."""
    gradient_ratio: float | None
    encoder_movement: float | None
    relation_score: float | None
    """Probability that a pair of equal unseen objects has a greater entry of the relation matrix than a pair of
    different ones; ``None`` without a relation matrix."""
    margin: float | None
    """Least similarity of equal pairs minus greatest of different pairs, before the softmax; ``None`` without."""
    runs: list[RelationalRun] = dataclasses.field(repr=False)

    @property
    def findings(self) -> list[str]:
        """What the numbers say, in sentences that hold them."""
        return findings(self)

    def __str__(self) -> str:
        return "\n".join([f"{self.task}:", *(f"- {sentence}" for sentence in self.findings)])


def examine_relational(
    make: Callable[[int], nn.Module],
    task: RelationalTask | Callable[[int], RelationalTask],
    settings: RelationalSettings | None = None,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    encoder: Callable[[Any], nn.Module] | None = None,
    oracle_steps: int = 1500,
) -> RelationalExamination:
    """Train a network over seeds, and beside it everything that could explain its accuracy without its architecture.

    - rules of thumb, single pictures, and a decoder that is told which objects are equal: what the task itself gives
      away or withholds;
    - the same network with its encoder left at its random start: what learning to see adds;
    - accuracy on unseen pictures during training: whether it is lost again;
    - gradient and movement of the encoder, accuracy by pattern, relations of unseen objects against the ideal.

    Args:
        make: a seed to a new network. It is called with images and index as those of this package are.
        task: the task, or a seed to one, so that each seed has its own held-out shapes.
        settings: of training.
        seeds: at least one.
        encoder: a network to its encoder; known for those of this package. Without it neither movement nor the frozen
            control is measured for a network of yours.
        oracle_steps: updates of the decoder that is told.

    Returns:
        Numbers and ``findings``; print it.

    Cost: twice the training of all seeds, and a second or two.

    Example:
        >>> from separatrix.nn import CoRelNet
        >>> from separatrix.tasks import make_task
        >>> quick = RelationalSettings(n_steps=3, n_test=60, n_curve=20)
        >>> found = examine_relational(
        ...     lambda seed: CoRelNet(2, 2), make_task("same_diff"), quick, seeds=(0,), oracle_steps=60
        ... )
        >>> found.shortcut, found.oracle
        ('some two equal', 1.0)
    """
    if not seeds:
        raise InvalidInput("seeds must hold at least one seed.")
    require_integer(oracle_steps, "oracle_steps", at_least=1)
    tasks = {seed: task if isinstance(task, RelationalTask) else task(seed) for seed in seeds}
    first = tasks[seeds[0]]
    if not isinstance(first, RelationalTask):
        raise InvalidInput(f"task must be a RelationalTask or give one; got {type(first).__name__}.")
    if isinstance(make, nn.Module):
        raise InvalidInput("make must be a function from a seed to a new network; got a network.")
    networks = {seed: make(seed) for seed in seeds}
    if not isinstance(networks[seeds[0]], nn.Module):
        raise InvalidInput(f"make must give a torch module; got {type(networks[seeds[0]]).__name__}.")
    runs = [
        train_relational(networks[s], tasks[s], settings, seed=s, encoder=_part(networks[s], encoder)) for s in seeds
    ]
    frozen = _frozen_control(make, tasks, settings, encoder)
    told = oracle_answers(first, n_steps=oracle_steps, n_test=4000)
    short = shortcut_accuracy(first, 4000)
    rule = max((name for name in short.accuracy if name != ONE_BY_ONE), key=lambda name: short.accuracy[name])
    names = runs[0].last.by_pattern
    scores = [_relations(networks[seed], tasks[seed]) for seed in seeds]
    return RelationalExamination(
        task=first.name,
        accuracy=spread([run.last.accuracy for run in runs]),
        chosen=spread([run.chosen for run in runs]),
        greatest=spread([run.greatest for run in runs]),
        train=spread([run.train_accuracy for run in runs]),
        diverged=sum(run.ending == "diverged" for run in runs),
        leaks=find_leaks(networks[seeds[0]], first),
        frozen=frozen,
        oracle=told.accuracy,
        oracle_by_pattern=told.by_pattern,
        by_pattern={name: statistics.fmean(run.last.by_pattern[name] for run in runs) for name in names},
        shortcut=rule,
        shortcut_accuracy=short.accuracy[rule],
        one_by_one=short.accuracy[ONE_BY_ONE],
        chance=short.chance,
        collapses=sum(collapsed(run) for run in runs),
        gradient_ratio=_mean([run.gradient_ratio for run in runs]),
        encoder_movement=_mean([run.encoder_movement for run in runs]),
        relation_score=_mean([score for score, _ in scores]),
        margin=_mean([margin for _, margin in scores]),
        runs=runs,
    )


def _part(network: nn.Module, encoder: Callable[[Any], nn.Module] | None) -> nn.Module | None:
    return None if encoder is None else encoder(network)


def _frozen_control(make: Any, tasks: dict[int, RelationalTask], settings: Any, encoder: Any) -> Spread | None:
    values = []
    for seed, task in tasks.items():
        network = make(seed)
        part = network.encoder if isinstance(network, AbstractRelationalNetwork) else _part(network, encoder)
        if part is None:
            return None
        part.requires_grad_(False)
        if isinstance(network, AbstractRelationalNetwork):
            network.encoder_mode = "frozen"
        values.append(train_relational(network, task, settings, seed=seed).last.accuracy)
    return spread(values)


def collapsed(run: RelationalRun) -> bool:
    """Whether accuracy on unseen pictures was lost again while problems of training stayed right."""
    return run.greatest - run.last.accuracy > COLLAPSE and run.train_accuracy >= 0.99


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.fmean(known) if known else None


def _relations(network: nn.Module, task: RelationalTask) -> tuple[float | None, float | None]:
    """How well relations of unseen objects tell equal from different, and by what margin."""
    if not isinstance(network, AbstractRelationalNetwork):
        return None, None
    problems = task.problems("test", N_RELATIONS, generator=spawn(0, "relational", "relations"))
    images, index = distinct_pictures(task, problems.index)
    before = torch.ones(task.seq_len, task.seq_len).tril(-1).bool()
    equal = equal_pairs(task.symbols(problems.index))[:, before].flatten()
    score = margin = None
    with evaluation_mode(network), torch.no_grad():
        if type(network).relations is not AbstractRelationalNetwork.relations:
            score = area_under_curve(network.relation_matrix(images, index)[:, before].flatten(), equal)
        if network.has_similarity and bool(equal.any()) and not bool(equal.all()):
            first, second = network.sides(network.objects(images, index))
            similarity: Tensor = (first @ second.mT)[:, before].flatten()
            margin = float(similarity[equal].min() - similarity[~equal].max())
    return score, margin
