"""A screening policy that is trained with the network: what to keep is decided by weights that get a gradient."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from .screening import AbstractScreening, Sight


@final
@suggest_options
class Learned(AbstractScreening, nn.Module):
    r"""Scores a state by a linear map of itself, of the attention it got in the buffer and of its time.

    .. math:: z_j = w\cdot h_j + w_\alpha\sum_t\alpha_{j,t} + w_\tau\log(1 + j) + w_0

    States with the highest :math:`z` are kept. A choice has no gradient, so what is kept is :math:`\sigma(z_j)h_j`: the
    loss then says how much each kept state was worth. It starts as the policy of the document: w = 0 and
    :math:`w_\alpha = 1`, so that the attention alone decides.

    A network with this policy keeps every activation, as with ``memory="store"``; it cannot carry its memory on.

    Args:
        hidden_size: h of the network.
        spread: standard deviation of the initial w.
        generator: of w; by default one with seed 0.
        dtype: of the weights.

    Source: kerg2022, section 7.5, which proposes to learn the screening end to end.

    Example:
        >>> from separatrix.nn import RelRNN
        >>> rnn = RelRNN(4, 8, n_buffer=2, n_relevant=3, screening=Learned(8))
        >>> rnn(torch.zeros(2, 9, 4))[0].sum().backward()
        >>> rnn.screening.by_state.grad.shape
        torch.Size([8])
    """

    name = "learned"
    needs_states = True
    gates = True

    def __init__(
        self,
        hidden_size: int,
        *,
        spread: float = 0.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        nn.Module.__init__(self)
        size = require_integer(hidden_size, "hidden_size", at_least=1)
        drawn = torch.empty(size, dtype=torch.float64).normal_(0, 1, generator=default_generator(generator))
        self.by_state = nn.Parameter((spread * drawn).to(dtype))
        self.by_attention = nn.Parameter(torch.ones((), dtype=dtype))
        self.by_time = nn.Parameter(torch.zeros((), dtype=dtype))
        self.bias = nn.Parameter(torch.zeros((), dtype=dtype))

    def begin(self, batch: int, like: Tensor) -> Any:
        """Attention of the states in the buffer, once its size is known."""
        return {}

    def observe(self, sight: Sight) -> None:
        """Add up attention and score the buffered states anew."""
        assert sight.hidden is not None
        if sight.hidden.shape[-1] != len(self.by_state):
            raise ShapeError(f"screening is for {len(self.by_state)} units; the network has {sight.hidden.shape[-1]}.")
        ring = slice(sight.n_buffer)
        if "sums" not in sight.own:
            sight.own["sums"] = torch.zeros_like(sight.scores[:, ring])
        sums = sight.own["sums"]
        sums[:, sight.newest] = 0
        sums.add_(sight.weights[:, ring])
        with torch.no_grad():
            sight.scores[:, ring] = self._score(sight.hidden[:, ring], sums, sight.index[:, ring])

    def gate(self, leaving: Tensor, own: Any, place: int, step: Tensor) -> Tensor:
        """sigma(z) of the state that leaves, with a gradient."""
        return torch.sigmoid(self._score(leaving, own["sums"][:, place].clone(), step)).unsqueeze(-1)

    def _score(self, states: Tensor, sums: Tensor, steps: Tensor) -> Tensor:
        time = torch.log1p(steps.clamp_min(0).to(sums.dtype))
        return states @ self.by_state + self.by_attention * sums + self.by_time * time + self.bias
