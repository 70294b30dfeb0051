"""The weights of a self-attention flow: checked once, then selected, cast and replaced as one value."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, TypeVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_tensor, require_flags, require_square
from separatrix.core.names import suggest_options

from .base import select_leading
from .masks import TokenMask, check_mask

TRAILING = {"coupling": 3, "value": 3, "beta": 0, "mask": 2, "bias": 2, "key_pull": 2, "value_bias": 1, "sizes": 1}
"""How many axes of each field belong to one weight instance; the axes before them broadcast against the states."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AttentionMatrices:
    """Everything but the normalisation. Matrices always carry a head axis; other fields may be absent.

    ``token_mask`` is a mask for any number of tokens (``MASKS``), ``mask`` one for a given number.
    """

    coupling: Float[Tensor, "*coupling_axes h d d"]
    value: Float[Tensor, "*value_axes h d d"]
    beta: Float[Tensor, "*beta_axes"]
    mask: Bool[Tensor, "*mask_axes n n"] | None = None
    token_mask: TokenMask | None = None
    bias: Float[Tensor, "*bias_axes n n"] | None = None
    key_pull: Float[Tensor, "*key_pull_axes h d"] | None = None
    value_bias: Float[Tensor, "*value_bias_axes d"] | None = None
    sizes: Float[Tensor, "*sizes_axes n"] | None = None

    @functools.cached_property
    def instances(self) -> tuple[int, ...]:
        """Leading axes of the weights."""
        shapes = {tuple(tensor.shape[: tensor.ndim - TRAILING[name]]) for name, tensor in self.tensors().items()} - {()}
        if len(shapes) < 2:  # asking torch imports a system of computer algebra, a quarter of a second
            return next(iter(shapes), ())
        return tuple(torch.broadcast_shapes(*shapes))

    @property
    def n_tokens(self) -> int | None:
        """Number of tokens, where mask, bias or sizes fix it."""
        found = {tensor.shape[-1] for tensor in (self.mask, self.bias, self.sizes) if tensor is not None}
        if len(found) > 1:
            raise ShapeError(f"mask, bias and sizes must be for one number of tokens; got {sorted(found)}.")
        return found.pop() if found else None

    @property
    def is_masked(self) -> bool:
        """Whether some token may not attend to some other."""
        return self.token_mask is not None or self.mask is not None

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are present."""
        fields = {name: getattr(self, name) for name in TRAILING}
        return {name: tensor for name, tensor in fields.items() if tensor is not None}

    def to(self, dtype: torch.dtype) -> AttentionMatrices:
        """The same weights in another precision."""
        floats: dict[str, Any] = {name: tensor.to(dtype) for name, tensor in self.tensors().items() if name != "mask"}
        return dataclasses.replace(self, **floats)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> AttentionMatrices:
        """The weights of some elements of a flattened batch; a field that all elements share stays shared."""
        chosen: dict[str, Any] = {
            name: select_leading(tensor, batch_shape, index, TRAILING[name])
            for name, tensor in self.tensors().items()
            if math.prod(tensor.shape[: tensor.ndim - TRAILING[name]]) > 1
        }
        shared: dict[str, Any] = {
            name: tensor.reshape(tensor.shape[tensor.ndim - TRAILING[name] :])
            for name, tensor in self.tensors().items()
            if name not in chosen
        }
        return dataclasses.replace(self, **shared, **chosen)

    @property
    def scaled_coupling(self) -> Float[Tensor, "*instances h d d"]:
        """beta M."""
        return self.beta[..., None, None, None] * self.coupling

    @property
    def scaled_key_pull(self) -> Float[Tensor, "*instances h d"] | None:
        """beta K'b, where b is the bias of the query projection: a logit linear in the key token alone."""
        return None if self.key_pull is None else self.beta[..., None, None] * self.key_pull


