"""The gated orthogonal recurrent unit."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.attach import OrthogonalMatrix
from ..orthogonal.catalogue import find_orthogonal_map
from ..orthogonal.manifold import AbstractOrthogonalMap
from .core import AbstractRecurrent
from .steps.gated_step import GoruStep
from .steps.step import AbstractStep, Weights


@final
@suggest_options
class GORU(AbstractRecurrent):
    """A state carried by a gate, and an orthogonal map behind a reset gate (Jing et al. 2019).

    ``r = sigmoid(W_r h + U_r x + b_r)``, ``z = sigmoid(W_z h + U_z x + b_z)``, ``c = modReLU(r Q h + U_c x; b_c)``,
    ``h' = z h + (1 - z) c``. ``recurrent()`` is Q. Judging a gated network by that matrix alone says little of it.

    Args:
        input_size: features of a step.
        hidden_size: N.
        map: of Q, real; ``"fft"`` where N is a power of two, else ``"givens"``.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        map: str | AbstractOrthogonalMap | None = None,
        *,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        generator, n = default_generator(generator), self.hidden_size
        if map is None:
            map = "fft" if n > 1 and n & (n - 1) == 0 else "givens"
        chart = find_orthogonal_map(map, n)
        if chart.is_complex:
            raise InvalidInput(f"map must be real for this unit; {chart.name!r} is complex.")
        self.matrix = OrthogonalMatrix(chart, None, generator=generator, dtype=dtype)

        def uniform(*shape: int, limit: float = 0.01) -> Tensor:
            return torch.empty(*shape, dtype=torch.float64).uniform_(-limit, limit, generator=generator).to(dtype)

        self.gate_weight = nn.Parameter(uniform(2 * n, n))
        self.input_weight = nn.Parameter(uniform(3 * n, self.input_size))
        self.reset_bias = nn.Parameter(torch.full((n,), 2.0, dtype=dtype))
        self.carry_bias = nn.Parameter(uniform(n, limit=(3 / n) ** 0.5))
        self.bias = nn.Parameter(torch.full((n,), 0.01, dtype=dtype))

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return GoruStep()

    def recurrent(self) -> Tensor:
        """Q."""
        matrix: Tensor = self.matrix()
        return matrix

    def weights(self) -> Weights:
        """The three matrices below one another, and the bias of modReLU."""
        return torch.cat([self.gate_weight, self.recurrent()]), self.bias

    def drives(self, x: Tensor) -> Tensor:
        """The three parts side by side."""
        return x @ self.input_weight.mT + torch.cat([self.reset_bias, self.carry_bias, torch.zeros_like(self.bias)])
