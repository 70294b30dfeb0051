"""Tensors of a TorchScript archive, read as data: no code of the file is compiled, imported or run.

An archive is a zip file: numbers in ``data/``, the tree of modules as a pickle in ``data.pkl``, and code in ``code/``,
which is not looked at. The unpickler here knows a few names (tensors, parameters, storages, ordered dictionaries, lists
of TorchScript); every class of the archive's own is a bag of attributes, and any other name is refused.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from separatrix.core import InvalidInput

STORAGES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def is_torchscript(path: Path) -> bool:
    """Whether the file is a zip archive with a tree of modules and code beside it."""
    try:
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):  # a damaged directory; names that are no text
        return False
    return _tree(names) is not None and any("/code/" in name for name in names)


def read_torchscript(path: Path) -> dict[str, Tensor]:
    """The tensors by the names of the modules and attributes that hold them.

    Raises:
        InvalidInput: the archive is broken, or its pickle asks for more than tensors.

    Cost: the file is read once; quantised tensors and those with attributes of their own are refused.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            tree = _tree(archive.namelist())
            if tree is None:
                raise InvalidInput("it holds no data.pkl")
            top = _Reader(archive, tree).load()
    except Exception as error:  # whatever arbitrary bytes make of an unpickler, as one sentence
        raise InvalidInput(
            f"{str(path)!r} could not be read as a TorchScript archive without executing it ({error})."
        ) from None
    found: dict[str, Tensor] = {}
    _collect(top, "", found, set())
    return found


def _tree(names: list[str]) -> str | None:
    return next((name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")), None)


class _Bag:
    """An object of a class that only the archive knows: its attributes, and nothing that it could do."""

    def __init__(self, *_: Any) -> None:
        self.held: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.held = state if isinstance(state, dict) else {"state": state}


class _Reader(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, tree: str) -> None:
        super().__init__(io.BytesIO(archive.read(tree)))
        self.archive, self.folder = archive, tree.rsplit("/", 1)[0]
        self.storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "__torch__" or module.startswith("__torch__."):
            return _Bag
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        known: dict[tuple[str, str], Any] = {
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
            ("collections", "OrderedDict"): collections.OrderedDict,
        }
        if (module, name) in known:
            return known[module, name]
        if module == "torch.jit._pickle" and name.startswith(("build_", "restore_type_tag")):
            return lambda data, *_: data  # lists, and values with the name of their type
        raise InvalidInput(f"its pickle asks for {module}.{name}, which is refused")

    def persistent_load(self, key: Any) -> Tensor:
        kind, dtype, name, _, count = key
        if kind != "storage" or not isinstance(dtype, torch.dtype) or not isinstance(name, str):
            raise InvalidInput("its pickle names something else than a storage")
        if name not in self.storages:
            content = self.archive.read(f"{self.folder}/data/{name}")
            if len(content) < count * dtype.itemsize:
                raise InvalidInput(f"storage {name!r} is cut off")
            self.storages[name] = torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.empty(0)
        return self.storages[name]


def _tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    """As torch would rebuild it, within the bounds of its storage."""
    whole = all(isinstance(number, int) and number >= 0 for number in (offset, *size, *stride))
    if not whole or len(size) != len(stride):
        raise InvalidInput("a tensor has sizes that are no whole numbers")
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= len(storage):
        raise InvalidInput("a tensor reaches beyond its storage")
    return storage.as_strided(size, stride, offset).clone() if math.prod(size) else storage.new_empty(size)


def _collect(thing: Any, name: str, found: dict[str, Tensor], seen: set[int]) -> None:
    if isinstance(thing, Tensor):
        found[name] = thing
        return
    if id(thing) in seen:  # modules may be shared, and may point to themselves
        return
    seen.add(id(thing))
    if isinstance(thing, _Bag):
        thing = thing.held
    parts = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list | tuple) else ()
    for key, part in parts:
        _collect(part, f"{name}.{key}" if name else str(key), found, seen)