def check_weights(
    *,
    query: object,
    key: object,
    value: object,
    beta: object,
    heads: bool,
    mask: object | None,
    bias: object | None,
    query_bias: object | None,
    value_bias: object | None,
    sizes: object | None,
) -> AttentionMatrices:
    """Weights from what a user passes; anything that cannot be a self-attention flow is refused by name."""
    require_flags(heads=heads)
    value = as_tensor(value, "value")
    require_square(value, "value")
    if value.shape[-1] < 2:
        raise ShapeError(f"value must act on tokens of dimension d >= 2; got shape {tuple(value.shape)}.")
    dtype = value.dtype
    query, key = as_tensor(query, "query", dtype=dtype), as_tensor(key, "key", dtype=dtype)
    _check_projections(query, key, value, heads=heads)
    coupling = query.mT @ key
    key_pull = None
    if query_bias is not None:
        key_pull = (as_tensor(query_bias, "query_bias", dtype=dtype).unsqueeze(-2) @ key).squeeze(-2)
        key_pull = key_pull if heads else key_pull.unsqueeze(-2)
    matrix, named = check_mask(mask)
    return AttentionMatrices(
        coupling=coupling if heads else coupling.unsqueeze(-3),
        value=_own(value if heads else value.unsqueeze(-3)),
        beta=_own(check_beta(beta, value)),
        mask=_own(matrix),
        token_mask=named,
        bias=None if bias is None else _own(_check_bias(bias, dtype)),
        key_pull=key_pull,
        value_bias=None if value_bias is None else _own(as_tensor(value_bias, "value_bias", dtype=dtype)),
        sizes=None if sizes is None else _own(check_sizes(as_tensor(sizes, "sizes", dtype=dtype))),
    )


_Given = TypeVar("_Given", Tensor, Tensor | None)


def _own(tensor: _Given) -> _Given:
    """A copy: flows are immutable, and what they know of their weights would be wrong after a change in place."""
    return None if tensor is None else tensor.clone()


def check_beta(beta: object, like: Tensor) -> Float[Tensor, "*instances"]:
    """The inverse temperature as a tensor, not negative."""
    tensor = as_tensor(beta, "beta", dtype=like.dtype).to(like.device)
    if bool((tensor < 0).any()):
        raise InvalidInput(f"beta must not be negative; got {float(tensor.min()):g}.")
    return tensor


def check_sizes(sizes: Float[Tensor, "*batch m"]) -> Float[Tensor, "*batch m"]:
    """Cluster sizes, refused if one is negative or all of an element vanish."""
    if bool((sizes < 0).any()):
        index = tuple(int(i) for i in (sizes < 0).nonzero()[0])
        raise InvalidInput(f"sizes must not be negative; entry {index} is {sizes[index].item():g}.")
    if sizes.ndim < 1 or bool((sizes.sum(dim=-1) <= 0).any()):
        raise InvalidInput(f"sizes must have a positive sum in every element; got shape {tuple(sizes.shape)}.")
    return sizes


def _check_projections(query: Tensor, key: Tensor, value: Tensor, *, heads: bool) -> None:
    dim = value.shape[-1]
    for name, matrix in (("query", query), ("key", key)):
        if matrix.ndim < 2 or matrix.shape[-1] != dim:
            raise ShapeError(f"{name} must have shape (..., m, {dim}) to match value; got {tuple(matrix.shape)}.")
    if query.shape[-2] != key.shape[-2]:
        raise ShapeError(
            f"query and key must have the same number of rows; got {tuple(query.shape)} and {tuple(key.shape)}."
        )
    if heads and not (value.ndim >= 3 and key.ndim >= 3 and key.shape[-3] == value.shape[-3]):
        raise ShapeError(
            "with heads=True query, key and value must have an axis of heads before their matrices; "
            f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}."
        )


def _check_bias(bias: object, dtype: torch.dtype) -> Tensor:
    tensor = as_tensor(bias, "bias", dtype=dtype)
    require_square(tensor, "bias")
    return tensor
