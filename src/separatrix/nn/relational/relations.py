"""Relation matrices of encoded objects, and what of them a decoder reads."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Relation: TypeAlias = Literal["causal_softmax", "softmax", "raw", "cosine"]
RELATIONS: tuple[Relation, ...] = ("causal_softmax", "softmax", "raw", "cosine")


def relation_matrix(
    first: Float[Tensor, "batch t d"], second: Float[Tensor, "batch t d"], kind: Relation, temperature: float
) -> Float[Tensor, "batch t t"]:
    r"""How positions relate: :math:`A_{ij} = x_i \cdot y_j / \tau`, or what is made of it.

    ``"causal_softmax"`` is a softmax over j <= i, zero above the diagonal; ``"softmax"`` one over whole rows;
    ``"raw"`` is A itself; ``"cosine"`` has lengths divided out.
    """
    if kind == "cosine":
        first, second = functional.normalize(first, dim=-1), functional.normalize(second, dim=-1)
    scores = first @ second.mT / temperature
    if kind == "causal_softmax":
        t = scores.shape[-1]
        later = torch.full((t, t), -torch.inf, dtype=scores.dtype, device=scores.device).triu(1)
        return torch.softmax(scores + later, -1)
    return torch.softmax(scores, -1) if kind == "softmax" else scores


def read_entries(matrix: Float[Tensor, "batch t t"], kind: Relation) -> Float[Tensor, "batch k"]:
    """What a decoder reads: the T (T + 1) / 2 entries with j <= i of a causal matrix, else all T^2, row by row."""
    if kind != "causal_softmax":
        return matrix.flatten(1)
    t = matrix.shape[-1]
    rows, columns = torch.tril_indices(t, t, device=matrix.device)
    return matrix[:, rows, columns]


def n_entries(seq_len: int, kind: Relation) -> int:
    """How many that are."""
    return seq_len * (seq_len + 1) // 2 if kind == "causal_softmax" else seq_len * seq_len
