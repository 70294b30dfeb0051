"""The passes that measurements are taken from: one recorded forward, gradients, one forward in evaluation mode."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from ..model_call import evaluation_mode, real_tensors
from .functions import FunctionRecorder, WeightUse
from .graph import Graph
from .operations import OperationRecorder
from .places import ModuleStack, following
from .subject import Subject, as_left, open_kernels, projected


@dataclasses.dataclass
class Forward:
    """One recorded forward pass with its graph."""

    output: Any
    predicted: Tensor
    leaves: list[Tensor]
    """Real inputs, then what whole numbers were turned into."""
    functions: FunctionRecorder
    operations: OperationRecorder
    stack: ModuleStack
    graph: Graph
    seconds: float

    @property
    def once(self) -> list[WeightUse]:
        """Contractions with weights that are used once, in order."""
        counts: dict[tuple[str, ...], int] = {}
        for use in self.functions.uses:
            counts[use.roots] = counts.get(use.roots, 0) + 1
        return [use for use in self.functions.uses if counts[use.roots] == 1]

    @property
    def head(self) -> WeightUse | None:
        """The last contraction whose input the prediction depends on."""
        reached = [use for use in self.functions.uses if use.gradient_in is not None]
        return reached[-1] if reached else None


class ForwardRaised(Exception):
    """The model's own forward raised; the error is the cause, the stack of modules in ``stack``."""

    def __init__(self, error: BaseException, stack: ModuleStack) -> None:
        super().__init__(str(error))
        self.error, self.stack = error, stack


def recorded_forward(subject: Subject) -> Forward:
    """One forward as the user left the model, seen by both recorders.

    Raises:
        ForwardRaised: the model raised.
    """
    with as_left(subject.model):
        return _recorded(subject)


def evaluated_forward(subject: Subject) -> Forward:
    """The same in evaluation mode."""
    with evaluation_mode(subject.model), torch.inference_mode(False), torch.enable_grad(), open_kernels():
        return _recorded(subject)


def _recorded(subject: Subject) -> Forward:
    args, kwargs, leaves = subject.sample.leaves(direct=subject.direct)
    names = subject.names()
    tokens = [tensor for tensor in subject.sample.tensors if not tensor.is_floating_point() and tensor.ndim >= 2]
    started = subject.clock()
    with following(subject.model) as stack:
        below = OperationRecorder(subject.storages(), stack)
        roots: dict[int, tuple[str, ...]] = {identity: (name,) for identity, name in names.items()}
        above = FunctionRecorder(roots, subject.sample.n, stack, tokens if not leaves else [])
        try:
            with below, above:
                output = subject.call(args, kwargs)
        except Exception as error:
            raise ForwardRaised(error, stack) from error
    seconds = subject.clock() - started
    outputs = [tensor for _, tensor in real_tensors(output)]
    predicted = subject.predicted(output)
    graph = Graph([predicted, *outputs], names)
    kept = [leaf for leaf in above.leaves if leaf.requires_grad]
    return Forward(output, predicted, [*leaves, *kept], above, below, stack, graph, seconds)


def listen(forward: Forward, subject: Subject) -> list[Tensor | None]:
    """Gradients of the projected prediction by the leaves; on the way every contraction notes its own."""
    if not forward.predicted.requires_grad:
        return [None] * len(forward.leaves)
    targets = [*forward.leaves, *subject.trainable.values()]
    forward.functions.listening = True
    try:
        found = gradients(projected(forward.predicted, subject.seed), targets)
    finally:
        forward.functions.listening = False
    return found[: len(forward.leaves)]


def gradients(scalar: Tensor, targets: list[Tensor]) -> list[Tensor | None]:
    """Gradients of a scalar, None where it does not depend on a target; the graph is kept, ``.grad`` untouched."""
    if not scalar.requires_grad or not targets:
        return [None] * len(targets)
    try:
        return list(torch.autograd.grad(scalar, targets, retain_graph=True, allow_unused=True))
    except RuntimeError as error:
        if "checkpoint" not in str(error).lower():
            raise
        return _by_backward(scalar, targets)


def _by_backward(scalar: Tensor, targets: list[Tensor]) -> list[Tensor | None]:
    """The same through ``.grad``, which reentrant checkpoints insist on; what stood there is put back."""
    kept = [(leaf, leaf.grad) for leaf in {*_leaves_below(scalar), *(t for t in targets if t.is_leaf)}]
    for target in targets:
        if target.is_leaf:
            target.grad = None
        elif target.requires_grad:
            target.retain_grad()
    try:
        scalar.backward(retain_graph=True)
        return [target.grad if target.is_leaf or target.retains_grad else None for target in targets]
    finally:
        for target, before in kept:
            target.grad = before


def _leaves_below(scalar: Tensor) -> set[Tensor]:
    """Whose ``.grad`` a backward adds to: a loss may have weights that the model does not know."""
    leaves: set[Tensor] = set()
    seen, ahead = set(), [scalar.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            leaves.add(leaf)
        ahead.extend(below for below, _ in node.next_functions)
    return leaves


def unwatched_backward(subject: Subject) -> RuntimeError | None:
    """What one forward and backward raises that nothing records; None if it works."""
    with as_left(subject.model):
        try:
            gradients(subject.scalar(subject.forward()[0]), list(subject.trainable.values()))
        except RuntimeError as error:
            return error
    return None


def parameter_gradients(subject: Subject, output: Any) -> dict[str, Tensor | None]:
    """Gradients of the loss (or of the projected prediction) by every trainable parameter."""
    trainable = subject.trainable
    found = gradients(subject.scalar(output), list(trainable.values()))
    return dict(zip(trainable, found, strict=True))
