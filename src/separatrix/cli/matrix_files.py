"""Matrices from files named on the command line: .npy, or one tensor of a .safetensors file. No code is executed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.core.errors import InvalidInput, MissingData
from separatrix.core.names import choose

if TYPE_CHECKING:
    from torch import Tensor


def load_array(name: str, argument: str) -> Tensor:
    """The float64 tensor in a file.

    Args:
        name: ``FILE.npy`` or ``FILE.safetensors:tensor_name`` (the tensor's name may be left out if there is one).
        argument: the option it was given to, for messages.
    """
    import torch

    path, tensor_name = _split(name)
    if not path.is_file():
        raise MissingData(f"{argument}: there is no file {str(path)!r}.")
    array = _numpy_file(path, argument) if path.suffix == ".npy" else _safetensors_file(path, tensor_name, argument)
    return array.to(torch.float64)


def _split(name: str) -> tuple[Path, str | None]:
    head, mark, tail = name.rpartition(".safetensors:")
    return (Path(head + ".safetensors"), tail) if mark else (Path(name), None)


def _numpy_file(path: Path, argument: str) -> Tensor:
    import numpy
    import torch

    try:
        array = numpy.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"{argument}: {str(path)!r} is not a .npy file of plain numbers ({error}).") from None
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"{argument}: {str(path)!r} must hold real numbers; its dtype is {array.dtype}.")
    return torch.from_numpy(array.astype(numpy.float64))


def _safetensors_file(path: Path, tensor_name: str | None, argument: str) -> Tensor:
    import safetensors

    if path.suffix != ".safetensors":
        raise InvalidInput(
            f"{argument}: a matrix comes from FILE.npy or FILE.safetensors:tensor_name; got {str(path)!r}."
        )
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = list(file.keys())
            if tensor_name is None and len(names) == 1:
                tensor_name = names[0]
            if tensor_name is None:
                raise InvalidInput(
                    f"{argument}: {str(path)!r} holds {len(names)} tensors; name one as FILE.safetensors:tensor_name."
                )
            return file.get_tensor(choose(f"tensor in {str(path)!r}", tensor_name, names))
    except safetensors.SafetensorError as error:
        raise InvalidInput(f"{argument}: {str(path)!r} is not a whole safetensors file ({error}).") from None
