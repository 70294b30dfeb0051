"""Spectra of the value matrices of a layer, and the stable states they predict for each head alone."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

from separatrix import theory
from separatrix.core import Result, require_integer
from separatrix.core.arithmetic.eigenvalues import eig, eigvals

from .layer import AttentionLayer

ROUNDING = 1e-12
"""Eigenvalues below this fraction of the largest are the zeros of a matrix without full rank."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerSpectrum(Result):
    """The summed value matrix V_S of a layer, and V_h of each head.

    Attributes:
        principal: eigenvalue of V_S with the largest real part (the member of a pair with positive imaginary part).
        gap: its distance, in real part, to the next.
        least_real: smallest real part.
        radius: largest modulus.
        asymmetry: norm of V_S - V_S' over sqrt(2) times that of V_S: 0 if symmetric, about 1 for independent entries.
        coupling_symmetry: norm of M + M' over 2 times that of M, for the couplings summed over heads: 1 if symmetric.
        head_principal, head_asymmetry: the same of V_h, per head.
    """

    name: str
    principal: complex
    gap: float
    least_real: float
    radius: float
    asymmetry: float
    coupling_symmetry: float
    head_principal: Complex[Tensor, " h"]
    head_asymmetry: Float[Tensor, " h"]

    @property
    def is_real(self) -> bool:
        """Whether the principal eigenvalue is real, so that consensus can rest."""
        return self.principal.imag == 0


@final
@dataclasses.dataclass(frozen=True, repr=False)
class HeadPrediction(Result):
    """Stable states of each head alone, by the closed forms; one entry per head.

    Attributes:
        principal: eigenvalue of V_h with the largest real part.
        consensus: consensus on the principal eigenvector is stable (it is real, positive and simple).
        consensus_cycle: tokens that agree rotate stably in the principal plane (a complex pair of positive real part).
        bipartite: equal groups at plus and minus the principal eigenvector are stable.
        bipartite_last: the same on the eigenvector of the most negative eigenvalue.
        strength: logit of a token on the principal eigenvector with itself; NaN where it is complex.
    """

    name: str
    principal: Complex[Tensor, " h"]
    consensus: Bool[Tensor, " h"]
    consensus_cycle: Bool[Tensor, " h"]
    bipartite: Bool[Tensor, " h"]
    bipartite_last: Bool[Tensor, " h"]
    strength: Float[Tensor, " h"]


def asymmetry(matrix: Float[Tensor, "*batch d d"]) -> Float[Tensor, "*batch"]:
    """Norm of V - V' over sqrt(2) times that of V; 0 for a symmetric matrix, near 1 for independent entries."""
    norm = torch.linalg.matrix_norm(matrix)
    return torch.linalg.matrix_norm(matrix - matrix.mT) / (math.sqrt(2) * norm)


def value_spectra(layer: AttentionLayer) -> LayerSpectrum:
    """Spectra of one layer. Cost: one eigendecomposition of a d x d matrix, and one of d_h x d_h per head."""
    value, values = layer.value_sum, layer.values
    eigenvalues = eigvals(value)
    principal = _principal(eigenvalues)
    real = eigenvalues.real.sort(descending=True).values
    coupling = layer.couplings.sum(dim=0)
    share = torch.linalg.matrix_norm(coupling + coupling.mT) / (2 * torch.linalg.matrix_norm(coupling))
    following = real[2 if principal.imag != 0 else 1 :]
    return LayerSpectrum(
        name=layer.name,
        principal=principal,
        gap=float(real[0] - following[0]) if len(following) else math.inf,
        least_real=float(real[-1]),
        radius=float(eigenvalues.abs().max()),
        asymmetry=float(asymmetry(value)),
        coupling_symmetry=float(share),
        head_principal=_head_principal(layer),
        head_asymmetry=asymmetry(values),
    )


def head_predictions(
    layer: AttentionLayer, *, n_tokens: int = 48, token_norm: int | float | None = None
) -> HeadPrediction:
    """What each head alone would make of its tokens, by the exact spectra of consensus and bipartite states.

    V_h maps into the d_h columns of the output, so that the spectra are those of a matrix of d_h + 1 rows: the
    restriction to these columns and one direction that V_h sends into them.

    Args:
        layer: the layer.
        n_tokens: an even number of tokens, half on each side of a bipartite state.
        token_norm: length of the tokens the layer reads; by default sqrt(d).
    """
    half = require_integer(n_tokens, "n_tokens", at_least=4) // 2
    beta = layer.dim if token_norm is None else token_norm**2
    couplings, values = _compressed(layer)
    eigenvalues = eigvals(values)
    order = eigenvalues.real.argsort(dim=-1, descending=True, stable=True)
    first, last = eigenvalues.gather(-1, order[:, :1])[:, 0], eigenvalues.gather(-1, order[:, -1:])[:, 0]
    rounding = ROUNDING * eigenvalues.abs().amax(dim=-1)
    principal = torch.complex(first.real, first.imag.abs())
    is_real = (principal.imag == 0) & (principal.real > rounding)
    negative = (last.imag == 0) & (last.real < -rounding)
    principal = principal.where(first.real.abs() > rounding, principal.new_zeros(()))
    strength = torch.full_like(principal.real, torch.nan)
    bipartite, bipartite_last, consensus = (torch.zeros_like(is_real) for _ in range(3))
    for head in is_real.nonzero().squeeze(-1).tolist():
        consensus[head] = bool(theory.consensus_spectrum(values[head], 0, n_tokens).stable)
        split = theory.bipartite_spectrum(couplings[head], values[head], 0, half, half, beta)
        bipartite[head] = bool(split.stable)
        strength[head] = _strength(couplings[head], values[head]) * beta
    for head in negative.nonzero().squeeze(-1).tolist():
        split = theory.bipartite_spectrum(couplings[head], values[head], values.shape[-1] - 1, half, half, beta)
        bipartite_last[head] = bool(split.stable)
    turning = (principal.imag > 0) & (principal.real > rounding)
    return HeadPrediction(layer.name, principal, consensus, turning, bipartite, bipartite_last, strength)


def _strength(coupling: Float[Tensor, "r r"], value: Float[Tensor, "r r"]) -> float:
    eigenvalues, vectors = eig(value)
    v = vectors[:, int(eigenvalues.real.argmax())].real
    return float(v @ coupling @ v)


def _compressed(layer: AttentionLayer) -> tuple[Float[Tensor, "h r r"], Float[Tensor, "h r r"]]:
    """Couplings and values in an orthonormal basis of each head's output columns and, if there is room, one more."""
    d, e = layer.output.shape[1:]
    inside = torch.linalg.qr(layer.output, mode="complete").Q[..., : min(e + 1, d)]
    return inside.mT @ layer.couplings @ inside, inside.mT @ layer.values @ inside


def _head_principal(layer: AttentionLayer) -> Complex[Tensor, " h"]:
    """Largest by real part of the eigenvalues of W_O W_V, which besides zeros are those of W_V W_O."""
    small = eigvals(layer.value @ layer.output)
    if layer.dim > small.shape[-1]:
        small = torch.cat([small, small.new_zeros(*small.shape[:-1], 1)], dim=-1)
    chosen = small.gather(-1, small.real.argmax(dim=-1, keepdim=True)).squeeze(-1)
    return torch.complex(chosen.real, chosen.imag.abs())


def _principal(eigenvalues: Complex[Tensor, " d"]) -> complex:
    chosen = complex(eigenvalues[int(eigenvalues.real.argmax())])
    return complex(chosen.real, abs(chosen.imag))
