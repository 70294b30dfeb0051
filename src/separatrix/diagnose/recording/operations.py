"""The recorder below autograd: every operation as torch runs it, reduced to numbers while it passes.

It knows nothing of modules, names or graphs: rectified units, saturated squashing, softmax and what is made of it,
batch statistics, how often a weight is used and on what, and the first operation whose result is not finite.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import sys
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode

from . import squashing
from .attention_rows import AttentionRow, SoftmaxWatch
from .feedback import Use
from .places import ModuleStack, source_line
from .reductions import all_finite, is_plain

CONTRACTIONS = frozenset(["mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "convolution", "linear", "_addmm_activation"])
LOOKUPS = frozenset(["embedding", "index_select", "index", "gather", "_embedding_bag"])
_UNSET = frozenset(["empty", "empty_like", "new_empty", "empty_strided", "empty_permuted", "new_empty_strided"])
_MASKS = frozenset([
    "full", "full_like", "fill", "fill_", "masked_fill", "masked_fill_", "where", "scalar_tensor", "triu", "tril",
    "new_full",
])  # fmt: skip
_NORMS = frozenset(
    ["native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"]
)


@dataclasses.dataclass(frozen=True)
class Occurrence:
    """Something at one place."""

    op: str
    module: str
    source: str
    largest: float = 0.0
    """Largest number that entered, for the place where numbers stop being finite."""


@dataclasses.dataclass(frozen=True)
class Normalised:
    """One batch normalisation: how many values per channel, or how far the batch is from the running statistics."""

    event: Occurrence
    training: bool
    values: int
    variance: float | None
    mean: float | None
    running: int
    """Address of the running mean, to find the module."""


class OperationWatch(TorchDispatchMode):
    """Sees every operation below autograd, and loads torch's compiler only where somebody else has.

    Torch keeps its compiler out of the lines of such a class, and imports it for that at the first operation, which
    takes longer than most examinations. Where it is not loaded there is nothing to be kept out.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guarded = cls.__torch_dispatch__
        plain = inspect.unwrap(guarded)

        def dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if "torch._dynamo" not in sys.modules:
                return plain(self, func, types, args, kwargs)
            cls.__torch_dispatch__ = guarded  # type: ignore[method-assign]
            return guarded(self, func, types, args, kwargs)

        cls.__torch_dispatch__ = dispatch  # type: ignore[method-assign]


