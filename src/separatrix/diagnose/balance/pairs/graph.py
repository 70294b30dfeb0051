"""The computation of a model as a graph of operations, seen without running it or from one call.

``trace_symbolically`` uses torch.fx and needs no data, but gives up on models whose Python depends on values; then
its parts are traced one by one. ``trace_call`` watches one call on example inputs and sees every operation of any
model. Both give the same kind of graph: operations, which of them feed which, and the module behind each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from ...model_call import call_model, without_trace
from .homogeneity import plain_name
from .layers import LAYER_CALLS, join

SHAPE_ONLY = frozenset({"size", "dim", "getattr", "ndimension", "numel", "get"})
"""Operations that read a tensor's shape but not its values."""


@final
@dataclasses.dataclass(eq=False)
class Op:
    """One operation: its name, the module it belongs to (if it uses that module's weight), and its neighbours."""

    name: str
    module: str | None = None
    constants: tuple[Any, ...] = ()
    inputs: list[Op] = dataclasses.field(default_factory=list)
    users: list[Op] = dataclasses.field(default_factory=list)

    def feed(self, user: Op) -> None:
        """Record that ``user`` reads this operation's result."""
        user.inputs.append(self)
        if user not in self.users:
            self.users.append(user)


@final
@dataclasses.dataclass
class Graph:
    """Operations in the order of execution; parameters used outside their own layer; what could not be traced."""

    ops: list[Op] = dataclasses.field(default_factory=list)
    loose_parameters: set[str] = dataclasses.field(default_factory=set)
    untraced: list[str] = dataclasses.field(default_factory=list)

    def extend(self, other: Graph) -> None:
        """Add the operations of a graph that is not connected with this one."""
        self.ops += other.ops
        self.loose_parameters |= other.loose_parameters
        self.untraced += other.untraced


@final
class _Tracer(fx.Tracer):
    def __init__(self, opaque: frozenset[str]) -> None:
        super().__init__()
        self._opaque = opaque

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if module_qualified_name in self._opaque:
            return True
        if next(m.children(), None) is not None:
            return False
        return type(m).__module__.startswith("torch.nn") or next(m.parameters(), None) is not None


def trace_symbolically(model: nn.Module, prefix: str = "", leaves: frozenset[str] = frozenset()) -> Graph:
    """The graph of a model without running it.

    A part that torch.fx cannot follow is taken as one opaque operation and traced inside by itself; where the model's
    own Python is the obstacle, its children are traced one by one and stay unconnected.

    Args:
        model: the model, or a part of it.
        prefix: the part's full name.
        leaves: modules (full names) whose inside is dealt with elsewhere, such as recognised attention.
    """
    if prefix and prefix in leaves:
        return Graph()
    if next(model.children(), None) is None:
        has_weights = next(model.parameters(), None) is not None
        return Graph([Op(plain_name(type(model).__name__), prefix)]) if has_weights else Graph()
    inside = {name for name, _ in model.named_modules() if name and join(prefix, name) in leaves}
    whole = _try_fx(model, prefix, frozenset(inside))
    if whole is not None:
        return whole
    parts = {name: trace_symbolically(child, join(prefix, name), leaves) for name, child in model.named_children()}
    obstacles = {name for name, part in parts.items() if part.untraced}
    whole = _try_fx(model, prefix, frozenset(inside | obstacles)) if obstacles else None
    graph = whole or Graph(untraced=[prefix or "the model"])
    for name, part in parts.items():
        if whole is None or name in obstacles:
            graph.extend(part)
    return graph


def _try_fx(model: nn.Module, prefix: str, opaque: frozenset[str]) -> Graph | None:
    try:
        return _from_fx(_Tracer(opaque).trace(model), model, prefix)
    except Exception:  # torch.fx fails in many ways on Python that depends on values; each means "take it apart"
        return None


def _from_fx(traced: fx.Graph, model: nn.Module, prefix: str) -> Graph:
    graph, made = Graph(), {}
    modules = dict(model.named_modules())
    for node in traced.nodes:
        if node.op == "get_attr":
            graph.loose_parameters.add(join(prefix, str(node.target)))
        if node.op == "call_module":
            op = Op(plain_name(type(modules[node.target]).__name__), join(prefix, str(node.target)))
        elif node.op in ("call_function", "call_method"):
            target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
            op = Op(plain_name(target), constants=_constants(node.args, node.kwargs, fx.Node))
        else:
            op = Op(node.op)
        made[node] = op
        for source in _nodes(node):
            made[source].feed(op)
        graph.ops.append(op)
    return graph


def _nodes(node: fx.Node) -> Iterator[fx.Node]:
    """Argument nodes with repetition, so that x * x reads x twice."""
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), lambda source: found.append(source))
    return iter(found)


def _constants(args: Any, kwargs: Mapping[str, Any], kind: type) -> tuple[Any, ...]:
    return tuple(value for value in (*args, *kwargs.values()) if not isinstance(value, kind))


def trace_call(model: nn.Module, inputs: Any) -> Graph:
    """The graph of one call of the model, in evaluation mode, on ``inputs`` in any form that ``call_model`` takes."""
    recorder = _Recorder(model)
    with torch.no_grad(), without_trace(model), recorder:
        call_model(model, inputs)
    return recorder.graph


@final
class _Recorder(TorchFunctionMode):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.graph = Graph()
        self._owner = {
            id(parameter): join(name, leaf)
            for name, module in model.named_modules()
            for leaf, parameter in module.named_parameters(recurse=False)
        }
        self._producer: dict[int, Op] = {}
        self._alive: list[Tensor] = []  # an id may be reused only when its tensor is gone

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = plain_name(getattr(func, "__name__", str(func)))
        tensors = [value for value in _flat((args, kwargs)) if isinstance(value, Tensor)]
        outputs = [value for value in _flat(result) if isinstance(value, Tensor)]
        if outputs and name not in SHAPE_ONLY:
            self._record(name, tensors, outputs, _constants(args, kwargs, Tensor))
        return result

    def _record(self, name: str, tensors: list[Tensor], outputs: list[Tensor], constants: tuple[Any, ...]) -> None:
        owned = [self._owner[id(tensor)] for tensor in tensors if id(tensor) in self._owner]
        layers = {parameter.rpartition(".")[0] for parameter in owned}
        is_layer = len(layers) == 1 and name in LAYER_CALLS
        if not is_layer:
            self.graph.loose_parameters.update(owned)
        op = Op(name, next(iter(layers)) if is_layer else None, constants)
        for tensor in tensors:
            if id(tensor) in self._producer:
                self._producer[id(tensor)].feed(op)
        for output in outputs:
            self._producer[id(output)] = op
            self._alive.append(output)
        self.graph.ops.append(op)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value
