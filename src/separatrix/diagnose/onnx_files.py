"""Tensors of an ONNX file: its initialisers, and the weights of its recurrent operators under torch's names.

The operators LSTM, GRU and RNN keep their gates in an order of their own, and their tensors have whatever name the
exporter gave them. They are put into torch's order and called ``weight_ih_l0`` and so on below the name of the node.
Nothing of the graph is run.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from separatrix.core import InvalidInput, MissingExtra

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where torch's gates (i f g o; r z n) stand among those of the operator (i o f c; z r h)."""
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
W, R, B, PEEPHOLES = 1, 2, 3, 7
"""Places among an operator's inputs."""


def read_onnx(path: Path) -> dict[str, Tensor]:
    """Initialisers by the names they have in the file, and those of recurrent operators by torch's too.

    Raises:
        MissingExtra: onnx is not installed.
        InvalidInput: the file is broken, or has a recurrent operator of a kind that torch does not have.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise MissingExtra("reading .onnx files needs onnx: pip install onnx.") from error
    try:
        graph = onnx.load(str(path), load_external_data=False).graph
        arrays = {part.name: onnx.numpy_helper.to_array(part) for part in graph.initializer}
    except Exception as error:  # protobuf's own errors have no common ancestor
        raise InvalidInput(f"{str(path)!r} is not a readable ONNX file ({error}).") from None
    found = {name: torch.from_numpy(numpy.array(a)) for name, a in arrays.items() if a.dtype.kind in "iuf"}
    for k, node in enumerate(graph.node):
        if node.op_type in GATES:
            found |= _of_operator(node, f"{node.name or node.op_type + str(k)}.", found, onnx.helper)
    return found


def _of_operator(node: Any, prefix: str, tensors: dict[str, Tensor], helper: Any) -> dict[str, Tensor]:
    """Torch's tensors of a recurrent operator; none if its weights are not in the file but computed."""
    inputs = [*node.input, *("",) * (PEEPHOLES + 1 - len(node.input))]
    weights, recurrent, bias = (tensors.get(inputs[place]) for place in (W, R, B))
    if weights is None or recurrent is None:
        return {}
    _require_usual(node, inputs, helper)
    named: dict[str, Tensor] = {}
    for direction in range(len(weights)):
        ending = "_l0_reverse" if direction else "_l0"
        named[f"{prefix}weight_ih{ending}"] = _reordered(weights[direction], node.op_type)
        named[f"{prefix}weight_hh{ending}"] = _reordered(recurrent[direction], node.op_type)
        if bias is not None:
            for kind, half in zip(("bias_ih", "bias_hh"), bias[direction].chunk(2), strict=True):
                named[f"{prefix}{kind}{ending}"] = _reordered(half, node.op_type)
    return named


def _reordered(tensor: Tensor, kind: str) -> Tensor:
    gates = tensor.chunk(len(GATES[kind]))
    return torch.cat([gates[place] for place in GATES[kind]])


def _require_usual(node: Any, inputs: list[str], helper: Any) -> None:
    options = {part.name: helper.get_attribute_value(part) for part in node.attribute}
    given = tuple(part.decode() for part in options.get("activations", ()))
    usual = USUAL[node.op_type]
    unusual = [
        "activations " + ", ".join(given) if given not in ((), usual, 2 * usual) else "",
        "peepholes" if inputs[PEEPHOLES] else "",
        "a clip" if options.get("clip") else "",
        "coupled gates" if options.get("input_forget") else "",
        "a reset before the product" if node.op_type == "GRU" and not options.get("linear_before_reset") else "",
        "the direction 'reverse'" if options.get("direction", b"") == b"reverse" else "",
    ]
    if any(unusual):
        raise InvalidInput(
            f"the operator {node.name or node.op_type!r} has {' and '.join(filter(None, unusual))}, which torch's "
            f"{node.op_type} does not have; pass a function step(x, state) instead."
        )
