"""The oracle decoder: a network that is told which objects are equal, and only has to learn what follows."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn
from separatrix.nn.relational.relations import n_entries, read_entries
from separatrix.nn.relational.starts import linear
from separatrix.tasks.relational.cognitive import PatternTask
from separatrix.tasks.relational.task import Part, ProblemBatches, Problems, RelationalTask, equal_pairs

from ..loop import train
from ..settings import TrainingSettings
from .evaluation import Answers, answers_of

STRENGTH = 10.0
"""Similarity of equal objects; that of others is 0."""


@final
@suggest_options
class OracleDecoder(nn.Module):
    """The decoder of CoRelNet on perfect similarities: 10 where two objects are equal, 0 elsewhere.

    If it fails, relations of sameness are not enough for a task; if it succeeds where a network fails, the network's
    relations are at fault.

    Args:
        seq_len: T.
        n_answers: y.
        hidden: units.
        generator: source of the first weights.
    """

    def __init__(self, seq_len: int, n_answers: int, hidden: int = 256, *, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = linear(n_entries(seq_len, "causal_softmax"), hidden, generator)
        self.out = linear(hidden, n_answers, generator)

    def forward(self, symbols: Int[Tensor, " n"], index: Int[Tensor, "batch t"]) -> Float[Tensor, "batch y"]:
        """Logits; symbols are one number per object."""
        scores = STRENGTH * equal_pairs(symbols[index]).to(torch.float32)
        t = scores.shape[-1]
        later = torch.full((t, t), -torch.inf).triu(1)
        read = read_entries(torch.softmax(scores + later, -1), "causal_softmax")
        return self.out(torch.relu(self.hidden(read)))


def oracle_answers(
    task: RelationalTask, *, n_steps: int = 1500, batch_size: int | None = None, n_test: int = 10_000, seed: int = 0
) -> Answers:
    """Accuracy on the test part of a decoder that knows which objects are equal.

    Args:
        task: whose problems.
        n_steps: updates with Adam at 5e-4.
        batch_size: of training; that of the task's design by default.
        n_test: problems of the test.
        seed: of weights and problems.

    Cost: a millisecond a step.

    Example:
        >>> from separatrix.tasks import make_task
        >>> oracle_answers(make_task("same_diff"), n_steps=60).accuracy
        1.0
    """
    if not isinstance(task, RelationalTask):
        raise InvalidInput(f"task must be a RelationalTask; got {type(task).__name__}.")
    require_integer(n_test, "n_test", at_least=1)
    size = batch_size or (task.plan.batch if isinstance(task, PatternTask) else 96)
    decoder = OracleDecoder(task.seq_len, task.n_answers, generator=spawn(seed, "relational", "oracle"))

    def loss(model: OracleDecoder, problems: Problems) -> Tensor:
        return nn.functional.cross_entropy(model(*_told(task, problems)), problems.label)

    settings = TrainingSettings(n_steps=n_steps, lr=5e-4, log_every=max(1, n_steps))
    train(decoder, ProblemBatches(task, size, seed), loss, settings)
    part: Part = "test"
    problems = task.problems(part, n_test, generator=spawn(seed, "relational", "oracle", "test"))
    return answers_of(decoder, *_told(task, problems), problems.label, problems)


def _told(task: RelationalTask, problems: Problems) -> tuple[Tensor, Tensor]:
    """Symbols of distinct objects, and the index into them."""
    symbols, local = task.symbols(problems.index).unique(return_inverse=True)
    return symbols, local
