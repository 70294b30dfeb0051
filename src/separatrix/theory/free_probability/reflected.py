"""The law of minus x."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import formula, not_a_formula
from separatrix.core.names import suggest_options

from .law import AbstractLaw


@not_a_formula("builds the law of minus x")
def reflect(law: AbstractLaw) -> AbstractLaw:
    """The law of minus x; a symmetric law is returned as it is, with its closed forms."""
    return law if law.symmetric else Reflected(law)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Reflected(AbstractLaw):
    """The law of minus x."""

    law: AbstractLaw

    @formula("separatrix", "Stieltjes transform of the law of minus x")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """-G(-z)."""
        return -self.law.stieltjes(-z)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G'(-z)."""
        return self.law.stieltjes_prime(-z)

    def edges(self) -> tuple[float, float]:
        """Swapped and negated."""
        low, high = self.law.edges()
        return -high, -low

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """At the negated positions."""
        positions, masses = self.law.atoms()
        return -positions, masses
