"""Tensors by name from a file of weights or a state dict. Nothing in a file is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from separatrix.core import InvalidInput, MissingData

from .onnx_files import read_onnx
from .torchscript import is_torchscript, read_torchscript


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a ``.safetensors``, ``.npz``, weights-only, TorchScript or (with onnx installed) ``.onnx`` file.

    Raises:
        MissingData: there is no such file.
        InvalidInput: it is no plain collection of tensors.
    """
    if not path.is_file():
        raise MissingData(f"there is no file {str(path)!r}.")
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if path.suffix == ".npz":
        return _npz(path)
    if path.suffix == ".onnx":
        return read_onnx(path)
    if is_torchscript(path):
        return read_torchscript(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # what an unpickler makes of arbitrary bytes: IndexError, KeyError, UnicodeDecodeError and more
        raise InvalidInput(
            f"{str(path)!r} is not a plain collection of tensors, and loading anything else (a whole model) "
            "would execute code from the file. Save model.state_dict() with safetensors or torch.save."
        ) from None
    return {name: _dense(tensor, name, path) for name, tensor in tensors_of(content).items()}


def _dense(tensor: Tensor, name: str, path: Path) -> Tensor:
    """Numbers in memory that can be computed with: those of eight bits as float32, which holds each of them."""
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_nested or tensor.is_quantized:
        raise InvalidInput(f"{name!r} in {str(path)!r} must be a dense tensor with its numbers; it is none.")
    if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
        if "x2" in str(tensor.dtype):
            raise InvalidInput(f"{name!r} in {str(path)!r} holds two numbers a byte, which cannot be read.")
        return tensor.float()
    return tensor


def tensors_of(content: Any) -> dict[str, Tensor]:
    """The tensors of a state dict, or of a checkpoint that holds one under ``state_dict``."""
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping):
        raise InvalidInput(f"source must hold tensors by name; got {type(content).__name__}.")
    return {str(name): tensor for name, tensor in content.items() if isinstance(tensor, Tensor)}


def _safetensors(path: Path) -> dict[str, Tensor]:
    import safetensors
    from safetensors.torch import load_file

    try:
        return {name: _dense(tensor, name, path) for name, tensor in load_file(path).items()}
    except safetensors.SafetensorError as error:
        raise InvalidInput(f"{str(path)!r} is not a whole safetensors file ({error}).") from None


def _npz(path: Path) -> dict[str, Tensor]:
    try:
        with numpy.load(path, allow_pickle=False) as archive:
            given = {name: archive[name] for name in archive.files}
            arrays = {name: array for name, array in given.items() if isinstance(array, numpy.ndarray)}
    except Exception as error:  # a broken archive, an array of objects, or a single array
        raise InvalidInput(f"{str(path)!r} is not a .npz file of plain numbers ({error}).") from None
    return {
        name: torch.from_numpy(_native(array))
        for name, array in arrays.items()
        if array.dtype.kind in "iufc" and array.ndim
    }


def _native(array: Any) -> Any:
    """In this machine's order of bytes, and of a width that torch has."""
    widest = {"f": 8, "c": 16}.get(array.dtype.kind, array.dtype.itemsize)
    return array.astype(f"={array.dtype.kind}{min(array.dtype.itemsize, widest)}", copy=False)
