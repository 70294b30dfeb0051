"""Samples in any form: which tensors they hold, some of them alone, leaves that gradients arrive at."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as tree

from separatrix.core import InvalidInput

from ..model_call import arguments
from .reductions import is_plain

MOST = 64
"""Samples of a batch that are looked at."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One batch: positional and keyword arguments of the model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    n: int
    """Samples, along the first axis of every tensor."""
    given: int
    """How many there were before some were taken."""
    packed: bool = False

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor, in order."""
        return [leaf for leaf in tree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Tensor)]

    @property
    def floating(self) -> list[Tensor]:
        """Tensors of real numbers, sparse ones left out."""
        return [tensor for tensor in self.tensors if tensor.is_floating_point() and is_plain(tensor)]

    @property
    def tokens(self) -> bool:
        """Whether it holds whole numbers alone."""
        kinds = [tensor for tensor in self.tensors if tensor.dtype != torch.bool]
        return bool(kinds) and not any(tensor.is_floating_point() or tensor.is_complex() for tensor in kinds)

    @property
    def time_length(self) -> int | None:
        """Length of the second axis if the first tensor is (batch, time, features) or (batch, time) of tokens."""
        first = self.tensors[0]
        if self.packed or first.ndim < 2 or (first.is_floating_point() and first.ndim != 3):
            return None
        return int(first.shape[1]) if first.shape[1] > 1 and first.ndim in (2, 3) else None

    def leaves(self, *, direct: bool = False) -> tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]:
        """Arguments for one call, and the leaves of their real tensors.

        The model gets copies, so that it may overwrite its input; ``direct`` gives it the leaves themselves, for models
        that set flags of their input.
        """
        leaves: list[Tensor] = []

        def fresh(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if not (value.is_floating_point() or value.is_complex()) or not is_plain(value):
                return value.detach().clone()
            leaf = value.detach().clone().requires_grad_()
            leaves.append(leaf)
            return leaf if direct else leaf.clone()

        with torch.inference_mode(False), torch.enable_grad():
            args, kwargs = tree.tree_map(fresh, (self.args, self.kwargs))
        return args, kwargs, leaves

    def first(self, count: int) -> Sample:
        """The first samples alone."""
        if count >= self.n:
            return self

        def cut(value: Any) -> Any:
            fits = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == self.n
            return value[:count] if fits and is_plain(value) else value

        args, kwargs = tree.tree_map(cut, (self.args, self.kwargs))
        return dataclasses.replace(self, args=args, kwargs=kwargs, n=count)


def read_sample(sample: Any) -> Sample:
    """The batch that a caller gave, in any of the forms that a model is called with.

    Raises:
        InvalidInput: there is no tensor in it, or no sample.
    """
    packed = isinstance(sample, PackedSequence)
    if not packed and hasattr(sample, "data") and hasattr(sample, "items") and not isinstance(sample, dict | Tensor):
        sample = dict(sample.items())  # what tokenisers return
    args, kwargs = ((sample,), {}) if packed else arguments(sample)
    tensors = [leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    if packed and not tensors:
        raise InvalidInput("sample is a PackedSequence, which this torch cannot take apart: pad it or update torch.")
    if not tensors:
        raise InvalidInput("sample must hold a tensor whose first axis counts samples; there is none in it.")
    if any(tensor.is_meta for tensor in tensors):
        raise InvalidInput("sample lies on the meta device and holds no numbers: pass real tensors.")
    if tensors[0].ndim == 0:
        raise InvalidInput("sample must have a first axis that counts samples; its first tensor is a single number.")
    n = int(sample.batch_sizes[0]) if packed else int(tensors[0].shape[0])
    if n == 0 or tensors[0].numel() == 0:
        raise InvalidInput(f"sample must not be empty; its first tensor has shape {tuple(tensors[0].shape)}.")
    return Sample(tuple(args), dict(kwargs), n, n, packed)


def cut_target(target: Any, before: int, after: int) -> Any:
    """Targets of the first samples alone."""

    def cut(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        fits = value.ndim > 0 and value.shape[0] == before and after < before
        return (value[:after] if fits else value).clone() if fits or value.is_inference() else value

    with torch.inference_mode(False):
        return tree.tree_map(cut, target)
