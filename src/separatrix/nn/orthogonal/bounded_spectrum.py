r"""Keep all eigenvalues of a square weight within a radius, and leave its non-normality free.

Any real matrix is orthogonally similar to a lower block-triangular one whose 2x2 blocks have equal diagonals,
:math:`\begin{pmatrix} a & b \\ c & a \end{pmatrix}`, with eigenvalues :math:`a \pm \sqrt{bc}`: a complex pair or two
real ones, and training may pass from one to the other. They lie within r exactly if :math:`|a| \le r` and
:math:`a^2 - r^2 \le bc \le (r - |a|)^2`. So a and bc are mapped into that region, and what is left of b and c (their
common size w), P and T are free.

With a bound :math:`\tau` on transients (r < 1) the matrix is :math:`P S M S^{-1} P^\top`, :math:`\|M\| \le 1` and S a
diagonal that grows from 1 to tau along the blocks. Then :math:`\|W^k\| \le \tau` for every k, and the Kreiss constant,
which is no larger, obeys the same bound. This is sufficient, not necessary: some matrices within the bound are left
out.
"""

from __future__ import annotations

from typing import TypeVar, final

import numpy
import scipy.linalg
import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options

from .attach import require_unparametrized
from .manifold import widened
from .nonnormal import block_places, form_origins
from .rebased import Exp
from .starts import rotation_start

Layer = TypeVar("Layer", bound=nn.Module)
INSIDE = 1e-6
"""Free numbers are drawn this far inside the region, so that their gradient is not zero."""


