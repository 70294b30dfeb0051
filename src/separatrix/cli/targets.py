"""What ``separatrix check`` is pointed at: files of weights, the user's own code, Hugging Face folders and names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.errors import InvalidInput, MissingData, MissingExtra

if TYPE_CHECKING:
    from torch import Tensor, nn

    from separatrix.diagnose import Diagnosis


def examined(
    target: str, *, arch: str | None, sample: Path | None, loss: str | None, budget: float, seed: int
) -> Diagnosis:
    """The diagnosis of whatever the words name."""
    from separatrix.diagnose import check, examine_weights
    from separatrix.diagnose.weight_files import read_weights

    if target.startswith("hf:") or Path(target).is_dir():
        model: Any = _hugging_face(target)
        batch, goal = _batch(sample) if sample is not None else (_made_up(model, seed), None)
    else:
        tensors = read_weights(Path(target))
        if arch is None:
            return examine_weights(tensors, seed=seed)
        model = _built(arch)
        _load(model, tensors, target)
        if sample is None:
            raise InvalidInput("--sample is needed to run a model: FILE.npy, .npz or .safetensors with one batch.")
        batch, goal = _batch(sample)
    if loss is not None and goal is None:
        raise InvalidInput("--loss needs an array named target beside the sample's own in its .npz or .safetensors.")
    return check(model, batch, loss=loss, target=goal if loss else None, budget_seconds=budget, seed=seed)


def _built(arch: str) -> nn.Module:
    """The model that the user's own function makes; importing it runs it, which naming it asks for."""
    from torch import nn

    module, mark, name = arch.partition(":")
    if not (mark and module and name):
        raise InvalidInput(f"--arch must be MODULE:FUNCTION; got {arch!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # the user's own code may raise anything while it is imported
        raise InvalidInput(f"--arch {arch!r} cannot be imported ({_reason(error)}).") from None
    finally:
        sys.path.pop(0)
    if not callable(function):
        raise InvalidInput(f"--arch {arch!r} must name a function or a model; it is a {type(function).__name__}.")
    try:
        model = function() if not isinstance(function, nn.Module) else function
    except Exception as error:
        raise InvalidInput(f"--arch {arch!r} raises {type(error).__name__} ({_reason(error)}).") from None
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"--arch {arch!r} must make a torch.nn.Module; it made a {type(model).__name__}.")
    return model


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _load(model: nn.Module, tensors: dict[str, Tensor], target: str) -> None:
    """Weights by name; if no name fits (ONNX files rename them), by shape and order."""
    own = model.state_dict()
    if not set(own) & set(tensors):
        tensors = _by_shape(own, tensors, target)
    try:
        model.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        raise InvalidInput(f"the weights of {target!r} do not fit the model of --arch: {_reason(error)}") from None


def _by_shape(own: dict[str, Tensor], tensors: dict[str, Tensor], target: str) -> dict[str, Tensor]:
    """Pair tensors whose shapes occur equally often, in order; transposed matrices count as their transpose.

    Square matrices do not tell: they are turned if the others are (exporters turn all that enter a plain product).
    """
    left = list(tensors.values())
    shapes = {tuple(value.shape) for value in own.values()}
    plain = [other for other in left if other.ndim == 2 and other.shape[0] != other.shape[1]]
    turned = bool(plain) and not any(tuple(other.shape) in shapes for other in plain)
    found: dict[str, Tensor] = {}
    for name, value in own.items():
        for place, other in enumerate(left):
            square = other.ndim == 2 and other.shape[0] == other.shape[1]
            upright = other.shape == value.shape and not (square and turned)
            fits = other if upright else other.T if other.ndim == 2 and other.T.shape == value.shape else None
            if fits is not None and fits.dtype.is_floating_point == value.dtype.is_floating_point:
                found[name] = fits
                del left[place]
                break
        else:
            if value.is_floating_point():
                raise InvalidInput(f"{target!r} has no tensor of shape {tuple(value.shape)} for {name}.")
            found[name] = value
    return found


def _batch(path: Path) -> tuple[Any, Any]:
    """The sample and, if the file has one, the target."""
    import numpy
    import torch

    from separatrix.diagnose.weight_files import read_weights

    if path.suffix == ".npy":
        if not path.is_file():
            raise MissingData(f"--sample: there is no file {str(path)!r}.")
        try:
            array = numpy.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise InvalidInput(f"--sample: {str(path)!r} is not a .npy file of plain numbers ({error}).") from None
        return _as_input(torch.from_numpy(array)), None
    tensors = {name: _as_input(value) for name, value in read_weights(path).items()}
    goal = tensors.pop("target", None)
    if not tensors:
        raise InvalidInput(f"--sample: {str(path)!r} holds no array besides target.")
    return (next(iter(tensors.values())) if len(tensors) == 1 else tensors), goal


def _as_input(value: Tensor) -> Tensor:
    import torch

    return value.float() if value.dtype == torch.float64 else value


def _hugging_face(target: str) -> nn.Module:
    """A model of the transformers library, whose class is the library's own; no code of a repository is run."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("Hugging Face models need transformers: install separatrix[hub].") from error
    name = target.removeprefix("hf:")
    local = not target.startswith("hf:")
    if local and not (Path(name) / "config.json").is_file():
        raise MissingData(f"{name!r} is no Hugging Face folder: it has no config.json.")
    options = {"local_files_only": local, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        kinds = [getattr(transformers, kind, None) for kind in config.architectures or ()]
        kind = next((kind for kind in kinds if kind is not None), transformers.AutoModel)
        return kind.from_pretrained(name, config=config, use_safetensors=True, local_files_only=local)
    except Exception as error:  # the library's errors have no common ancestor
        reason = " ".join(str(error).split())[:300]
        raise MissingData(f"{target!r} cannot be loaded as a Hugging Face model with safetensors: {reason}") from None


def _made_up(model: Any, seed: int) -> dict[str, Tensor]:
    """Random tokens or pixels in the form that the model's own configuration names; said to be made up."""
    import torch

    from separatrix.core.random import spawn

    from .printing import say

    config, draw = model.config, spawn(seed, "check", "sample")
    vocabulary = getattr(config, "vocab_size", None)
    if getattr(model, "main_input_name", "") == "pixel_values":
        size, channels = getattr(config, "image_size", 224), getattr(config, "num_channels", 3)
        say(f"no --sample: looking at 4 images of random pixels (seed {seed}).")
        return {"pixel_values": torch.randn(4, channels, size, size, generator=draw)}
    if not isinstance(vocabulary, int):
        raise InvalidInput("--sample is needed: the model's configuration does not say what it takes.")
    length = min(64, getattr(config, "max_position_embeddings", 64) or 64)
    say(f"no --sample: looking at 8 x {length} random tokens (seed {seed}); pass your own for a judgement on data.")
    return {"input_ids": torch.randint(0, vocabulary, (8, length), generator=draw)}
