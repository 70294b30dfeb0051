"""Somebody's model with a sample, a loss and an optimiser: how it is called and what its parts are named."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import stream_seed
from separatrix.core.random import seed_global

from ..model_call import Pick, prediction
from .samples import Sample


@dataclasses.dataclass
class Subject:
    """What is looked at."""

    model: nn.Module
    sample: Sample
    loss: Callable[[Any], Tensor] | None
    """Of the prediction alone, the target being inside; None without a loss."""
    own_loss: bool
    """Whether the model's output holds its loss."""
    target: Any
    optimizer: torch.optim.Optimizer | None
    pick: Pick
    seed: int
    clock: Callable[[], float] = time.perf_counter
    whole: bool = False
    """Whether the loss takes the whole output (a dictionary, a tuple) instead of the prediction in it."""
    direct: bool = False
    """Whether the model gets leaves instead of copies, because it sets flags of its input."""
    called: bool = False
    loss_of_first: Callable[[int], Callable[[Any], Tensor]] | None = None
    """The loss of the first samples alone, for so many of them."""

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter once, under its first name."""
        return dict(self.model.named_parameters())

    @property
    def trainable(self) -> dict[str, Tensor]:
        """Parameters that ask for a gradient."""
        return {name: value for name, value in self.parameters.items() if value.requires_grad}

    def names(self) -> dict[int, str]:
        """By identity, the names of parameters and buffers."""
        named = [*self.model.named_parameters(), *self.model.named_buffers()]
        return {id(tensor): name for name, tensor in reversed(named)}

    def storages(self) -> dict[int, str]:
        """By storage, the names of parameters and buffers of at least one number."""
        named = [*self.model.named_parameters(), *self.model.named_buffers()]
        return {
            tensor.untyped_storage()._cdata: name
            for name, tensor in reversed(named)
            if tensor.numel() and not tensor.is_sparse
        }

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One forward with the random numbers of the seed. What the model warns of is said once, at its first."""
        seed_global(stream_seed(self.seed, "check", "model"))
        with warnings.catch_warnings():
            if self.called:
                warnings.simplefilter("ignore")
            self.called = True
            return self.model(*args, **kwargs)

    def forward(self) -> tuple[Any, list[Tensor]]:
        """Output and the leaves of the real inputs."""
        args, kwargs, leaves = self.sample.leaves(direct=self.direct)
        return self.call(args, kwargs), leaves

    def loss_of(self, output: Any) -> Tensor | None:
        """The loss of an output; None without one."""
        if self.own_loss:
            return own_loss(output)
        return None if self.loss is None else self.loss(output if self.whole else self.predicted(output))

    def predicted(self, output: Any) -> Tensor:
        """The prediction among the outputs."""
        return self.pick(output)

    def scalar(self, output: Any) -> Tensor:
        """The loss, or without one a fixed random projection of the prediction per sample."""
        loss = self.loss_of(output)
        if loss is not None:
            return loss
        return projected(self.predicted(output), self.seed)


def projected(value: Tensor, seed: int, purpose: str = "cotangent") -> Tensor:
    """v . f with v ~ N(0, 1) / sqrt(numbers of one sample's output), drawn from the seed."""
    generator = torch.Generator().manual_seed(stream_seed(seed, "check", purpose))
    v = torch.randn(value.shape, generator=generator, dtype=torch.float64)
    v = (v / max(value[0].numel() if value.ndim else 1, 1) ** 0.5).to(value.device)
    real = torch.view_as_real(value).sum(-1) if value.is_complex() else value
    return (real * v.to(real.dtype)).sum()


def own_loss(output: Any) -> Tensor | None:
    """A scalar ``loss`` in the model's own output, as Hugging Face models return it when given labels."""
    found = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    return found if isinstance(found, Tensor) and found.ndim == 0 and found.is_floating_point() else None


default_pick: Pick = prediction


@contextlib.contextmanager
def as_left(model: nn.Module) -> Iterator[None]:
    """The modes the user left, except that batch normalisation which has seen no batch uses this one.

    Fused recurrent kernels are switched off, so that gates are seen.
    """
    fresh = [module for module in model.modules() if _saw_nothing(module) and not module.training]
    for module in fresh:
        module.training = True
    try:
        with torch.inference_mode(False), torch.enable_grad(), open_kernels():
            yield
    finally:
        for module in fresh:
            module.training = False


@contextlib.contextmanager
def open_kernels() -> Iterator[None]:
    """Fused recurrent kernels switched off, so that every operation inside them is seen."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _saw_nothing(module: nn.Module) -> bool:
    seen = getattr(module, "num_batches_tracked", None)
    return isinstance(seen, Tensor) and seen.numel() == 1 and int(seen) == 0