@final
@suggest_options
class BoundedSpectrum(nn.Module):
    """Matrices of size n whose eigenvalues have at most the modulus ``radius``; four verbs, as every parametrisation.

    Args:
        n: size.
        radius: r.
        transient: tau >= 1, a bound on every power's norm and so on the Kreiss constant; ``None`` for no bound.
    """

    free_names = ("tangent", "centres", "products", "skews", "feedforward")
    signs: Tensor

    def __init__(self, n: int, radius: float, transient: float | None = None) -> None:
        super().__init__()
        self.n = require_integer(n, "n", at_least=1)
        require_positive(radius, "radius")
        self.radius, self.transient = float(radius), transient
        if transient is not None:
            require_positive(transient, "transient")
            if transient < 1 or radius >= 1:
                raise InvalidInput(
                    f"transient must be at least 1, and radius below 1 for it to mean anything; got transient "
                    f"{transient} and radius {radius}."
                )
        self.basis = Exp(n)
        self.register_buffer("signs", torch.ones(2, n // 2))

    def blocks(self, centres: Tensor, products: Tensor, skews: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """a (the lone one of an odd size last), b, c, and the product bc."""
        a = self.radius * torch.tanh(centres)
        left = 2 * self.radius * torch.sigmoid(-2 * centres[: self.n // 2].abs())  # r - |a|, without cancellation
        product = left * (left - 2 * self.radius * torch.sigmoid(-products))
        if self.transient is not None:
            limit = (1 - self.radius) / 4  # the norm of a block is at most its radius plus twice its skew
            skews = limit * torch.tanh(skews / limit)
        tiny = torch.finfo(a.dtype).tiny ** 0.5  # no infinite slope at zero; it drops out of bc
        square = skews * skews + tiny
        common = self.signs[0].to(a.dtype) * torch.sqrt(square + product.clamp_min(0))
        apart = self.signs[1].to(a.dtype) * torch.sqrt(square + (-product).clamp_min(0))
        return a, common + apart, common - apart, product

    def forward(self, *free: Tensor) -> Float[Tensor, "n n"]:
        """The matrix."""
        tangent, centres, products, skews, feedforward = free
        centres, products, skews, feedforward = (widened(part) for part in (centres, products, skews, feedforward))
        a, b, c, _ = self.blocks(centres, products, skews)
        pair = a[: self.n // 2]
        below = block_places(self.n, False, a.device)[1]
        if self.transient is not None:
            size = torch.linalg.vector_norm(feedforward)
            room = (1 - self.radius) / 2
            feedforward = feedforward * (room / size.clamp_min(room)) * self._growth(below)
        listed = torch.cat([pair, pair, b, c, a[self.n // 2 :], feedforward, a.new_zeros(1)])
        form = listed.index_select(0, form_origins(self.n, a.device))
        basis: Tensor = self.basis(tangent).to(form.dtype)
        return (basis @ form.reshape(self.n, self.n) @ basis.mT).to(tangent.dtype)

    def _growth(self, below: Tensor) -> Tensor:
        """By how much a feed-forward entry may grow on its way: the ratio of S at its two ends."""
        assert self.transient is not None
        n_blocks = (self.n + 1) // 2
        steps = (below // self.n // 2 - below % self.n // 2).to(self.signs.dtype)
        return torch.pow(self.transient, steps / max(n_blocks - 1, 1))

    @torch.no_grad()
    def eigenvalues(self, *free: Tensor) -> Complex[Tensor, " n"]:
        """Exactly, from the free numbers."""
        centres, products, skews = (widened(part) for part in free[1:4])
        a, _, _, product = self.blocks(centres, products, skews)
        root = torch.sqrt(product.to(product.dtype.to_complex()))
        pair = a[: self.n // 2]
        return torch.cat([pair + root, pair - root, a[self.n // 2 :].to(root.dtype)])

    @torch.no_grad()
    def right_inverse(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Free numbers of a matrix; eigenvalues outside the radius are drawn to its border, the rest stays.

        With a bound on transients the feed-forward part is scaled down as far as it must be.
        """
        if matrix.shape != (self.n, self.n):
            raise ShapeError(f"the weight must be a square matrix of size {self.n}; got {tuple(matrix.shape)}.")
        if matrix.is_complex() or not bool(torch.isfinite(matrix).all()):
            raise InvalidInput("the weight must be real and finite.")
        form, basis = equal_diagonal_form(matrix.detach().to("cpu", torch.float64).numpy())
        lower = torch.from_numpy(form).flatten()
        places, below = block_places(self.n, False, torch.device("cpu"))
        a1, _, b, c, lone = torch.split(lower[places], [self.n // 2] * 4 + [self.n % 2])
        inside = self.radius * (1 - INSIDE)
        centre = torch.cat([a1, lone]).clamp(-inside, inside)
        pair = centre[: self.n // 2]
        least, most = pair * pair - self.radius**2, (self.radius - pair.abs()).square()
        share = ((b * c - least) / (most - least)).clamp(INSIDE, 1 - INSIDE)
        common, apart = (b + c) / 2, (b - c) / 2
        self.signs = torch.where(torch.stack([common, apart]) < 0, -1.0, 1.0).to(self.signs)
        skews = torch.minimum(common.abs(), apart.abs())
        feedforward = lower[below]
        if self.transient is not None:
            limit = (1 - self.radius) / 4
            skews = limit * torch.atanh((skews / limit).clamp(max=1 - INSIDE))
            feedforward = feedforward / self._growth(below).to(feedforward.dtype)
        tangent = self.basis.invert(torch.from_numpy(basis).to(matrix.dtype).to(matrix.device))[0]
        free = (tangent, torch.atanh(centre / self.radius), torch.logit(share), skews, feedforward)
        return tuple(part.to(matrix.device, matrix.dtype) for part in free)

    @torch.no_grad()
    def in_manifold(self, matrix: Float[Tensor, "n n"], tol: float = 1e-6) -> bool:
        """Whether the eigenvalues, computed in float64, lie within the radius; a non-normal matrix moves them."""
        return float(eigvals(matrix.to(torch.float64)).abs().max()) <= self.radius * (1 + tol)

    @torch.no_grad()
    def sample(self, *, generator: torch.Generator) -> Float[Tensor, "n n"]:
        """A Gaussian matrix of radius about half the bound, brought to its own Schur form with a Haar basis."""
        rotation = rotation_start("haar", self.n, generator=generator)
        gaussian = torch.randn(self.n, self.n, dtype=torch.float64, generator=generator)
        matrix = rotation @ (0.5 * self.radius / self.n**0.5 * gaussian) @ rotation.mT
        return self(*self.right_inverse(matrix)).detach().clone()

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}, radius={self.radius}, transient={self.transient}"


def bound_spectrum_(layer: Layer, radius: float, transient: float | None = None, *, name: str = "weight") -> Layer:
    """Keep every eigenvalue of a square weight within a radius, whatever optimiser moves it.

    Unlike a bound on the norm this leaves non-normality, and so transient growth, free; ``transient`` limits it.

    Args:
        layer: any module with a square matrix of that name, whose eigenvalues outside the radius are drawn to its
            border at once; its ``state_dict`` holds the free numbers afterwards.
        radius: the largest modulus allowed.
        transient: the largest norm of any power, at least 1; needs ``radius < 1``.
        name: of the parameter.

    Returns:
        The layer; ``layer.parametrizations[name][0]`` is the ``BoundedSpectrum``.

    Example:
        >>> layer = torch.nn.Linear(4, 4)
        >>> with torch.no_grad():
        ...     _ = layer.weight.copy_(3 * torch.eye(4))
        >>> weight = bound_spectrum_(layer, 0.9).weight
        >>> bool(torch.linalg.eigvals(weight).abs().max() < 0.9001)
        True
    """
    weight = getattr(layer, name, None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
        found = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise ShapeError(f"the layer must have a square matrix {name!r}; got {found}.")
    require_unparametrized(layer, name)
    bounded = BoundedSpectrum(weight.shape[0], radius, transient).to(weight.dtype)
    parametrize.register_parametrization(layer, name, bounded, unsafe=True)
    return layer


def equal_diagonal_form(matrix: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A lower block-triangular form with 2x2 blocks of equal diagonals, and its orthogonal basis.

    Complex pairs first; real eigenvalues two by two, turned until their diagonals agree; a lone one last.
    """
    form, basis = scipy.linalg.schur(matrix.T, output="real")
    form, basis = _pairs_first(form, basis)
    n = len(form)
    for row in range(0, n - 1, 2):
        block = form[row : row + 2, row : row + 2]
        turn = 0.5 * numpy.arctan2(block[1, 1] - block[0, 0], block[0, 1] + block[1, 0])
        rotation = numpy.eye(n)
        cos, sin = numpy.cos(turn), numpy.sin(turn)
        rotation[row : row + 2, row : row + 2] = [[cos, -sin], [sin, cos]]
        form, basis = rotation.T @ form @ rotation, basis @ rotation
    return form.T.copy(), basis


def _pairs_first(form: numpy.ndarray, basis: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    place = 0
    while True:
        pairs = [row for row in range(place, len(form) - 1) if form[row + 1, row] != 0]
        if not pairs:
            return form, basis
        if pairs[0] != place:
            form, basis, _ = scipy.linalg.lapack.dtrexc(form, basis, pairs[0] + 1, place + 1)
        place += 2
