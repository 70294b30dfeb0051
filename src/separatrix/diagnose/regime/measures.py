"""The measures behind the words rich and lazy, between one start and any number of later states."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result

from ..losses import Loss
from ..model_call import Pick, n_samples, real_tensors, take
from .batch_statistics import own_statistics
from .equal_loss import loss_of
from .features import hidden_features
from .kernel import TangentKernel, full_change, tangent_kernel
from .linearised import linearised_prediction
from .sampling import sample_index
from .similarity import linear_cka
from .verdict import RegimeVerdict, relative_drop, verdict_of


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RegimePoint(Result):
    """What had changed when the training loss had come down to ``loss``.

    Attributes:
        loss: training loss.
        drop: fraction of the loss at the start that had been removed.
        kernel_change: relative change of the full tangent kernel.
        feature_change: largest 1 - CKA over hidden layers.
        linearised_error: how badly the model linearised at the start predicts this state.
        word: the verdict at this loss.
    """

    loss: float
    drop: float
    kernel_change: float
    feature_change: float
    linearised_error: float
    word: str


@final
@dataclasses.dataclass(frozen=True)
class Probed:
    """A state seen on the sample: its loss, its kernel, what its hidden layers put out."""

    state: dict[str, Tensor]
    loss: float
    kernel: TangentKernel
    features: dict[str, Tensor]


@final
class Bench:
    """A model, data and a random sample of them, on which states are compared with the start of training.

    Args:
        model: any model; unchanged.
        data: inputs and targets.
        max_samples: samples for kernel and features, drawn at random: data are often sorted by class.
        align: give each state the batch statistics of its own weights.
    """

    def __init__(
        self,
        model: nn.Module,
        data: tuple[Any, Any],
        *,
        loss: Loss,
        output: Pick,
        max_samples: int,
        chunk_size: int | Literal["auto"],
        generator: torch.Generator | None,
        align: bool,
    ) -> None:
        self.model, self.data, self.loss, self.output = model, data, loss, output
        self._chunk_size, self._generator, self._align = chunk_size, generator, align
        index = sample_index(n_samples(data[0]), max_samples)
        self.count = int(index.numel())
        self.inputs, self.targets = take(data[0], index), take(data[1], index)
        self._beginning = None if generator is None else generator.get_state()

    def probe(self, state: dict[str, Tensor]) -> Probed:
        """One state on the sample."""
        if self._align:
            state = own_statistics(self.model, state, self.data[0])
        loss = loss_of(self.model, state, self.data, self.loss, self.output)
        if not math.isfinite(loss):
            cause = "training diverged" if _finite(self.data) else "the data hold numbers that are not finite"
            raise InvalidInput(f"the loss must be finite in every state; it is {loss} in one: {cause}.")
        if self._generator is not None and self._beginning is not None:
            self._generator.set_state(self._beginning)  # the same sketch of the outputs for every state
        kernel = tangent_kernel(
            self.model,
            self.inputs,
            state=state,
            output=self.output,
            chunk_size=self._chunk_size,
            generator=self._generator,
            full=True,
        )
        return Probed(state, loss, kernel, hidden_features(self.model, state, self.inputs, self.output))

    def compare(self, start: Probed, end: Probed) -> tuple[RegimePoint, RegimeVerdict]:
        """The measures between two states, and the verdict."""
        line = linearised_prediction(
            self.model, self.inputs, start.state, end.state, output=self.output, batch_statistics=self._align
        )
        change = full_change(start.kernel, end.kernel)
        moved = [1 - float(linear_cka(value, end.features[name])) for name, value in start.features.items()]
        largest = max([value for value in moved if not math.isnan(value)], default=float("nan"))
        drop = relative_drop(start.loss, end.loss)
        verdict = verdict_of(change, largest, line.error, drop)
        return RegimePoint(end.loss, drop, change, largest, line.error, verdict.label), verdict


def _finite(data: Any) -> bool:
    """Whether all real numbers in inputs and targets are finite."""
    return all(bool(torch.isfinite(tensor).all()) for _, tensor in real_tensors(data))
