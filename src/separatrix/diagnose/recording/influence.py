"""Whether a parameter matters: does any output change when it does?"""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.core import stream_seed

from ..model_call import real_tensors
from .protection import moved
from .subject import Subject, as_left

_ALONE = 16
"""Parameters that are tried one by one."""


def without_influence(subject: Subject, names: list[str]) -> list[str]:
    """Those of some parameters that may take other values without any output changing by a bit.

    A gradient of None has two reasons: the value was cut from the graph, or no output depends on it. Only the first is
    a fault of the graph. A model whose output differs from call to call under one seed is taken to depend on all.

    Cost: three forwards, and one for each of up to 16 parameters if only some matter.
    """
    plain = _outputs(subject, [])
    if plain is None or not _same(plain, _outputs(subject, [])):
        return []
    if _same(plain, _outputs(subject, names)):
        return list(names)
    if len(names) > _ALONE:
        return []
    return [name for name in names if _same(plain, _outputs(subject, [name]))]


def _outputs(subject: Subject, changed: list[str]) -> list[Tensor] | None:
    generator = torch.Generator().manual_seed(stream_seed(subject.seed, "check", "influence"))
    parameters = subject.parameters
    other = {parameters[name]: _far(parameters[name], generator) for name in changed}
    try:
        with as_left(subject.model), torch.no_grad(), moved(other):
            return [tensor.detach().clone() for _, tensor in real_tensors(subject.forward()[0])]
    except (RuntimeError, ValueError, IndexError, ArithmeticError):
        return None


def _far(value: Tensor, generator: torch.Generator) -> Tensor:
    """Far enough that a choice (an argmax, a rounding) made from it changes too."""
    noise = torch.randn(value.shape, generator=generator).to(value)
    return value.detach() + noise * (1 + value.detach().abs().max())


def _same(a: list[Tensor], b: list[Tensor] | None) -> bool:
    return b is not None and len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
