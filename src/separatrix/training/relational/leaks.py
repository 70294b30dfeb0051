"""Ways in which an accuracy about unseen pictures can be none: pictures that were shown, and answers that know more."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.networks.modes import evaluation_mode
from separatrix.core.random import spawn
from separatrix.core.result import Result
from separatrix.tasks.relational.task import RelationalTask

from .pictures import distinct_pictures

N_ASKED = 64
"""Problems that are asked together and one by one."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Leaks(Result):
    """Shares, each of which is 0 (or next to it) where nothing leaks."""

    shown: float
    """Share of test problems all of whose pictures are among those of training; 1 where no shape is held out."""
    outside: float
    """Share of test problems with a picture that the task does not list for the test."""
    by_batch: float
    """Share of problems answered otherwise when they are asked alone."""
    by_number: float
    """Share of problems answered otherwise when the pictures are numbered in another order."""
    by_copy: float
    """Share of problems answered otherwise when every picture has two numbers, one of which is taken at random."""


def find_leaks(network: nn.Module, task: RelationalTask) -> Leaks:
    """Ask test problems together, one by one, with their pictures numbered in another order, and with two numbers each.

    An answer may depend on the pictures of its own problem and on nothing else: not on other problems of the batch (a
    normalisation over the batch), nor on how pictures are numbered (a table learned by index), nor on whether equal
    pictures have equal numbers (which tells what is to be seen).

    Args:
        network: called with images and index.
        task: whose test problems are asked.

    Cost: 67 calls of the network, 64 of them with one problem.
    """
    stream = spawn(0, "relational", "leaks")
    problems = task.problems("test", N_ASKED, generator=stream)
    train, test = task.ids("train"), task.ids("test")
    images, index = distinct_pictures(task, problems.index)
    order = torch.randperm(len(images), generator=stream)
    with evaluation_mode(network), torch.no_grad():
        together = _answers(network, images, index)
        alone = torch.cat([_answers(network, *_of_one(images, row)) for row in index.split(1)])
        renumbered = _answers(network, images[order], order.argsort()[index])
        copies = index + len(images) * torch.randint(0, 2, index.shape, generator=stream)
        copied = _answers(network, torch.cat([images, images]), copies)
    return Leaks(
        shown=float(torch.isin(problems.index, train).all(1).double().mean()),
        outside=float((~torch.isin(problems.index, test)).any(1).double().mean()),
        by_batch=float((alone != together).double().mean()),
        by_number=float((renumbered != together).double().mean()),
        by_copy=float((copied != together).double().mean()),
    )


def _answers(network: Any, images: Tensor, index: Tensor) -> Tensor:
    answers: Tensor = network(images, index).argmax(-1)
    return answers


def _of_one(images: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    """The pictures of one problem alone, in their order."""
    used, local = row.unique(return_inverse=True)
    return images[used], local
