"""The weights of one attention layer, head by head, in the variable that its flow uses.

A layer reads tokens y, attends and adds W_O (A y W_V' + ...) to the residual stream. With tokens of common length s on
the sphere, y = s x, it moves them like ``dynamics.AttentionFlow`` with couplings M_h = W_Q' W_K / sqrt(d_h) (or with
another factor, if the layer has one), values V_h = W_O W_V and inverse temperature s^2. Source: altafini2025, section 7
(several heads).
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, ShapeError, require_positive
from separatrix.dynamics import AttentionFlow


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Normaliser(Result):
    """A layer norm: what is done to a token before gain and bias, and the gain and bias themselves."""

    gain: Float[Tensor, " d"]
    bias: Float[Tensor, " d"] | None
    centred: bool
    """True for LayerNorm, False for a norm that only divides by the root of the mean square."""

    def standard(self, tokens: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The tokens before gain and bias: centred if the norm centres, of length sqrt(d)."""
        moved = tokens - tokens.mean(dim=-1, keepdim=True) if self.centred else tokens
        return math.sqrt(tokens.shape[-1]) * moved / torch.linalg.vector_norm(moved, dim=-1, keepdim=True)

    def __call__(self, tokens: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The norm of the tokens, without the small constant that guards against division by zero."""
        scaled = self.standard(tokens) * self.gain
        return scaled if self.bias is None else scaled + self.bias


@final
@dataclasses.dataclass(frozen=True, repr=False)
class AttentionLayer(Result):
    """One attention layer in float64; every projection has an axis of heads.

    Attributes:
        name: where it stands in the model.
        query, key, value: (h, d_h, d), rows are outputs.
        output: (h, d, d_h).
        query_bias, value_bias: (h, d_h); a bias of the keys cancels in the softmax and is dropped.
        output_bias: (d,).
        scale: factor of the logits; None is the usual 1 / sqrt(d_h).
        causal: whether a token sees only itself and those before it.
        variable: which tokens the flow moves, in words.
        reads_through: the norm that was folded into the projections, or None if the layer reads the stream itself.
        writes_through: the norm that follows the addition to the stream, if the model has one there and it is known.
        note: what the couplings leave out, such as rotary positions.
    """

    name: str
    query: Float[Tensor, "h e d"]
    key: Float[Tensor, "h e d"]
    value: Float[Tensor, "h e d"]
    output: Float[Tensor, "h d e"]
    query_bias: Float[Tensor, "h e"] | None = None
    value_bias: Float[Tensor, "h e"] | None = None
    output_bias: Float[Tensor, " d"] | None = None
    scale: float | None = None
    causal: bool = False
    variable: str = "token as the layer reads it"
    reads_through: Normaliser | None = None
    writes_through: Normaliser | None = None
    note: str = ""

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return int(self.query.shape[0])

    @property
    def dim(self) -> int:
        """Dimension of a token."""
        return int(self.query.shape[-1])

    @property
    def logit_scale(self) -> float:
        """What logits are multiplied by."""
        return 1 / math.sqrt(self.query.shape[1]) if self.scale is None else self.scale

    @property
    def couplings(self) -> Float[Tensor, "h d d"]:
        """M_h = W_Q' W_K times the factor of the logits, each of rank d_h at most."""
        return self.logit_scale * (self.query.mT @ self.key)

    @property
    def values(self) -> Float[Tensor, "h d d"]:
        """V_h = W_O W_V, each of rank d_h at most."""
        return self.output @ self.value

    @property
    def value_sum(self) -> Float[Tensor, "d d"]:
        """V_S, the sum of V_h over heads, whose eigenvectors are the consensus equilibria."""
        return self.values.sum(dim=0)

    @property
    def constant(self) -> Float[Tensor, " d"]:
        """What the biases of values and output add to every update."""
        total = self.query.new_zeros(self.dim) if self.output_bias is None else self.output_bias
        if self.value_bias is None:
            return total
        return total + torch.einsum("hde,he->d", self.output, self.value_bias)

    def flow(
        self,
        *,
        biases: bool = False,
        token_norm: int | float | None = None,
        causal: bool | None = None,
    ) -> AttentionFlow:
        """The layer as a flow of unit tokens.

        Args:
            biases: keep the biases of the projections exactly (an affine pull) instead of leaving them out.
            token_norm: length s of the tokens the layer reads; by default sqrt(d), what a layer norm makes.
            causal: mask the future; by default as the layer does.

        Returns:
            A flow whose ``pull`` times ``token_norm`` is the layer's own output at tokens of that length.
        """
        norm = math.sqrt(self.dim) if token_norm is None else float(token_norm)
        require_positive(norm, "token_norm")
        scale = self.logit_scale
        return AttentionFlow(
            query=self.query * scale,
            key=self.key,
            value=self.values,
            beta=norm**2,
            heads=True,
            mask="causal" if (self.causal if causal is None else causal) else None,
            query_bias=self.query_bias * (scale / norm) if biases and self.query_bias is not None else None,
            value_bias=self.constant / norm if biases else None,
        )

    def read(self, stream: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The tokens in the variable of the flow, from the residual stream that enters the layer."""
        if stream.shape[-1] != self.dim:
            raise ShapeError(f"hidden states of {self.name} must have {self.dim} entries; got {tuple(stream.shape)}.")
        return stream if self.reads_through is None else self.reads_through.standard(stream)

    def update(self, tokens: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The layer's attention output for tokens in the variable of the flow, of any length, biases included."""
        queries = torch.einsum("...nd,hed->...hne", tokens, self.query)
        queries = queries if self.query_bias is None else queries + self.query_bias.unsqueeze(-2)
        keys = torch.einsum("...nd,hed->...hne", tokens, self.key)
        logits = queries @ keys.mT * self.logit_scale
        if self.causal:
            n = tokens.shape[-2]
            logits = logits.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        mixed = torch.softmax(logits, dim=-1) @ torch.einsum("...nd,hed->...hne", tokens, self.value)
        return torch.einsum("...hne,hde->...nd", mixed, self.output) + self.constant

    def folded(self, norm: Normaliser, variable: str) -> AttentionLayer:
        """The same layer acting on tokens before the gain and bias of ``norm``: M -> G M G, V -> V G, exactly."""
        if self.reads_through is not None:
            raise InvalidInput(f"{self.name} has a norm folded already.")

        def shifted(matrix: Tensor, bias: Tensor | None) -> Tensor | None:
            if norm.bias is None:
                return bias
            added = matrix @ norm.bias
            return added if bias is None else bias + added

        return dataclasses.replace(
            self,
            query=self.query * norm.gain,
            key=self.key * norm.gain,
            value=self.value * norm.gain,
            query_bias=shifted(self.query, self.query_bias),
            value_bias=shifted(self.value, self.value_bias),
            variable=variable,
            reads_through=norm,
        )

    def redrawn(self, generator: torch.Generator) -> AttentionLayer:
        """A control: projections drawn anew, Gaussian with each matrix's own standard deviation, biases left out."""
        drawn = {
            name: torch.randn(matrix.shape, generator=generator, dtype=matrix.dtype) * matrix.std()
            for name in ("query", "key", "value", "output")
            for matrix in (getattr(self, name),)
        }
        return dataclasses.replace(
            self, **drawn, query_bias=None, value_bias=None, output_bias=None, name=f"{self.name} (redrawn)"
        )
