"""What detectors look at: passes that are made once, when the first detector asks, inside a budget of seconds."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import torch
from torch import Tensor

from ..findings.finding import Skipped
from ..findings.thresholds import threshold
from .passes import Forward, evaluated_forward, gradients, listen, parameter_gradients, recorded_forward
from .reductions import centred_rms, rms
from .subject import Subject, projected
from .weight_family import family_of


@dataclasses.dataclass
class Budget:
    """Seconds that may be spent; ``clock`` counts them."""

    seconds: float
    clock: Any
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def allows(self, estimate: float) -> bool:
        """Whether so many more seconds fit."""
        return self.spent + estimate <= self.seconds


class Observed:
    """Passes of one subject and what follows from them."""

    def __init__(self, subject: Subject, budget: Budget) -> None:
        self.subject, self.budget = subject, budget
        self.measures: dict[str, float] = {}
        self.skipped: list[Skipped] = []
        self.profiles: dict[str, Any] = {}
        self.sharpest: Tensor | None = None
        """The direction in which the loss is most curved, once it is known."""

    def skip(self, id: str, reason: str, needs: str = "") -> None:
        """Note what is not measured."""
        self.skipped.append(Skipped(id, reason, needs))

    @functools.cached_property
    def forward(self) -> Forward:
        """The recorded forward, as the user left the model."""
        return recorded_forward(self.subject)

    @functools.cached_property
    def evaluated(self) -> Forward:
        """The recorded forward in evaluation mode."""
        return evaluated_forward(self.subject)

    @functools.cached_property
    def input_gradients(self) -> list[Tensor | None]:
        """Of the projected prediction by each leaf; also fills the gradients that contractions note."""
        return listen(self.forward, self.subject)

    @functools.cached_property
    def loss(self) -> Tensor | None:
        """The loss of the recorded forward, without its graph."""
        value = self.subject.loss_of(self.forward.output)
        return None if value is None else value.detach()

    @functools.cached_property
    def gradients(self) -> dict[str, Tensor | None]:
        """By every trainable parameter: of the loss, or without one of the projected prediction."""
        return parameter_gradients(self.subject, self.forward.output)

    @functools.cached_property
    def reached(self) -> set[str]:
        """Parameters that some output depends on."""
        graph = self.forward.graph
        held = [graph.names.get(id(node.variable)) for node in graph.nodes if hasattr(node, "variable")]
        return {name for name in held if name is not None}

    @functools.cached_property
    def matrices(self) -> dict[str, Tensor]:
        """Parameters with at least two axes and two rows."""
        return {
            name: value
            for name, value in self.subject.parameters.items()
            if value.ndim >= 2 and value.shape[0] > 1 and value.numel() > value.shape[0]
        }

    @functools.cached_property
    def zero_matrices(self) -> list[str]:
        """Matrices whose gradient is exactly zero."""
        found = []
        for name in self.matrices:
            gradient = self.gradients.get(name)
            if gradient is not None and not bool((gradient != 0).any()):
                found.append(name)
        return found

    @functools.cached_property
    def input_spread(self) -> float | None:
        """c of the input: rms of what differs between samples, of the largest real input."""
        real = [tensor for tensor in self.subject.sample.floating if tensor.ndim > 0]
        if not real:
            return None
        return centred_rms(max(real, key=lambda tensor: tensor.numel()), self.subject.sample.n)

    @property
    def tokens(self) -> bool:
        """Whether the input is whole numbers alone."""
        return self.subject.sample.tokens

    @functools.cached_property
    def prediction_rows(self) -> Tensor | None:
        """The prediction in evaluation mode with samples first; None if its first axis counts something else."""
        value, n = self.evaluated.predicted, self.subject.sample.n
        if value.ndim == 0 or self.subject.sample.packed:
            return None
        if value.shape[0] == n:
            return value
        return value.reshape(n, -1, *value.shape[1:]) if value.shape[0] % n == 0 else None

    @functools.cached_property
    def timed_leaf(self) -> int | None:
        """Which leaf of the evaluated forward is (samples, time, features)."""
        length, n = self.subject.sample.time_length, self.subject.sample.n
        for place, leaf in enumerate(self.evaluated.leaves):
            if length is not None and leaf.ndim == 3 and leaf.shape[:2] == (n, length):
                return place
        return None

    @functools.cached_property
    def timed_prediction(self) -> Tensor | None:
        """The prediction as (samples, time, ...) if it has a value for each step of the input."""
        value, length = self.prediction_rows, self.subject.sample.time_length
        if value is None or length is None or value.ndim < 3 or value.shape[1] != length:
            return None
        return value

    def evaluated_gradient(self, value: Tensor, leaf: int) -> Tensor | None:
        """Of a projected part of the evaluated prediction by one leaf."""
        return gradients(projected(value, self.subject.seed, "part"), [self.evaluated.leaves[leaf]])[0]

    @functools.cached_property
    def output_size(self) -> float:
        """rms of the prediction."""
        return rms(self.forward.predicted)

    @property
    def forward_seconds(self) -> float:
        """What one forward takes: the quickest so far, for the first one may have had things to load."""
        seen = [found.seconds for name in ("forward", "evaluated") if (found := self.__dict__.get(name)) is not None]
        return min(seen, default=self.forward.seconds)

    @functools.cached_property
    def trained(self) -> bool:
        """Whether the loss is clearly below that of a model that knows nothing, or most weights are of no family that
        initialisers draw from."""
        kind = self.measures.get("loss_classes")
        known = self.loss is not None and kind is not None and bool(torch.isfinite(self.loss))
        if known and float(self.loss) < threshold("trained", "loss") * math.log(kind):  # type: ignore[arg-type]
            return True
        sizes = {name: value.numel() for name, value in self.matrices.items() if min(value.flatten(1).shape) >= 8}
        other = sum(sizes[name] for name in sizes if family_of(self.matrices[name]) == "other")
        return other > threshold("trained", "other") * sum(sizes.values()) > 0
