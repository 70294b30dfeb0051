"""Recurrent operators of ONNX files are torch's networks with their gates in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import recurrent
from separatrix.diagnose.weight_files import read_weights

onnx = pytest.importorskip("onnx", reason="needs onnx")
ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where the operator's gates stand among torch's, by ONNX's specification."""


def write(path: Path, module: nn.Module, kind: str, **options: Any) -> Path:
    """As an exporter does: one operator, tensors under names of no meaning."""
    state = module.state_dict()
    endings = ["_l0", "_l0_reverse"] if "weight_ih_l0_reverse" in state else ["_l0"]

    def turned(name: str) -> torch.Tensor:
        gates = state[name].chunk(len(ORDERS[kind]))
        return torch.cat([gates[place] for place in ORDERS[kind]])

    parts = {
        "7": torch.stack([turned(f"weight_ih{end}") for end in endings]),
        "8": torch.stack([turned(f"weight_hh{end}") for end in endings]),
        "9": torch.stack([torch.cat([turned(f"bias_ih{end}"), turned(f"bias_hh{end}")]) for end in endings]),
    }
    node = onnx.helper.make_node(kind, ["x", *parts], ["y"], name="net", hidden_size=4, **options)
    shown = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "y")]
    tensors = [onnx.numpy_helper.from_array(value.numpy(), name) for name, value in parts.items()]
    graph = onnx.helper.make_graph([node], "g", shown[:1], shown[1:], tensors)
    onnx.save(onnx.helper.make_model(graph), str(path))
    return path


@pytest.mark.parametrize(
    ("kind", "options"),
    [("LSTM", {}), ("LSTM", {"direction": "bidirectional"}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})],
)
def test_an_operator_gives_the_tensors_of_the_module_that_was_exported(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    module = getattr(nn, kind)(3, 4, bidirectional=bool(options.get("direction")))
    path = write(tmp_path / "model.onnx", module, kind, **options)
    found = read_weights(path)
    assert all(torch.equal(found[f"net.{name}"], value) for name, value in module.state_dict().items())
    assert {layer.kind.split()[-1] for layer in recurrent(path).layers} == {kind}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("GRU", {}, "reset before"),
        ("RNN", {"activations": ["Affine"]}, "Affine"),
        ("LSTM", {"clip": 1.0}, "clip"),
        ("LSTM", {"direction": "reverse"}, "reverse"),
    ],
)
def test_what_torch_does_not_have_is_refused(tmp_path: Path, kind: str, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "model.onnx", getattr(nn, kind)(3, 4), kind, **options)
    with pytest.raises(InvalidInput, match=message):
        recurrent(path)


def test_a_broken_file_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no graph at all" * 9)
    with pytest.raises(InvalidInput, match="not a readable ONNX file"):
        recurrent(path)
