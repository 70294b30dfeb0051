"""What lies between two layers: is it linear, positively homogeneous, or does it destroy every law?

Names are those of functions, methods and classes of torch in lower case without underscores, so that ``F.leaky_relu``,
``Tensor.leaky_relu_`` and ``nn.LeakyReLU`` are one entry.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, final


class Effect(enum.Enum):
    """What an operation does to the symmetry between the layers on its two sides."""

    LINEAR = "linear on units"
    """Acts on every unit in the same linear way (average pooling over space, multiplication by a number)."""

    HOMOGENEOUS = "homogeneous"
    """Unit by unit, and scaling the input by c > 0 scales the output by c to the power ``degree``."""

    BREAKS = "breaks"
    """Unit by unit, but not homogeneous: no conserved quantity of the pair is left."""

    FLATTENS = "flattens"
    """Puts the positions of each channel side by side."""

    NORMALISES = "normalises"
    """Removes the scale of the layer before it."""

    UNKNOWN = "unknown"
    """Mixes units or is not known; the pair cannot be judged."""


@final
@dataclasses.dataclass(frozen=True)
class Passage:
    """The effect of one operation, and its degree of homogeneity."""

    effect: Effect
    degree: float = 1.0


_NAMES: dict[Effect, str] = {
    Effect.LINEAR: (
        "identity avgpool1d avgpool2d avgpool3d adaptiveavgpool1d adaptiveavgpool2d adaptiveavgpool3d "
        "contiguous clone to float double neg"
    ),
    Effect.HOMOGENEOUS: (
        "relu leakyrelu prelu rrelu abs maxpool1d maxpool2d maxpool3d adaptivemaxpool1d adaptivemaxpool2d "
        "adaptivemaxpool3d dropout dropout1d dropout2d dropout3d featuredropout"
    ),
    Effect.BREAKS: (
        "tanh gelu silu sigmoid elu selu celu softplus mish hardswish hardsigmoid hardtanh relu6 softsign "
        "logsigmoid tanhshrink softshrink hardshrink threshold alphadropout exp sin cos gelunew newgelu "
        "newgeluactivation "
        "geluactivation fastgeluactivation quickgeluactivation pytorchgelutanh siluactivation logsoftmax softmax"
    ),
    Effect.FLATTENS: "flatten view reshape",
    Effect.NORMALISES: (
        "batchnorm batchnorm1d batchnorm2d batchnorm3d layernorm rmsnorm instancenorm1d instancenorm2d instancenorm3d"
    ),
}
_EFFECTS = {name: effect for effect, names in _NAMES.items() for name in names.split()}
_SQUARES = ("square", "relusquaredactivation", "squaredrelu")


def plain_name(name: str) -> str:
    """A name in lower case without underscores and dots."""
    return name.lower().replace("_", "").replace(".", "")


def passage(name: str, constants: tuple[Any, ...] = ()) -> Passage:
    """The effect of an operation, by its name and the numbers it was called with."""
    name = plain_name(name)
    numbers = [value for value in constants if isinstance(value, int | float) and not isinstance(value, bool)]
    if name in _SQUARES:
        return Passage(Effect.HOMOGENEOUS, 2.0)
    if name == "pow":
        natural = len(numbers) == 1 and numbers[0] > 0
        return Passage(Effect.HOMOGENEOUS, float(numbers[0])) if natural else Passage(Effect.BREAKS)
    if name in ("mul", "div", "truediv") and len(numbers) == 1:
        return Passage(Effect.LINEAR)
    if name in ("add", "sub") and len(numbers) == 1:
        return Passage(Effect.BREAKS)
    return Passage(_EFFECTS.get(name, Effect.UNKNOWN))
