"""The non-normal recurrent network: exact control of the spectrum, free transients."""

from __future__ import annotations

from typing import Literal, final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.manifold import AbstractOrthogonalMap
from ..orthogonal.nonnormal import Block, NonNormalMatrix
from .elman_core import AbstractElman


@final
@suggest_options
class NonNormalRNN(AbstractElman):
    r"""``h' = modReLU(V h + U x; b)`` with :math:`V = P(\Lambda + T)P^\top` in Schur form (nnRNN).

    The eigenvalues are :math:`\gamma_i e^{\pm i\theta_i}` whatever P, T and kappa become in training, with any torch
    optimiser. In a linear network gradients then grow at most polynomially while all :math:`|\gamma_i| \le 1`; with a
    nonlinearity that switches units off they may still grow exponentially, so clip them. Without clipping, steps of
    plain gradient descent or of L-BFGS without a line search can be so long that the loss overflows; the same happens
    to an unconstrained matrix from the same start, and without rebasing. The spectrum is controlled, its size is not:
    ``gamma`` is learned, and nothing but the loss keeps it near one.

    Parameters for groups of their own: ``matrix.basis.*`` (a rate about a hundredth of the others),
    ``matrix.feedforward`` (decay). Add ``delta * rnn.matrix.modulus_penalty()`` to the loss to keep moduli near one.

    Args:
        input_size: features of a step.
        hidden_size: N; an odd one has one real eigenvalue.
        block: ``"strict"``, ``"complete"`` or ``"printed"``, see ``NonNormalMatrix``.
        gamma: ``"learn"``, or the fixed modulus of all eigenvalues.
        basis: map of P.
        start: initial P.
        nonlinearity: as in ``OrthogonalRNN``.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, section 3.5; errata kerg2022-spectrum, kerg2022-reach, kerg2022-polynomial.

    Example:
        >>> rnn = NonNormalRNN(3, 8)
        >>> bool((rnn.eigenvalues().abs() - 1).abs().max() < 1e-6)
        True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        block: Block = "strict",
        *,
        gamma: Literal["learn"] | float = "learn",
        basis: str | AbstractOrthogonalMap = "exp",
        start: str | None = "henaff",
        nonlinearity: str = "modrelu",
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, nonlinearity=nonlinearity, batch_first=batch_first)
        require_integer(hidden_size, "hidden_size", at_least=2)
        generator = default_generator(generator)
        self.matrix = NonNormalMatrix(
            self.hidden_size, block, gamma=gamma, basis=basis, start=start, generator=generator, dtype=dtype
        )
        self._build_input(generator, dtype)

    def recurrent(self) -> Float[Tensor, "h h"]:
        """V."""
        matrix: Tensor = self.matrix()
        return matrix

    def eigenvalues(self) -> Complex[Tensor, " h"]:
        """Exactly, from gamma and theta."""
        return self.matrix.eigenvalues()