class OperationRecorder(OperationWatch):
    """Notes what every operation did."""

    def __init__(self, weights: dict[int, str], stack: ModuleStack) -> None:
        super().__init__()
        self.weights: dict[int, tuple[str, ...]] = {storage: (name,) for storage, name in weights.items()}
        self.stack = stack
        self.uses: dict[str, Use] = {}
        self.order: list[str] = []
        """Weights in the order of their first contraction."""
        self.touches: collections.Counter[str] = collections.Counter()
        """How many operations a parameter or buffer takes part in."""
        self.tables: set[str] = set()
        self.norms: list[Normalised] = []
        self.first_nan: Occurrence | None = None
        self.first_infinite: Occurrence | None = None
        self._from_infinite = False
        self.units = squashing.Units()
        self.attention = SoftmaxWatch()
        self._alive: list[Tensor] = []
        self._latest: tuple[str, ...] = ()
        self._channels: set[tuple[int, ...]] = set()
        self._followed: list[Use] = []

    @property
    def touched(self) -> set[str]:
        """Parameters and buffers that some operation used."""
        return set(self.touches)

    @property
    def origin(self) -> Occurrence | None:
        """Where numbers stop being finite: the first NaN, or the infinity that it was made from."""
        made = self.first_infinite if self._from_infinite else None
        return made or self.first_nan or self.first_infinite

    @property
    def rows(self) -> list[AttentionRow]:
        """Attention layers in the order in which they ran."""
        return self.attention.rows

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        given = [leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        tensors = [leaf for leaf in given if is_plain(leaf)]
        before = squashing.before(name, args) if len(tensors) == len(given) else None
        result = func(*args, **kwargs)
        outputs = [leaf for leaf in tree.tree_leaves(result) if isinstance(leaf, Tensor) and is_plain(leaf)]
        if name in _UNSET or not outputs:
            return result
        self._finiteness(name, tensors, outputs)
        derivative = _of_a_derivative()
        self._weights(name, tensors, outputs, derivative)
        if len(tensors) < len(given) or derivative:
            return result
        self._followed = [use for use in self._followed if use.follow(name, tensors, outputs[0])]
        key = (name.rstrip("_"), self.stack.here, self._latest)
        self.units.note(name, before, args, outputs[0], key, tuple(outputs[0].shape) in self._channels)
        self.attention.note(name, args, kwargs, outputs[0], lambda: self._event(name))
        if name in _NORMS:
            self._normalisation(name, args, tensors)
        if name == "convolution" or name in _NORMS:
            self._channels.add(tuple(outputs[0].shape))
        return result

    def _event(self, name: str, tensors: list[Tensor] | None = None) -> Occurrence:
        real = [part for part in tensors or () if part.is_floating_point() and part.numel()]
        largest = max((float(part.abs().max()) for part in real), default=0.0)
        return Occurrence(name, self.stack.here, source_line(), largest)

    def _finiteness(self, name: str, tensors: list[Tensor], outputs: list[Tensor]) -> None:
        if self.first_nan is not None or name in _MASKS:
            return
        bad = [part for part in outputs if not all_finite(part)]
        if not bad:
            return
        if any(bool(torch.isnan(part).any()) for part in bad):
            inplace = name.endswith("_")
            if inplace or not any(part.is_floating_point() and bool(torch.isnan(part).any()) for part in tensors):
                self.first_nan = self._event(name, tensors)
                self._from_infinite = not inplace and not all(all_finite(part) for part in tensors)
        elif self.first_infinite is None and (name.endswith("_") or all(all_finite(part) for part in tensors)):
            self.first_infinite = self._event(name, tensors)

    def _weights(self, name: str, tensors: list[Tensor], outputs: list[Tensor], derivative: bool) -> None:
        roots = [self.weights.get(part.untyped_storage()._cdata) for part in tensors if part.numel()]
        known = [root for root in roots if root is not None]
        if not known:
            return
        self.touches.update({part for root in known for part in root})
        if len(known) == len(roots) and not name.endswith("_"):
            joined = tuple(dict.fromkeys(part for root in known for part in root))
            for part in outputs:
                if part.untyped_storage()._cdata not in self.weights:
                    self.weights[part.untyped_storage()._cdata] = joined
                    self._alive.append(part)
        elif name in LOOKUPS:
            self.tables.update(roots[0] or ())
        elif name in CONTRACTIONS and not derivative:
            self._contraction(name, tensors)

    def _contraction(self, name: str, tensors: list[Tensor]) -> None:
        entering = [part for part in tensors if part.untyped_storage()._cdata not in self.weights]
        wide = [part for part in tensors if part.ndim >= 2 and part.untyped_storage()._cdata in self.weights]
        if not wide or not entering:
            return
        self._latest = self.weights[wide[-1].untyped_storage()._cdata]
        x = entering[-1]
        for root in self._latest:
            if root not in self.uses:
                self.order.append(root)
            use = self.uses.setdefault(root, Use())
            use.enter(x, graph=torch.is_grad_enabled())
            self._followed = [*self._followed[-3:], use] if use not in self._followed else self._followed

    def _normalisation(self, name: str, args: Any, tensors: list[Tensor]) -> None:
        x = args[0]
        training = name == "native_batch_norm" and bool(args[5])
        training = training or (name in ("_native_batch_norm_legit", "cudnn_batch_norm") and bool(args[5]))
        running_mean, running_var = (args[3], args[4]) if len(args) > 4 else (None, None)
        values = x.numel() // max(x.shape[1], 1)
        variance = mean = None
        if not training and isinstance(running_mean, Tensor) and isinstance(running_var, Tensor) and values > 1:
            axes = [axis for axis in range(x.ndim) if axis != 1]
            spread, centre = torch.var_mean(x.detach().double(), axes)
            own = running_var.detach().double().clamp_min(1e-30)
            variance = float((spread.clamp_min(1e-30) / own).log().abs().median())
            mean = float(((centre - running_mean.double()).abs() / own.sqrt()).median())
        address = running_mean.data_ptr() if isinstance(running_mean, Tensor) else 0
        self.norms.append(Normalised(self._event(name), training, values, variance, mean, address))


def _of_a_derivative() -> bool:
    """Whether a forward takes a derivative at this moment, as Newton's method does: what enters a weight then is a
    direction or a gradient, and no state."""
    return forward_ad._current_level >= 0 or torch._C._current_autograd_node() is not None
