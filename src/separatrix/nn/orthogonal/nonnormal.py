r"""A matrix by its Schur form, :math:`V = P(\Lambda + T)P^\top`: modes, their rotations, and what they feed forward."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Literal, TypeAlias

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from .attach import OrthogonalMatrix
from .catalogue import find_orthogonal_map
from .manifold import AbstractOrthogonalMap, widened

Block: TypeAlias = Literal["complete", "strict", "printed"]
BLOCKS: tuple[Block, ...] = ("complete", "strict", "printed")


class SpectrumWarning(UserWarning):
    """A parametrisation does not control the spectrum it names."""


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)  # a tensor that is kept must serve training too
def block_places(n: int, inside: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Flat places of the block entries (both diagonals, upper, lower, the lone one of an odd size), and of T.

    ``inside``: whether T also has the entries inside the 2x2 blocks.
    """
    even = torch.arange(0, n - 1, 2, device=device)
    blocks = [even * n + even, (even + 1) * n + even + 1, even * n + even + 1, (even + 1) * n + even]
    if n % 2:
        blocks.append(torch.tensor([n * n - 1], device=device))
    rows, columns = torch.tril_indices(n, n, -1, device=device)
    if not inside:
        kept = (rows // 2 != columns // 2).nonzero().flatten()
        rows, columns = rows[kept], columns[kept]
    return torch.cat(blocks), rows * n + columns


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)
def form_origins(n: int, device: torch.device) -> Tensor:
    """Where each entry of a form comes from in the list of ``block_places`` (T outside of the blocks) and a zero."""
    places = torch.cat(block_places(n, False, device))
    origins = torch.full((n * n,), len(places), device=device)
    origins[places] = torch.arange(len(places), device=device)
    return origins


@suggest_options
class NonNormalMatrix(nn.Module):
    r"""A real matrix with eigenvalues :math:`\gamma_i e^{\pm i\theta_i}` that need not be normal.

    Args:
        n: size; an odd one has one real eigenvalue :math:`\pm\gamma` of fixed sign.
        block: ``"strict"``: rotation blocks, and T vanishes inside them. ``"complete"``: a third number kappa per
            block, which reaches every real matrix with n/2 complex pairs. ``"printed"``: T has entries inside the
            blocks too, as printed; then the spectrum is not controlled, and a ``SpectrumWarning`` says so.
        gamma: ``"learn"``, or a number at which all moduli stay.
        basis: map of P, by name or as an object; real.
        start: of P.
        generator: source of randomness: P, and theta uniform in (0, 2 pi).
        dtype: of the parameters.

    Source: kerg2022, Eq. (3.5.1), errata kerg2022-spectrum and kerg2022-reach.
    """

    def __init__(
        self,
        n: int,
        block: Block = "strict",
        *,
        gamma: Literal["learn"] | float = "learn",
        basis: str | AbstractOrthogonalMap = "exp",
        start: str | None = "henaff",
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        require_integer(n, "n", at_least=2)
        choose("block", block, BLOCKS)
        if block == "printed":
            warnings.warn(
                "block='printed' has entries of T inside the rotation blocks: gamma and theta are then not the "
                "eigenvalues. Use 'strict' or 'complete' unless the printed formula itself is wanted.",
                SpectrumWarning,
                stacklevel=3,
            )
        self.n, self.block = n, block
        chart = find_orthogonal_map(basis, n)
        if chart.is_complex or chart.margin:
            raise InvalidInput(f"basis must be a map to real orthogonal matrices; got {chart.name!r}.")
        self.basis = OrthogonalMatrix(chart, start, generator=generator, dtype=dtype)
        theta = 2 * math.pi * torch.rand(n // 2, dtype=torch.float64, generator=generator)
        self.theta = nn.Parameter(theta.to(dtype))
        moduli = torch.ones(n - n // 2, dtype=dtype)
        if isinstance(gamma, str):
            choose("gamma", gamma, ("learn",), also="a positive number")
            self.gamma: Tensor = nn.Parameter(moduli)
        else:
            require_positive(gamma, "gamma")
            self.register_buffer("gamma", gamma * moduli)
        if block == "complete":
            self.kappa = nn.Parameter(torch.zeros(n // 2, dtype=dtype))
        n_feedforward = len(block_places(n, block == "printed", torch.device("cpu"))[1])
        self.feedforward = nn.Parameter(torch.zeros(n_feedforward, dtype=dtype))

    def schur_form(self) -> Float[Tensor, "n n"]:
        """Lambda + T, lower block-triangular."""
        places, below = block_places(self.n, self.block == "printed", self.theta.device)
        pairs, *lone = self.gamma.split([self.n // 2, 1]) if self.n % 2 else [self.gamma]
        cos, sin = pairs * torch.cos(self.theta), pairs * torch.sin(self.theta)
        above, beneath = -sin, sin
        if self.block == "complete":
            skewed = torch.exp(self.kappa)
            above, beneath = -skewed * sin, sin / skewed
        entries = [cos, cos, above, beneath, *lone]
        if self.block != "printed":
            listed = torch.cat([*entries, self.feedforward, self.theta.new_zeros(1)])
            form = listed.index_select(0, form_origins(self.n, listed.device))
        else:  # two entries at one place
            zeros = self.theta.new_zeros(self.n * self.n)
            form = zeros.index_put((places,), torch.cat(entries)) + zeros.index_put((below,), self.feedforward)
        return form.reshape(self.n, self.n)

    def forward(self) -> Float[Tensor, "n n"]:
        """V. Cost: two products of n x n matrices."""
        basis = self.basis()
        matrix: Tensor = basis @ self.schur_form() @ basis.mT
        return matrix

    @torch.no_grad()
    def eigenvalues(self) -> Complex[Tensor, " n"]:
        """Exactly, block by block: ``gamma exp(+-i theta)``, or what the printed blocks have."""
        gamma, theta = widened(self.gamma), widened(self.theta)
        pairs, lone = gamma[: self.n // 2], gamma[self.n // 2 :]
        if self.block == "printed":
            sin = pairs * torch.sin(theta)
            below = block_places(self.n, True, theta.device)[1]
            inside = torch.isin(below, self._inside(below.device)).nonzero().flatten()
            root = torch.sqrt((-sin * (sin + widened(self.feedforward)[inside])).to(theta.dtype.to_complex()))
            first, second = pairs * torch.cos(theta) + root, pairs * torch.cos(theta) - root
        else:
            first = torch.polar(torch.ones_like(theta), theta) * pairs
            second = first.conj()
        return torch.cat([first, second, lone.to(first.dtype)])

    def _inside(self, device: torch.device) -> Tensor:
        even = torch.arange(0, self.n - 1, 2, device=device)
        return (even + 1) * self.n + even

    def modulus_penalty(self) -> Float[Tensor, ""]:
        """The sum of ``(gamma - 1)^2``, to be added to a loss with the factor delta of the document."""
        return (self.gamma - 1).square().sum()

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}, block={self.block!r}"
