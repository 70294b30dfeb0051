"""Find the layer pairs of any model, or take the ones that are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, resolve, suggest_options

from .attention import attention_pairs
from .chains import pairs_of_graph, without_irregular
from .graph import Graph, Op, trace_call, trace_symbolically
from .homogeneity import plain_name
from .laws import LayerPair
from .layers import describe_layer, join, why_not_a_layer

Pairs: TypeAlias = str | Sequence[Any]
"""``"auto"``, or a sequence of ``LayerPair`` and triples: first layer, what lies between, second layer."""

ROTARY = ("auto", "none", "half", "interleaved")

_MLP_NAMES = (
    ("linear1", "linear2"),
    ("fc1", "fc2"),
    ("c_fc", "c_proj"),
    ("fc_in", "fc_out"),
    ("lin1", "lin2"),
    ("w1", "w2"),
    ("dense_h_to_4h", "dense_4h_to_h"),
)
_ACTIVATION_NAMES = ("activation", "activation_fn", "act_fn", "act", "gelu", "relu")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class SkippedLayer:
    """A layer with weights that is in no pair, and why."""

    layer: str
    reason: str


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class PairSearch:
    """The pairs of a model and the layers that were left out."""

    pairs: tuple[LayerPair, ...]
    skipped: tuple[SkippedLayer, ...]


def find_pairs(
    model: nn.Module, pairs: Pairs = "auto", *, example_inputs: Any = None, rotary: str = "auto"
) -> PairSearch:
    """Layer pairs of a model, each with the conservation law that its operations suggest.

    ``balance_profile`` and ``set_balance`` then run the model to find out whether the law is true. Without
    ``example_inputs`` the model is traced symbolically, part by part where its Python depends on values; with them one
    call is watched, which sees every operation. Attention is recognised by the names of its parts.

    Args:
        model: any ``torch.nn.Module``.
        pairs: ``"auto"``, or a sequence of ``LayerPair`` and triples ``(first, between, second)`` of layer names with
            the activation between them.
        example_inputs: a batch for one call: a tensor, a tuple of arguments or a dictionary of arguments.
        rotary: how rotary position embeddings pair dimensions: ``"auto"`` (``half`` where a rotary part is found),
            ``"half"``, ``"interleaved"`` or ``"none"``.

    Returns:
        The pairs, and every layer in no pair with the reason.

    Raises:
        InvalidInput: an unknown layer name or activation, or layers that do not fit.

    Cost: one symbolic trace or one forward call.
    """
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model must be a torch.nn.Module; got {type(model).__name__}.")
    choose("rotary pairing", rotary, ROTARY)
    irregular = _irregular(model)
    if isinstance(pairs, Sequence) and not isinstance(pairs, str | bytes):
        return PairSearch(tuple(_explicit(model, pair, irregular) for pair in pairs), ())
    choose("pairs", pairs, ("auto",), also="a sequence of pairs")
    return _search(model, example_inputs, rotary, irregular)


def _search(model: nn.Module, example_inputs: Any, rotary: str, irregular: dict[str, str]) -> PairSearch:
    attention, covered, reasons = attention_pairs(model, rotary)
    attention = [without_irregular(pair, irregular) for pair in attention]
    modules = dict(model.named_modules())
    if example_inputs is None:
        graph = trace_symbolically(model, leaves=frozenset(covered))
        graph.extend(_named_mlps(graph, modules))
    else:
        graph = trace_call(model, example_inputs)
    loose = dict.fromkeys(graph.loose_parameters, "is used outside its own layer")
    irregular = {**irregular, **loose, **_called_twice(graph)}
    chains, chain_reasons = pairs_of_graph(graph, modules, irregular)
    known = {pair.name for pair in attention}
    pairs = attention + [pair for pair in {pair.name: pair for pair in chains}.values() if pair.name not in known]
    reasons = {**chain_reasons, **reasons}
    hint = "; pass example_inputs= to watch one call" if graph.untraced else ""
    return PairSearch(tuple(pairs), tuple(_skipped(modules, pairs, reasons, hint)))


def _skipped(
    modules: Mapping[str, nn.Module], pairs: list[LayerPair], reasons: Mapping[str, str], hint: str
) -> list[SkippedLayer]:
    used = {parameter.rpartition(".")[0] for pair in pairs for parameter in pair.parameters}
    skipped = []
    for name, module in modules.items():
        has_weights = next(module.parameters(recurse=False), None) is not None
        if name in reasons and describe_layer(name, module) is None and not has_weights:
            skipped.append(SkippedLayer(name, reasons[name]))  # a container that was recognised but left
        elif has_weights and name not in used:
            reason = why_not_a_layer(module) or reasons.get(name) or "no layer on its other side could be traced"
            skipped.append(SkippedLayer(name or type(module).__name__, reason + hint))
    return skipped


def _irregular(model: nn.Module) -> dict[str, str]:
    """Parameters that no law covers: tied (also by sharing memory), computed from others, or not real numbers."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(_memory(parameter), []).append(name)
    irregular = {
        name: f"is shared with {next(other for other in shared if other != name)}"
        for shared in names.values()
        if len(shared) > 1
        for name in shared
    }
    for prefix, module in model.named_modules():
        if parametrize.is_parametrized(module):
            for leaf in module.parametrizations:
                irregular[join(prefix, str(leaf))] = "is parametrised"
        for leaf in ("weight", "bias"):
            value = getattr(module, leaf, None)
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                irregular.setdefault(join(prefix, leaf), "is computed from other parameters, not stored as one")
            elif isinstance(value, Tensor) and not value.is_floating_point():
                irregular.setdefault(
                    join(prefix, leaf), f"holds {str(value.dtype).removeprefix('torch.')}, not real numbers"
                )
    return irregular


