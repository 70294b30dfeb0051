"""The graph that autograd keeps of a forward pass: which weights follow one another with nothing in between.

Nodes are known by the operation they differentiate, so the graph is the same whether a layer was written as a module,
a function or a method.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor

_PRODUCTS = ("AddmmBackward", "MmBackward", "BmmBackward", "ConvolutionBackward")
_THROUGH = (
    "ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward", "TransposeBackward", "PermuteBackward",
    "NativeDropoutBackward", "NativeBatchNormBackward", "CudnnBatchNormBackward", "CloneBackward", "AliasBackward",
    "UnsqueezeBackward", "SqueezeBackward", "ToCopyBackward",
)  # fmt: skip
_WEIGHT_ONLY = (
    "TBackward", "TransposeBackward", "PermuteBackward", "ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward",
    "UnsqueezeBackward", "SqueezeBackward", "CloneBackward", "ToCopyBackward",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Affine:
    """A product with a weight: its name, the numbers that enter and leave, groups, and the edge to its input."""

    weight: str
    width_in: int
    width_out: int
    groups: int
    below: Any


@dataclasses.dataclass(frozen=True)
class Adjoining:
    """Two weights with nothing but linear operations between them."""

    first: str
    second: str
    middle: int
    narrow: int
    """The smaller of what enters the first and what leaves the second."""


class Graph:
    """Everything behind some outputs."""

    def __init__(self, outputs: list[Tensor], names: dict[int, str]) -> None:
        self.names = names
        self.nodes: list[Any] = []
        self.consumers: dict[Any, int] = {}
        seen: set[Any] = set()
        queue = [output.grad_fn for output in outputs if output.grad_fn is not None]
        for node in queue:
            self.consumers[node] = self.consumers.get(node, 0) + 1
        while queue:
            node = queue.pop()
            if node in seen:
                continue
            seen.add(node)
            self.nodes.append(node)
            for below, _ in node.next_functions:
                if below is not None:
                    self.consumers[below] = self.consumers.get(below, 0) + 1
                    queue.append(below)

    def adjoining(self) -> list[Adjoining]:
        """Pairs of weights, used once each, with only views, dropout, scaling by constants, biases and batch
        normalisation between them and no other consumer on the way."""
        found = []
        for node in self.nodes:
            second = self._affine(node)
            if second is None or second.groups != 1:
                continue
            first = self._below(second.below)
            if first is not None and first.groups == 1 and first.weight != second.weight:
                narrow = min(first.width_in, second.width_out)
                found.append(Adjoining(first.weight, second.weight, first.width_out, narrow))
        return found

    def _below(self, node: Any) -> Affine | None:
        while node is not None and self.consumers[node] == 1:
            affine = self._affine(node)
            if affine is not None:
                return affine
            node = self._through(node)
        return None

    def _through(self, node: Any) -> Any:
        """The one edge that a linear, shape-preserving or shape-changing operation passes on; None otherwise."""
        name = node.name().rstrip("0123456789")
        edges = [below for below, _ in node.next_functions]
        if name in _THROUGH:
            return edges[0]
        if name in ("AddBackward", "MulBackward", "DivBackward"):
            moving = [below for below in edges if below is not None and not self._is_weight(below)]
            return moving[0] if len(moving) == 1 and (name == "AddBackward" or edges.count(None)) else None
        return None

    def _is_weight(self, node: Any) -> bool:
        return self._root(node) is not None

    def _root(self, node: Any) -> str | None:
        """The parameter that a chain of transposes and views leads to."""
        while node is not None:
            if hasattr(node, "variable"):
                return self.names.get(id(node.variable))
            if node.name().rstrip("0123456789") not in _WEIGHT_ONLY:
                return None
            node = node.next_functions[0][0]
        return None

    def _affine(self, node: Any) -> Affine | None:
        name = node.name().rstrip("0123456789")
        if name not in _PRODUCTS:
            return None
        edges = [below for below, _ in node.next_functions]
        if name == "ConvolutionBackward":
            root, shape = self._root(edges[1]), tuple(node._saved_weight.shape)
            groups = int(node._saved_groups)
            a, b = (shape[0], shape[1]) if node._saved_transposed else (shape[1] * groups, shape[0])
            return None if root is None else Affine(root, a, b, groups, edges[0])
        if name == "BmmBackward":
            return self._batched(node, edges)
        data, weight = edges[-2], edges[-1]
        sizes = node._saved_mat2_sym_sizes
        root = self._root(weight)
        if root is None and self._root(data) is not None:  # W @ x
            left = node._saved_self_sym_sizes if name == "MmBackward" else node._saved_mat1_sym_sizes
            root, data, sizes = self._root(data), weight, (left[1], left[0])
        return None if root is None or data is None else Affine(root, int(sizes[0]), int(sizes[1]), 1, data)

    def _batched(self, node: Any, edges: list[Any]) -> Affine | None:
        """A product written as einsum: torch runs it as a batch of one."""
        for place, saved in ((1, "_saved_mat2"), (0, "_saved_self")):
            root, data = self._root(edges[place]), edges[1 - place]
            if root is None or data is None:
                continue
            weight = getattr(node, saved)
            if weight is None or weight.shape[0] != 1:
                return None
            width_in, width_out = weight.shape[1:] if place == 1 else (weight.shape[2], weight.shape[1])
            return Affine(root, int(width_in), int(width_out), 1, data)
        return None
