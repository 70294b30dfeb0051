"""Self-attention as a flow on the sphere.

n tokens x_i of unit length move by

    dx_i/dt = (I - x_i x_i') (V m_i),   m_i = sum_j A_ij x_j,   A = softmax over j of beta x_i' M x_j,

with the coupling M = Q'K. Several heads are added up; masks, position biases, biases of the projections and other
normalisations of A are options. Source: altafini2025, sections 2, 5 and 7.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_tensor, require_square
from separatrix.core.names import suggest_options

from .attention_matrices import AttentionMatrices, check_beta, check_sizes, check_weights
from .base import AbstractSphereFlow, described
from .normalisation import AbstractNormalisation, Softmax, find_normalisation

CANCELLED = 0.1
"""Share of the sum of all pulls below which their cancelling does not lower the unit of speed."""


@final
@suggest_options
class AttentionFlow(AbstractSphereFlow):
    """The self-attention flow; weights may have leading axes that broadcast against those of the states.

    Args:
        query, key: projections (..., [h,] m, d); only query' key matters.
        value: value matrix (..., [h,] d, d); with heads, the product of output and value projections.
        beta: inverse temperature, a number or one per weight instance.
        heads: whether the axis before the matrices counts heads, whose pulls are added.
        mask: True where token i may attend to token j, (..., n, n), or a name (``"causal"``; ``MASKS``).
        normalisation: ``"softmax"``, ``"uniform"`` (the small-beta limit), ``"sinkhorn"`` (doubly stochastic), or any
            ``AbstractNormalisation`` object.
        bias: position bias (..., n, n) added to the logits.
        query_bias: bias (..., [h,] m) of the query projection; a bias of the keys cancels in the softmax.
        value_bias: constant vector (..., d) added to every pull V m_i.
        sizes: cluster sizes (..., n): token i stands for ``sizes_i`` tokens at one place.

    For I weight instances and S starts each pass weights (I, 1, d, d) and states (I, S, n, d).

    Cost of a velocity: 2 n^2 d + 2 n d^2 multiply-adds and n^2 exponentials per head and element.

    Example:
        >>> import torch
        >>> flow = AttentionFlow.from_coupling(torch.eye(3), torch.diag(torch.tensor([2.0, 1.0, -1.0])))
        >>> x = flow.project(torch.ones(4, 3))
        >>> tuple(flow.velocity(x).shape)
        (4, 3)
    """

    weights: AttentionMatrices
    normalisation: AbstractNormalisation

    def __init__(
        self,
        *,
        query: object,
        key: object,
        value: object,
        beta: object = 1.0,
        heads: bool = False,
        mask: object | None = None,
        normalisation: str | AbstractNormalisation = "softmax",
        bias: object | None = None,
        query_bias: object | None = None,
        value_bias: object | None = None,
        sizes: object | None = None,
    ) -> None:
        weights = check_weights(
            query=query,
            key=key,
            value=value,
            beta=beta,
            heads=heads,
            mask=mask,
            bias=bias,
            query_bias=query_bias,
            value_bias=value_bias,
            sizes=sizes,
        )
        self._hold(weights, find_normalisation(normalisation))

    @classmethod
    def from_coupling(
        cls,
        coupling: object,
        value: object,
        beta: object = 1.0,
        *,
        heads: bool = False,
        mask: object | None = None,
        normalisation: str | AbstractNormalisation = "softmax",
        bias: object | None = None,
        value_bias: object | None = None,
        sizes: object | None = None,
    ) -> AttentionFlow:
        """The flow of a coupling matrix M = Q'K (..., [h,] d, d), the only way in which query and key enter."""
        matrix = as_tensor(coupling, "coupling")
        require_square(matrix, "coupling")
        eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return cls(
            query=eye,
            key=matrix,
            value=value,
            beta=beta,
            heads=heads,
            mask=mask,
            normalisation=normalisation,
            bias=bias,
            value_bias=value_bias,
            sizes=sizes,
        )

    @classmethod
    def _of(cls, weights: AttentionMatrices, normalisation: AbstractNormalisation) -> AttentionFlow:
        flow = object.__new__(cls)
        flow._hold(weights, normalisation)
        return flow

    def _hold(self, weights: AttentionMatrices, normalisation: AbstractNormalisation) -> None:
        """Keep the weights and what every velocity needs of them; one head drops its axis."""
        self.weights, self.normalisation = weights, normalisation
        self._single = weights.value.shape[-3] == 1
        scaled, value_t, pull = weights.scaled_coupling, weights.value.mT, weights.scaled_key_pull
        self._scaled = scaled.squeeze(-3) if self._single else scaled
        self._value_t = value_t.squeeze(-3) if self._single else value_t
        self._key_pull = pull if pull is None or not self._single else pull.squeeze(-2)
        self._log_sizes = None if weights.sizes is None else weights.sizes.log()
        self._n_tokens = weights.n_tokens
        self._rate: Tensor | None = None
        self._plain = isinstance(normalisation, Softmax) and not (
            weights.is_masked or weights.bias is not None or pull is not None
        )

    def __repr__(self) -> str:
        weights, beta = self.weights, self.weights.beta
        one = beta.numel() == 1
        facts = [
            f"d = {self.dim}",
            f"{self.n_heads} heads" if self.n_heads > 1 else "1 head",
            f"beta = {float(beta):.4g}" if one else f"beta from {float(beta.min()):.4g} to {float(beta.max()):.4g}",
            type(self.normalisation).__name__.lower(),
            *([weights.token_mask.name if weights.token_mask else "masked"] if weights.is_masked else []),
            *(["position bias"] if weights.bias is not None else []),
            *(["query bias"] if weights.key_pull is not None else []),
            *(["value bias"] if weights.value_bias is not None else []),
            *([f"{weights.sizes.shape[-1]} clusters"] if weights.sizes is not None else []),
            str(self.dtype).removeprefix("torch."),
        ]
        return described(self, facts)

    # What the rest of the room asks for.

    @property
    def dim(self) -> int:
        """Dimension of a token."""
        return int(self._value_t.shape[-1])

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return self.weights.value.dtype

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return int(self.weights.value.shape[-3])

    @property
    def is_plain(self) -> bool:
        """Row softmax of the logits alone: no mask, no bias of any kind."""
        return self._plain and self.weights.value_bias is None

    @property
    def coupling(self) -> Float[Tensor, "*axes d d"]:
        """M = Q'K, with a head axis if there are several heads."""
        return self.weights.coupling.squeeze(-3) if self._single else self.weights.coupling

    @property
    def value(self) -> Float[Tensor, "*axes d d"]:
        """V, with a head axis if there are several heads."""
        return self.weights.value.squeeze(-3) if self._single else self.weights.value

    @property
    def value_sum(self) -> Float[Tensor, "*instances d d"]:
        """Sum of the value matrices over heads; its eigenvectors are the consensus equilibria."""
        return self.weights.value.sum(dim=-3)

    @property
    def rate(self) -> Float[Tensor, "*instances"]:
        """Spectral norm of ``value_sum``, or a tenth of what could be without cancelling: sum_h |V_h| + |bias|.

        Heads whose values cancel at consensus pull tokens elsewhere. Computed once, unless it is to be differentiated.
        """
        if self._rate is None or self._rate.requires_grad:
            self._rate = self._find_rate()
        return self._rate

    def _find_rate(self) -> Tensor:
        most = torch.linalg.matrix_norm(self.weights.value, ord=2).sum(dim=-1)
        if self.weights.value_bias is not None:
            most = most + torch.linalg.vector_norm(self.weights.value_bias, dim=-1)
        return torch.maximum(torch.linalg.matrix_norm(self.value_sum, ord=2), CANCELLED * most)

    @property
    def instances(self) -> tuple[int, ...]:
        """Leading axes of the weights, which broadcast against those of the states."""
        return self.weights.instances

    @property
    def sizes(self) -> Float[Tensor, "*axes n"] | None:
        """How many tokens each row stands for; None if every row is one token."""
        return self.weights.sizes

    @property
    def reducible(self) -> bool:
        """False under a mask or a position bias, which tell tokens at one place apart."""
        return not (self.weights.is_masked or self.weights.bias is not None)

    def with_sizes(self, sizes: Float[Tensor, "*batch m"] | None) -> AttentionFlow:
        """The exact restriction of the flow to states of m clusters: logits gain the logarithm of the sizes."""
        if sizes is not None and not self.reducible:
            raise InvalidInput("sizes need a flow without mask and bias: these tell tokens at one place apart.")
        checked = None if sizes is None else check_sizes(sizes.to(self.dtype))
        return self._of(dataclasses.replace(self.weights, sizes=checked), self.normalisation)

    def with_beta(self, beta: object) -> AttentionFlow:
        """The same flow at another inverse temperature."""
        return self._of(dataclasses.replace(self.weights, beta=check_beta(beta, self.value)), self.normalisation)

    def to(self, dtype: torch.dtype) -> AttentionFlow:
        """The same flow computing in another precision."""
        return self if dtype == self.dtype else self._of(self.weights.to(dtype), self.normalisation)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> AttentionFlow:
        """The flow of some elements of a flattened batch; shared weights stay shared."""
        return self._of(self.weights.select(batch_shape, index), self.normalisation)

    # The field and its derivative. Inside, x carries a head axis if there are several heads.

    def attention(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch2 n n"]:
        """Attention weights A(x); with several heads, (..., h, n, n)."""
        self.check_shape(x)
        return self._attention(self._headed(x))

    def pull(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch2 n d"]:
        """V m_i for every token, summed over heads."""
        self.check_shape(x)
        tokens = self._headed(x)
        return self._pull(tokens, self._attention(tokens))

    def pull_and_jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"]
    ) -> tuple[Float[Tensor, "*batch3 n d"], Float[Tensor, "*batch4 n d"]]:
        """V m_i and its derivative in direction u, in O(n^2 d); valid for any V."""
        self.check_shape(x)
        tokens, moves = self._headed(x), self._headed(u)
        A = self._attention(tokens)
        change = A @ moves
        if self.normalisation.follows_logits:
            dlogits = _times(moves, self._scaled) @ tokens.mT + self._queries(tokens) @ moves.mT
            change = change + self.normalisation.tangent(A, dlogits, self._sizes_for_heads()) @ tokens
        return self._pull(tokens, A), self._mixed(_times(change, self._value_t))

    def ambient_jacobian(
        self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch2 n d n d"]:
        r"""Derivative of every coordinate of the velocity in every coordinate of the state.

        .. math:: \partial f_i/\partial x_h = P_i V [A_{ih} (I + \beta (x_h - m_i) x_i^T M) + \delta_{ih} \beta C_i M^T]
                  - \delta_{ih} (\gamma_i I + x_i (V m_i)^T)

        with the attention covariance C_i = sum_j A_ij x_j x_j' - m_i m_i'. Doubly stochastic attention has no such
        form and takes n d Jacobian-vector products.

        Source: altafini2025, Lemma 8, with the index of its off-diagonal block and the transpose of V corrected.
        """
        self.check_shape(x)
        if not isinstance(self.normalisation, Softmax) and self.normalisation.follows_logits:
            return super().ambient_jacobian(x, t)
        tokens = self._headed(x)
        A = self._attention(tokens)
        mean = A @ tokens
        diagonal = torch.arange(x.shape[-2], device=x.device)
        blocks = torch.einsum("...ih,...ab->...iahb", A, self._value_t.mT)
        if self.normalisation.follows_logits:
            ahead = (tokens.unsqueeze(-3) - mean.unsqueeze(-2)) @ self._value_t.unsqueeze(-3)  # V (x_h - m_i)
            blocks = blocks + torch.einsum("...ih,...iha,...ib->...iahb", A, ahead, self._queries(tokens))
            seen = tokens @ self._scaled.mT  # beta M x_j
            own = torch.einsum("...ij,...ija,...jb->...iab", A, ahead, seen)
            blocks[..., diagonal, :, diagonal, :] += own.movedim(-3, 0)
        blocks = blocks if self._single else blocks.sum(dim=-5)
        pull = self._pull(tokens, A)
        blocks = blocks - torch.einsum("...ia,...ic,...ichb->...iahb", x, x, blocks)
        eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        radial = (x * pull).sum(dim=-1)[..., None, None] * eye + x.unsqueeze(-1) * pull.unsqueeze(-2)
        blocks[..., diagonal, :, diagonal, :] -= radial.movedim(-3, 0)
        return blocks

    def _headed(self, x: Tensor) -> Tensor:
        return x if self._single else x.unsqueeze(-3)

    def _mixed(self, pulls: Tensor) -> Tensor:
        return pulls if self._single else pulls.sum(dim=-3)

    def _queries(self, tokens: Tensor) -> Tensor:
        queries = _times(tokens, self._scaled)
        return queries if self._key_pull is None else queries + self._key_pull.unsqueeze(-2)

    def _pull(self, tokens: Tensor, attention: Tensor) -> Tensor:
        pull = self._mixed(_times(attention @ tokens, self._value_t))
        return pull if self.weights.value_bias is None else pull + self.weights.value_bias.unsqueeze(-2)

    def _sizes_for_heads(self) -> Tensor | None:
        return self._log_sizes if self._single or self._log_sizes is None else self._log_sizes.unsqueeze(-2)

    def _attention(self, tokens: Tensor) -> Tensor:
        logits = self._queries(tokens) @ tokens.mT
        if self._plain and self._log_sizes is None and not logits.requires_grad:
            return torch.softmax(logits, dim=-1, out=logits)  # in place: the n x n matrix is the largest thing here
        if not self._plain:
            logits = self._visible(logits)
        return self.normalisation.weights(logits, self._sizes_for_heads())

    def _visible(self, logits: Tensor) -> Tensor:
        weights, n = self.weights, logits.shape[-1]
        if weights.bias is not None:
            logits = logits + (weights.bias if self._single else weights.bias.unsqueeze(-3))
        if weights.token_mask is not None:
            logits = logits.masked_fill(~weights.token_mask.matrix(n).to(logits.device), -torch.inf)
        if weights.mask is not None:
            mask = weights.mask if self._single else weights.mask.unsqueeze(-3)
            logits = logits.masked_fill(~mask, -torch.inf)
        return logits

    def check_shape(self, x: Tensor) -> None:
        """Refuse tokens of another dimension, or another number of them than mask, bias or sizes are for."""
        if x.ndim < 2 or x.shape[-1] != self._value_t.shape[-1]:
            raise ShapeError(f"tokens must have shape (..., n, {self.dim}); got {tuple(x.shape)}.")
        if self._n_tokens is not None and x.shape[-2] != self._n_tokens:
            raise ShapeError(
                f"mask, bias and sizes of this flow are for {self._n_tokens} tokens; got tokens {tuple(x.shape)}."
            )


def _times(states: Tensor, weights: Tensor) -> Tensor:
    """states (..., h or 1, n, d) times weights (h, d, e), without copying the weights for every state of a batch."""
    if weights.ndim != 3 or states.ndim < 4:
        return states @ weights
    n_heads, dim, width = weights.shape
    by_head = states.expand(*states.shape[:-3], n_heads, *states.shape[-2:]).movedim(-3, 0)
    product = by_head.reshape(n_heads, -1, dim) @ weights
    return product.reshape(*by_head.shape[:-1], width).movedim(0, -3)