def _memory(parameter: nn.Parameter) -> int:
    """What two parameters have in common if writing one changes the other: where their values begin."""
    if isinstance(parameter, nn.UninitializedParameter):
        raise InvalidInput("the model has parameters without a shape yet (lazy layers): run it once on a batch first.")
    if parameter.is_meta:
        raise InvalidInput("the model has parameters without values (device 'meta'): load them first.")
    try:
        return parameter.data_ptr() or id(parameter)
    except (RuntimeError, NotImplementedError):  # tensors without memory of their own (wrapped by subclasses)
        return id(parameter)


def _called_twice(graph: Graph) -> dict[str, str]:
    """Weights of modules that are called more than once in one pass."""
    calls: dict[str, int] = {}
    for op in graph.ops:
        if op.module:
            calls[op.module] = calls.get(op.module, 0) + 1
    twice = {name for name, count in calls.items() if count > 1}
    return {f"{name}.{leaf}": "is used more than once in one pass" for name in twice for leaf in ("weight", "bias")}


def _named_mlps(graph: Graph, modules: Mapping[str, nn.Module]) -> Graph:
    """Two-layer blocks inside modules that could not be traced, by the usual names of their layers."""
    found = Graph()
    for name in graph.untraced:
        prefix = "" if name == "the model" else f"{name}."
        block = modules.get(prefix.rstrip("."))
        for first, second in _MLP_NAMES:
            activation = next((getattr(block, a) for a in _ACTIVATION_NAMES if hasattr(block, a)), None)
            if activation is None or prefix + first not in modules or prefix + second not in modules:
                continue
            label = getattr(activation, "__name__", type(activation).__name__)
            found.ops += _chain(prefix + first, label, prefix + second)
    graph.ops[:] = [op for op in graph.ops if op.module not in {o.module for o in found.ops if o.module}]
    return found


def _chain(first: str, between: str, second: str) -> list[Op]:
    ops = [Op("layer", first), Op(plain_name(between)), Op("layer", second)]
    ops[0].feed(ops[1])
    ops[1].feed(ops[2])
    return ops


def _explicit(model: nn.Module, pair: Any, irregular: dict[str, str]) -> LayerPair:
    """A pair that the user named."""
    if isinstance(pair, LayerPair):
        return pair
    if not (isinstance(pair, tuple | list) and len(pair) == 3 and all(isinstance(part, str) for part in pair)):
        raise InvalidInput(
            f"an explicit pair is (first layer, what lies between, second layer), such as ('0', 'relu', '2'); "
            f"got {pair!r}."
        )
    modules = dict(model.named_modules())
    first, between, second = (str(part) for part in pair)
    for name in (first, second):
        layer = resolve("layer", name, {known: module for known, module in modules.items() if known})
        if describe_layer(name, layer) is None:
            raise InvalidInput(f"{name!r} is a {type(layer).__name__}, not a layer with a weight matrix.")
    graph = Graph(_chain(first, "identity" if between == "linear" else between, second))
    _allow_flattening(graph, modules)
    found, reasons = pairs_of_graph(graph, modules, irregular)
    if not found:
        raise InvalidInput(f"{first!r} and {second!r} do not form a pair: {reasons.get(first, 'unknown')}.")
    return found[0]


def _allow_flattening(graph: Graph, modules: Mapping[str, nn.Module]) -> None:
    """Put a flattening between a convolution and a linear layer that were named as a pair."""
    first, between, second = graph.ops
    before, after = (describe_layer(op.module or "", modules[op.module or ""]) for op in (first, second))
    if before is not None and after is not None and before.is_conv and not after.is_conv:
        flatten = Op("flatten")
        between.users, second.inputs = [], []
        between.feed(flatten)
        flatten.feed(second)
        graph.ops.insert(2, flatten)
