"""Whole models around one equilibrium layer: a classifier, and a language model."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator
from separatrix.dynamics.solve.methods.base import AbstractEquilibriumSolver

from .backward import Implicit
from .deq import DEQ


@suggest_options
class EquilibriumClassifier(nn.Module):
    """Input -> equilibrium of a cell -> dense layer to the classes.

    Cell and head may be ``SideBySide`` (the cell's inputs merged); then the first axis of the input is the members.

    Args:
        cell: f(z, x) on states shaped like the input.
        head: from the equilibrium to the logits.
        solver: of the forward pass, as in ``DEQ``.
        backward_solver: of the adjoint equation, as in ``Implicit``.

    Source: agarwala2022, section 4.1 (MNIST) and Fig. 5.
    """

    def __init__(
        self,
        cell: nn.Module,
        head: nn.Module,
        *,
        solver: AbstractEquilibriumSolver[Any] | str,
        backward_solver: AbstractEquilibriumSolver[Any] | str,
    ) -> None:
        super().__init__()
        self.deq = DEQ(cell, solver=solver, backward=Implicit(solver=backward_solver), on_fail="return")
        self.head = head

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch classes"]:
        """The logits."""
        z = self.deq(x.reshape(-1, x.shape[-1])).reshape(x.shape)
        out: Tensor = self.head(z)
        return out


@suggest_options
class EquilibriumLanguageModel(nn.Module):
    """Token and position embeddings -> equilibrium of a cell -> dense layer to the vocabulary (not tied).

    Args:
        cell: f(z, x) on states (batch, t, width).
        n_symbols: size of the vocabulary.
        width: dimension of a token.
        context: longest sequence.
        embedding_std: standard deviation of the initial embeddings, the size of what is injected into the layer.
        solver: of the forward pass, as in ``DEQ``.
        backward_solver: of the adjoint equation, as in ``Implicit``.
        generator: source of randomness of embeddings and output layer.

    Source: agarwala2022, section 4.2 and Table 1. The embeddings' size 0.02 is that of the code the document builds on.
    """

    def __init__(
        self,
        cell: nn.Module,
        *,
        n_symbols: int,
        width: int,
        context: int,
        embedding_std: float = 0.02,
        solver: AbstractEquilibriumSolver[Any] | str,
        backward_solver: AbstractEquilibriumSolver[Any] | str,
        generator: torch.Generator | None = None,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        require_integer(n_symbols, "n_symbols", at_least=2)
        require_positive(embedding_std, "embedding_std")
        self.context = require_integer(context, "context", at_least=1)
        self.tokens = skip_init(nn.Embedding, n_symbols, width)
        self.positions = skip_init(nn.Embedding, context, width)
        self.deq = DEQ(cell, solver=solver, backward=Implicit(solver=backward_solver), on_fail="return")
        self.head = skip_init(nn.Linear, width, n_symbols)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=embedding_std, generator=generator)
        nn.init.normal_(self.head.weight, std=width**-0.5, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t symbols"]:
        """The logits of the next symbol at every position."""
        out: Tensor = self.head(self.deq(self.embed(tokens)))
        return out

    def embed(self, tokens: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t d"]:
        """What is injected into the layer."""
        if tokens.shape[1] > self.context:
            raise InvalidInput(f"tokens must have at most context = {self.context} positions; got {tokens.shape[1]}.")
        places = torch.arange(tokens.shape[1], device=tokens.device)
        out: Tensor = self.tokens(tokens) + self.positions(places)
        return out
