"""The pair of matrices of a dense block, width to hidden and back."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, require_integer
from separatrix.core.names import suggest_options

from .base import AbstractEnsemble, Scale
from .catalogue import find_ensemble
from .rectangular import AbstractRectangularEnsemble

Family: TypeAlias = AbstractEnsemble | AbstractRectangularEnsemble | str
"""A family of either kind, or the name of a square one."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class DenseBlock:
    """The two matrices of a dense block, ``width -> hidden -> width`` (the document's 700-2800-700).

    Args:
        ensemble: a family or its name; one that is only square needs ``hidden`` equal to the width.
        hidden: the inner width; ``None`` means the outer one.
    """

    ensemble: Family
    hidden: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.ensemble, AbstractRectangularEnsemble):
            object.__setattr__(self, "ensemble", find_ensemble(self.ensemble))

    @property
    def name(self) -> str:
        """``block(gaussian)`` and the like."""
        assert not isinstance(self.ensemble, str)
        return f"block({self.ensemble.name})"

    @property
    def is_square(self) -> bool:
        """Whether the inner width must equal the outer one."""
        return self._form() is None

    def sample(
        self,
        width: int,
        weight_var: Scale,
        *,
        generator: torch.Generator,
        batch: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float64,
    ) -> tuple[Float[Tensor, "*batch hidden width"], Float[Tensor, "*batch width hidden"]]:
        """The matrix into the hidden layer and the one out of it, independent of each other."""
        hidden = width if self.hidden is None else require_integer(self.hidden, "hidden", at_least=1)
        form = self._form()
        if form is not None:
            up = form.sample(hidden, width, weight_var, generator=generator, batch=batch, dtype=dtype)
            down = form.sample(width, hidden, weight_var, generator=generator, batch=batch, dtype=dtype)
            return up, down
        square = self.ensemble
        assert isinstance(square, AbstractEnsemble)
        if hidden != width:
            raise InvalidInput(
                f"hidden must equal the width for the square family {square.name!r}; got width {width} and hidden "
                f"{hidden}. Leave hidden out, or use a family that has a rectangular form ('gaussian', 'haar')."
            )
        up = square.sample(width, weight_var, generator=generator, batch=batch, dtype=dtype)
        down = square.sample(width, weight_var, generator=generator, batch=batch, dtype=dtype)
        return up, down

    def _form(self) -> AbstractRectangularEnsemble | None:
        if isinstance(self.ensemble, AbstractRectangularEnsemble):
            return self.ensemble
        assert isinstance(self.ensemble, AbstractEnsemble)
        return self.ensemble.rectangular()
