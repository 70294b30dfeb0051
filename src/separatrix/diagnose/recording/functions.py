"""The recorder above autograd: contractions with a weight, in the order in which they run.

It sees ``torch`` functions whether a module, a functional call or a method makes them, with tensors that still carry
their graph: a hook on them reduces the gradient to one number when it passes. Weights that are computed from
parameters (transposed, normalised, parametrised) count as those parameters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import _disable_current_modes

from .places import ModuleStack, source_line
from .reductions import centred_rms, diversity, is_plain, rms, shift_gradient

CONTRACTIONS = frozenset(
    [
        "linear",
        "matmul",
        "__matmul__",
        "__rmatmul__",
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "einsum",
        "tensordot",
        "bilinear",
        "embedding",
        "embedding_bag",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
        "multi_head_attention_forward",
        "_native_multi_head_attention",
    ]
)
RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
LOOKUPS = frozenset(("embedding", "embedding_bag", "__getitem__", "index_select"))


@dataclasses.dataclass(frozen=True)
class Alike:
    """How far tokens differ: relative to their size, and by themselves (rms)."""

    share: float
    size: float


@dataclasses.dataclass
class WeightUse:
    """One contraction of an activation with a weight."""

    roots: tuple[str, ...]
    """Names of the parameters and buffers that the weight is made of."""
    op: str
    module: str
    source: str
    rms_in: float
    centred_in: float | None
    rms_out: float
    centred_out: float | None
    diversity_in: float | None
    tokens_in: int
    """Length of the second axis of what enters."""
    size_in: int
    """Numbers per sample that enter."""
    gradient_in: float | None = None
    gradient_out: float | None = None

    @property
    def is_lookup(self) -> bool:
        """Whether it picks rows of a table."""
        return self.op in LOOKUPS


class FunctionRecorder(TorchFunctionMode):
    """Notes every contraction with a weight; ``slot`` says whether gradients that pass are noted."""

    def __init__(self, weights: dict[int, tuple[str, ...]], n: int, stack: ModuleStack, tokens: list[Tensor]) -> None:
        super().__init__()
        self.weights = dict(weights)
        self.n, self.stack, self.tokens = n, stack, tokens
        self.uses: list[WeightUse] = []
        self.detached: list[tuple[str, str]] = []
        """Module and line of every explicit detachment of something that had a graph."""
        self.leaves: list[Tensor] = []
        """What whole numbers were first turned into, as leaves."""
        self.looked_up: list[Tensor] = []
        """Rows of tables for whole numbers that are not the sample itself (the shifted targets of a decoder)."""
        self.streams: dict[int, tuple[Alike, Alike]] = {}
        """By the number of tokens, where a stream of so many begins and ends: latent tokens beside those that they read
        are another stream."""
        self.last_stream: int | None = None
        self.recurrent: list[tuple[str, Tensor]] = []
        """Modules that run along a sequence by themselves, and what entered them."""
        self.listening = False
        self._alive: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in ("dim", "size", "__set__"):
            return result
        tensors = [leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        first = result[0] if isinstance(result, tuple | list) and result else result
        if not isinstance(first, Tensor) or not tensors:
            return result
        self._note_detachment(func, name, tensors, first)
        if not all(is_plain(tensor) for tensor in (*tensors, first)):
            return result
        if self.tokens and isinstance(result, Tensor):
            result = first = self._leaf_of_tokens(name, tensors, result)
        known = [self.weights.get(id(tensor)) for tensor in tensors]
        with _disable_current_modes():  # what is measured here is no operation of the model
            return self._noted(name, tensors, known, result, first)

    def _noted(
        self, name: str, tensors: list[Tensor], known: list[tuple[str, ...] | None], result: Any, first: Tensor
    ) -> Any:
        if all(root is not None for root in known):
            self._remember(result, tuple(dict.fromkeys(name for root in known if root for name in root)))
        elif name in CONTRACTIONS or (name in LOOKUPS and known[0] is not None):
            self._note_use(name, tensors, known, first)
        elif first.is_floating_point() and first.ndim == 3 and first.shape[0] == self.n:
            self._note_diversity(first)
        return result

    def _note_detachment(self, func: Any, name: str, tensors: list[Tensor], first: Tensor) -> None:
        explicit = name in ("detach", "detach_") or func == Tensor.data.__get__  # type: ignore[attr-defined]
        if explicit and id(tensors[0]) not in self.weights and (tensors[0].requires_grad or name == "detach_"):
            self.detached.append((self.stack.here, source_line()))

    def _remember(self, result: Any, roots: tuple[str, ...]) -> None:
        for tensor in tree.tree_leaves(result):
            if isinstance(tensor, Tensor) and id(tensor) not in self.weights:
                self.weights[id(tensor)] = roots
                self._alive.append(tensor)

    def _leaf_of_tokens(self, name: str, tensors: list[Tensor], result: Tensor) -> Tensor:
        """A table's rows, or whole numbers made real, become a leaf where gradients by the input arrive."""
        if not result.is_floating_point() or len(self.leaves) >= 4:
            return result
        for token in self.tokens:
            looked_up = name in LOOKUPS and result.shape[: token.ndim] == token.shape and result.ndim == token.ndim + 1
            if looked_up and any(_same(other, token) for other in tensors if not other.is_floating_point()):
                self.leaves.append(result)
                if result.requires_grad:
                    result.retain_grad()
                return result
            made_real = not result.requires_grad and not any(other.is_floating_point() for other in tensors)
            if made_real and result.shape[: token.ndim] == token.shape and result.ndim in (token.ndim, token.ndim + 1):
                leaf = result.detach().requires_grad_()
                self.leaves.append(leaf)
                return leaf.clone()
        if name in LOOKUPS and result.requires_grad and result.ndim == 3 and result.shape[0] == self.n:
            self.looked_up.append(result)
        return result

    def _note_use(self, name: str, tensors: list[Tensor], known: list[tuple[str, ...] | None], first: Tensor) -> None:
        wide = [root for tensor, root in zip(tensors, known, strict=True) if root is not None and tensor.ndim >= 2]
        entering = [tensor for tensor, root in zip(tensors, known, strict=True) if root is None]
        if not wide or not entering or not first.is_floating_point():
            return
        x = entering[0]
        real = x.is_floating_point()
        roots = tuple(dict.fromkeys(part for root in wide for part in root))
        use = WeightUse(
            roots, name, self.stack.here, source_line(),
            rms(x) if real else math.nan, centred_rms(x, self.n) if real else None,
            rms(first), centred_rms(first, self.n), diversity(x) if real else None,
            x.shape[1] if x.ndim > 1 else 1, x.numel() // max(self.n, 1),
        )  # fmt: skip
        self.uses.append(use)
        if name in RECURRENT and x.ndim == 3 and len(self.recurrent) < 16:
            self.recurrent.append((self.stack.here, x.detach()))
        if real and x.requires_grad and not x.is_leaf:
            x.register_hook(self._listener(use, "gradient_in"))
        if first.requires_grad:
            first.register_hook(self._listener(use, "gradient_out"))
        if first.ndim == 3 and first.shape[0] == self.n:
            self._note_diversity(x if real and x.ndim == 3 else first)

    def _note_diversity(self, tensor: Tensor) -> None:
        value = diversity(tensor)
        if value is not None:
            now = Alike(value, value * rms(tensor))
            self.last_stream = tensor.shape[1]
            self.streams[tensor.shape[1]] = (self.streams.get(tensor.shape[1], (now, now))[0], now)

    def _listener(self, use: WeightUse, field: str) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            if self.listening:
                setattr(use, field, shift_gradient(gradient.detach(), self.n, channels=use.op.startswith("conv")))

        return hook


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a == b).all())
