"""A transformer layer as a cell: causal attention and a dense block whose matrices come from a named family."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator
from separatrix.matrices.ensembles.initialisers import gaussian_

from ..dropout import VariationalDropout
from .cells import DenseFamily, DenseLayers, empty_linear


@suggest_options
class TransformerCell(nn.Module):
    """h = z + x; h <- h + Attn(LN h); h <- h + W2 gelu(W1 LN h + b1) + b2; the new state is LN h.

    The layer of the source document's language models. Only W1 and W2 come from the family; the attention matrices are
    Gaussian. The injected input should be of the order of the state: LN makes the state of unit size, and embeddings of
    standard deviation 0.02 leave the iteration near the edge of stability whatever the family.

    Args:
        width: dimension of a token (700 in the document).
        n_heads: attention heads; must divide the width (10 heads of 70 is usual; the document does not say).
        hidden: inner width of the dense block; by default 4 times the width (2800), and the width for square families.
        ensemble: family of W1 and W2.
        weight_var: variance of an entry of W1 and W2 times its fan-in.
        attention_var: variance of an entry of the attention matrices times the width.
        dropout: probability of dropping, with one mask per solve and sample, after attention and dense block.
        generator: source of randomness of the initial matrices; a dropout mask has its own stream, seeded from here.
        dtype: of the parameters.

    Source: agarwala2022, section 4.2 and Table 1.

    Cost: that of a transformer layer; attention takes O(t^2 width) time.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        *,
        hidden: int | None = None,
        ensemble: DenseFamily = "haar",
        weight_var: float = 1.0,
        attention_var: float = 2.0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        self.attention = CausalAttention(width, n_heads, weight_var=attention_var, generator=generator, dtype=dtype)
        self.dense = DenseLayers(
            width, hidden=hidden, ensemble=ensemble, weight_var=weight_var, generator=generator, dtype=dtype
        )
        self.attention_norm = _layer_norm(width, dtype)
        self.dense_norm = _layer_norm(width, dtype)
        self.output_norm = _layer_norm(width, dtype)
        self.attention_dropout = VariationalDropout(dropout, generator=generator)
        self.dense_dropout = VariationalDropout(dropout, generator=generator)

    def forward(self, z: Float[Tensor, "*batch t d"], x: Float[Tensor, "*#batch t d"]) -> Float[Tensor, "*batch t d"]:
        """One application of the layer to the state z with the embeddings x."""
        h = z + x
        h = h + self.attention_dropout(self.attention(self.attention_norm(h)))
        h = h + self.dense_dropout(self.dense(self.dense_norm(h)))
        out: Tensor = self.output_norm(h)
        return out


@suggest_options
class CausalAttention(nn.Module):
    """Multi-head attention in which a token sees itself and the ones before it; logits over sqrt(head dimension)."""

    def __init__(
        self,
        width: int,
        n_heads: int,
        *,
        weight_var: float,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        width = require_integer(width, "width", at_least=1)
        self.n_heads = require_integer(n_heads, "n_heads", at_least=1)
        if width % n_heads:
            raise InvalidInput(f"n_heads must divide the width; got width {width} and n_heads {n_heads}.")
        self.query, self.key, self.value, self.output = (empty_linear(width, width, dtype=dtype) for _ in range(4))
        for layer in (self.query, self.key, self.value, self.output):
            gaussian_(layer, weight_var, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, tokens: Float[Tensor, "*batch t d"]) -> Float[Tensor, "*batch t d"]:
        """The mixed tokens."""
        query, key, value = (
            layer(tokens).unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)
            for layer in (self.query, self.key, self.value)
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.output(heads.transpose(-2, -3).flatten(-2))
        return out


def _layer_norm(width: int, dtype: torch.dtype) -> nn.Module:
    norm = skip_init(nn.LayerNorm, width, dtype=dtype)
    norm.reset_parameters()  # ones and zeros: nothing is drawn
    return norm
