"""The encoder that all relational networks share."""

from __future__ import annotations

import itertools
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from .starts import convolution, linear

WIDTH = 128
"""Features of an encoded object."""
CHANNELS, KERNEL, DENSE = 32, 4, 256
N_CONVOLUTIONS = 3


@final
@suggest_options
class GlyphEncoder(nn.Module):
    """Three convolutions and two linear layers, a ReLU after each: an image to 128 numbers that are not negative.

    Weights begin Kaiming-normal, biases at 0. At 32 x 32 pixels it has 198,624 parameters, at 12 x 12 (where only one
    pixel is left after the convolutions) 75,744.

    Args:
        image_size: pixels a side, at least 8.
        generator: source of the first weights; by default one with seed 0.

    Source: kerg2022, appendix C, Table 1.

    Example:
        >>> GlyphEncoder()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 128])
    """

    def __init__(self, image_size: int = 32, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        require_integer(image_size, "image_size", at_least=1)
        side = image_size
        for _ in range(N_CONVOLUTIONS):
            side = (side + 2 - KERNEL) // 2 + 1
        if side < 1:
            raise InvalidInput(
                f"image_size must be at least 8, so that three halvings leave a pixel; got {image_size}."
            )
        stream = default_generator(generator)
        self.image_size = image_size
        sizes = (3, *[CHANNELS] * N_CONVOLUTIONS)
        self.convolutions = nn.ModuleList(
            convolution(n_in, n_out, KERNEL, stream) for n_in, n_out in itertools.pairwise(sizes)
        )
        self.dense = linear(CHANNELS * side * side, DENSE, stream, "kaiming")
        self.out = linear(DENSE, WIDTH, stream, "kaiming")

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 128"]:
        """Encoded images."""
        if images.ndim != 4 or images.shape[1:] != (3, self.image_size, self.image_size):
            raise ShapeError(
                f"images must be (n, 3, {self.image_size}, {self.image_size}); got shape {tuple(images.shape)}. "
                "Give image_size when the network is made."
            )
        if images.dtype != self.out.weight.dtype:
            raise InvalidInput(
                f"images must be {self.out.weight.dtype} as the weights are, in [0, 1]; got {images.dtype}."
            )
        x = images
        for layer in self.convolutions:
            x = torch.relu(layer(x))
        return torch.relu(self.out(torch.relu(self.dense(x.flatten(1)))))
