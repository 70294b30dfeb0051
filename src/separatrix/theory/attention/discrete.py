"""Two maps that a transformer layer is a step of, and their multipliers at tokens on one eigenvector.

Map A renormalises after an Euler step of the flow, x+ = normalise(x + eta f(x)). Map B renormalises after adding the
whole attention update, x+ = normalise(x + eta V m), as layers do. A fixed point is stable iff all multipliers lie
inside the unit circle.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from separatrix.core import Result, as_float64, formula, require_positive
from separatrix.matrices import robust_eigenvalues

from .basis import ArrayLike, Numbers, attention_matrices, direction, strength_along, value_matrix
from .bipartite_weights import softmax_weights
from .block_spectrum import BlockSpectrum
from .spectra import group_sizes, require_pattern


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Multipliers(Result):
    """Multipliers of a map at a fixed point; each transversal one of cluster a appears (size - 1) times.

    ``flips`` marks clusters whose factor 1 + eta gamma is negative: such tokens change sign at every step, so that the
    point has period two (or is no periodic point at all, if only some flip) and is not called stable.
    """

    quotient: Shaped[Tensor, "*batch q"]
    transversal: Shaped[Tensor, "*batch clusters t"]
    sizes: tuple[int | float, ...]
    flips: Bool[Tensor, "*batch clusters"]

    @property
    def spectral_radius(self) -> Float[Tensor, "*batch"]:
        """Largest modulus of a multiplier."""
        radius = self.quotient.abs().amax(-1)
        splitting = [a for a, size in enumerate(self.sizes) if size > 1]
        if not splitting or self.transversal.shape[-1] == 0:
            return radius
        return torch.maximum(radius, self.transversal[..., splitting, :].abs().amax(dim=(-2, -1)))

    @property
    def stable(self) -> Bool[Tensor, "*batch"]:
        """Whether the point is a fixed point of the map and all multipliers lie inside the unit circle."""
        return (self.spectral_radius < 1 - 1e-9) & ~self.flips.any(-1)


@formula("separatrix", "multipliers of the renormalised Euler step")
def euler_multipliers(spectrum: BlockSpectrum, step: int | float) -> Multipliers:
    """Map A, x+ = normalise(x + eta f(x)): multipliers 1 + eta times the tangent eigenvalues of the flow.

    Args:
        spectrum: of the flow at the equilibrium.
        step: eta.
    """
    require_positive(step, "step")
    flips = torch.zeros((*spectrum.scale.shape, len(spectrum.sizes)), dtype=torch.bool)
    return Multipliers(1 + step * spectrum.quotient, 1 + step * spectrum.transversal, spectrum.sizes, flips)


@formula("separatrix", "multipliers of the residual layer at a sign pattern")
def layer_multipliers(
    value: ArrayLike, k: int, signs: ArrayLike, attention: ArrayLike, step: int | float
) -> Multipliers:
    r"""Map B, x+ = normalise(x + eta V m), at x_i = s_i v_k, any row-stochastic attention.

    .. math:: \bigcup_{j \ne k} \operatorname{eig}\Bigl(\operatorname{diag}(1 + \eta\lambda_k\, s \circ As)^{-1}
              (I + \eta\lambda_j A)\Bigr)

    As eta grows this becomes power iteration: the modulus of an eigenvalue takes the place of its real part.

    Args:
        value: (..., d, d).
        k: number of the eigenvalue, from 0 in descending order of the real part.
        signs: (..., n), entries +1 and -1.
        attention: (..., n, n) at that point.
        step: eta.
    """
    require_positive(step, "step")
    way = direction(value_matrix(value), k)
    sign = as_float64(signs, "signs")
    weights = as_float64(attention, "attention")
    require_pattern(sign, weights)
    factor = 1 + step * way.eigenvalue.unsqueeze(-1) * sign * (weights @ sign.unsqueeze(-1)).squeeze(-1)
    identity = torch.eye(sign.shape[-1], dtype=torch.float64)
    blocks = identity + step * way.others[..., None, None] * weights.unsqueeze(-3)
    quotient = robust_eigenvalues(blocks / factor[..., None, :, None]).flatten(-2)
    empty = quotient.new_zeros((*quotient.shape[:-1], sign.shape[-1], 0))
    return Multipliers(quotient, empty, (1,) * sign.shape[-1], factor < 0)


@formula("separatrix", "multipliers of the residual layer at a bipartite point")
def bipartite_layer_multipliers(
    coupling: ArrayLike,
    value: ArrayLike,
    k: int,
    n1: int | float,
    n2: int | float,
    step: int | float,
    beta: Numbers = 1.0,
) -> Multipliers:
    """Map B at n_1 tokens on +v_k and n_2 on -v_k, softmax attention: 2 x 2 blocks, at a cost independent of n.

    Args:
        coupling, value: (..., d, d).
        k: number of the eigenvalue of value, from 0 in descending order of the real part.
        n1, n2: tokens at +v_k and at -v_k, n1 positive; n2 = 0 is consensus.
        step: eta.
        beta: inverse temperature.
    """
    require_positive(step, "step")
    logits, matrix = attention_matrices(coupling, value, beta)
    n1, n2 = group_sizes(n1, n2)
    way = direction(matrix, k)
    lam_j = way.others
    if n1 == 0 or n2 == 0:
        factor = (1 + step * way.eigenvalue).unsqueeze(-1)
        split = (1 / factor).unsqueeze(-1).expand(*factor.shape, lam_j.shape[-1])
        return Multipliers((1 + step * lam_j) / factor, split, (n1 + n2,), factor < 0)
    weights = softmax_weights(strength_along(logits, way.vector), n1, n2)
    factor = 1 + step * way.eigenvalue.unsqueeze(-1) * torch.stack([weights.delta_1, weights.delta_2], dim=-1)
    leave = torch.stack([weights.leave_1, weights.leave_2], dim=-1).unsqueeze(-2)
    stay = (1 + step * lam_j.unsqueeze(-1) * (1 - leave)) / factor.unsqueeze(-2)
    cross = step * lam_j.unsqueeze(-1) * leave / factor.unsqueeze(-2)
    blocks = torch.stack(
        [torch.stack([stay[..., 0], cross[..., 0]], -1), torch.stack([cross[..., 1], stay[..., 1]], -1)], -2
    )
    split = (1 / factor).unsqueeze(-1).expand(*factor.shape, lam_j.shape[-1])
    return Multipliers(robust_eigenvalues(blocks).flatten(-2), split, (n1, n2), factor < 0)
