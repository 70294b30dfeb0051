"""Cells f(z, x) for equilibrium layers, with their matrices drawn from a named family.

A cell is an ordinary module that maps a state and an input to a state of the same shape. Only the matrices that act on
the state are drawn from the family; they are what decides whether the iteration contracts.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from separatrix.core.arrays import require_integer
from separatrix.core.names import resolve, suggest_options
from separatrix.core.networks.activations import ACTIVATIONS, Activation, Pointwise
from separatrix.core.random import default_generator
from separatrix.matrices.ensembles import AbstractEnsemble, AbstractRectangularEnsemble, DenseBlock, find_ensemble

Family: TypeAlias = AbstractEnsemble | str
DenseFamily: TypeAlias = AbstractEnsemble | AbstractRectangularEnsemble | str


@suggest_options
class TanhCell(nn.Module):
    """z -> phi(W z + b) + x, phi = tanh by default: the network whose theory is in ``separatrix.theory``.

    The input is added outside the activation and is not transformed, as in the source document. The Jacobian is
    diag(phi') W. Cost of a call: one product of the batch with W.

    Args:
        width: dimension of state and input.
        ensemble: family of W, as an object or by name (``"gaussian"``, ``"haar"``, ``"goe"``, ...).
        weight_var: variance of an entry of W times the width.
        phi: the activation, as a name, an object of theory or any function of a tensor.
        bias: whether to add b, which starts at zero.
        generator: source of randomness of the initial W.
        dtype: of the parameters.

    Source: agarwala2022, section 4.1 (MNIST) and Eq. (21).

    Example:
        >>> cell = TanhCell(4, ensemble="goe", weight_var=0.1, generator=torch.Generator().manual_seed(0))
        >>> cell(torch.zeros(2, 4), torch.ones(2, 4)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        width: int,
        *,
        ensemble: Family = "haar",
        weight_var: float = 1.0,
        phi: str | Activation | Pointwise = torch.tanh,
        bias: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        width = require_integer(width, "width", at_least=1)
        matrix = find_ensemble(ensemble).sample(width, weight_var, generator=generator, dtype=dtype)
        self.linear = empty_linear(width, width, bias=bias, dtype=dtype)
        fill_linear(self.linear, matrix)
        self.phi = _pointwise(phi)

    def forward(self, z: Float[Tensor, "*batch d"], x: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """One application of the map."""
        return self.phi(self.linear(z)) + x


@suggest_options
class ResidualCell(nn.Module):
    """z -> x + W2 phi(W1 z + b1) + b2: a dense block whose skip connection carries the input.

    Its Jacobian is W2 diag(phi') W1, a product of two independent matrices: symmetric families lose their symmetry in
    it, and the spectrum is that of a rotation-invariant product.

    Args:
        width: dimension of state and input.
        hidden: inner width; by default 4 times the width, and the width itself for families that are only square.
        ensemble: family of W1 and W2, as an object or by name.
        weight_var: variance of an entry times the fan-in of its matrix.
        phi: the activation, as a name, an object of theory or any function of a tensor.
        generator: source of randomness of the initial matrices.
        dtype: of the parameters.
    """

    def __init__(
        self,
        width: int,
        *,
        hidden: int | None = None,
        ensemble: DenseFamily = "haar",
        weight_var: float = 0.5,
        phi: str | Activation | Pointwise = functional.gelu,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        self.block = DenseLayers(
            width,
            hidden=hidden,
            ensemble=ensemble,
            weight_var=weight_var,
            phi=phi,
            generator=generator,
            dtype=dtype,
        )

    def forward(self, z: Float[Tensor, "*batch d"], x: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """One application of the map."""
        out: Tensor = x + self.block(z)
        return out


@suggest_options
class DenseLayers(nn.Module):
    """W2 phi(W1 z + b1) + b2 with both matrices from one family and biases that start at zero."""

    def __init__(
        self,
        width: int,
        *,
        hidden: int | None,
        ensemble: DenseFamily,
        weight_var: float,
        phi: str | Activation | Pointwise = functional.gelu,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        block = dense_block(ensemble, width, hidden)
        into, out_of = block.sample(width, weight_var, generator=generator, dtype=dtype)
        self.into = empty_linear(width, into.shape[0], dtype=dtype)
        self.out_of = empty_linear(into.shape[0], width, dtype=dtype)
        fill_linear(self.into, into)
        fill_linear(self.out_of, out_of)
        self.phi = _pointwise(phi)

    def forward(self, z: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The block's output."""
        out: Tensor = self.out_of(self.phi(self.into(z)))
        return out


def dense_block(ensemble: DenseFamily, width: int, hidden: int | None) -> DenseBlock:
    """The pair of matrices of a dense block: rectangles where the family has that form, else squares.

    Args:
        ensemble: a family or its name.
        width: outer width.
        hidden: inner width; ``None`` means 4 times the width, or the width for a family that is only square.

    Raises:
        InvalidInput: a square family with an inner width that differs from the outer one (when it is sampled).
    """
    width = require_integer(width, "width", at_least=1)
    if hidden is None:
        hidden = width if DenseBlock(ensemble).is_square else 4 * width
    return DenseBlock(ensemble, hidden)


def empty_linear(columns: int, rows: int, *, bias: bool = True, dtype: torch.dtype = torch.float32) -> nn.Linear:
    """A linear layer that has drawn nothing: the global generator is left alone."""
    layer = skip_init(nn.Linear, columns, rows, bias=bias, dtype=dtype)
    assert isinstance(layer, nn.Linear)
    return layer


@torch.no_grad()
def fill_linear(layer: nn.Linear, matrix: Float[Tensor, "rows columns"]) -> None:
    """Give a linear layer its matrix, and a bias of zero."""
    layer.weight.copy_(matrix)
    if layer.bias is not None:
        layer.bias.zero_()


def _pointwise(phi: object) -> Pointwise:
    """The function behind an activation; functions pass through unexamined."""
    if callable(phi):
        function: Pointwise = phi
        return function
    return resolve("activation", phi, ACTIVATIONS, base=Activation, also="a function of a tensor").phi
