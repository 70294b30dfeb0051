"""What a state is: the record that classification hands out, one per state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import Result
from separatrix.core.result import frame

if TYPE_CHECKING:
    import pandas

Kind: TypeAlias = Literal[
    "consensus", "bipartite", "clustering", "polygonal", "equilibrium", "cycle", "slow", "not converged"
]
KINDS: tuple[Kind, ...] = (
    "consensus",
    "bipartite",
    "clustering",
    "polygonal",
    "equilibrium",
    "cycle",
    "slow",
    "not converged",
)
RESTING: tuple[Kind, ...] = ("consensus", "bipartite", "clustering", "polygonal", "equilibrium")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Equilibrium(Result):
    """A classified state.

    ``eigenvector`` counts eigenvalues of the value matrix from 0 in descending order of real part; it is None off the
    eigenvectors and where the eigenvalue is repeated, in which case ``eigenspace`` lists the indices that share it.
    ``sign`` is +1 if the largest coordinate of the first cluster is positive. ``stable``, ``marginal`` and ``index``
    (number of unstable directions) refer to tangent perturbations of all tokens, and are decided by derivatives of
    the cluster flow at the polished point; the two abscissas say whether clusters move or split. ``gap`` is the
    distance between clusters over the width of a cluster.

    Off the sphere an equilibrium has no class and is called ``equilibrium``. A cycle has a ``period`` and its Floquet
    multipliers ``floquet``; ``stable``, ``marginal``, ``index`` and the abscissas are then those of perturbations
    across the orbit. Any other state that is no equilibrium has NaN for its certificates.

    ``find_equilibria`` tells the ``dimension`` of the connected set of equilibria of which this is one: 0 if it is
    alone, 1 on a curve. It is None where nobody looked.
    """

    kind: Kind
    sizes: tuple[int | float, ...]
    eigenvector: int | None
    eigenspace: tuple[int, ...]
    sign: int | None
    stable: bool
    marginal: bool
    index: int | None
    quotient_abscissa: float
    transversal_abscissa: float
    residual: float
    displacement: float
    gap: float
    clusters: Float[Tensor, "m d"]
    labels: Int[Tensor, " n"]
    multipliers: Float[Tensor, " m"]
    period: float | None = None
    floquet: Complex[Tensor, " directions"] | None = dataclasses.field(default=None, repr=False)
    dimension: int | None = None

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame of one row: a record is one state, whatever the number of its tokens.

        Several records make one frame by ``pandas.concat([end.to_frame() for end in ends], ignore_index=True)``.
        """
        return frame([{**self.to_dict(), "label": self.coarse_label}])

    @property
    def abscissa(self) -> float:
        """Largest real part of the tangent eigenvalues."""
        return max(self.quotient_abscissa, self.transversal_abscissa)

    @property
    def is_equilibrium(self) -> bool:
        """Whether the state rests."""
        return self.kind in RESTING

    @property
    def ambiguous(self) -> bool:
        """Whether the number of clusters depends on the distance at which tokens are linked."""
        return self.gap < 10

    @property
    def coarse_label(self) -> str:
        """Class, eigenvector and sorted sizes, the same for a state and its antipode."""
        name = f"{len(self.sizes)}-clustering" if self.kind == "clustering" else self.kind
        if self.kind in ("consensus", "bipartite") and self.eigenvector is not None:
            name = f"{name} v{self.eigenvector + 1}"
        if self.kind in ("bipartite", "clustering"):
            name = f"{name} ({', '.join(f'{size:g}' for size in sorted(self.sizes))})"
        return name

    @property
    def family(self) -> str:
        """The coarse label without sizes: what a bar chart shows."""
        return self.coarse_label.split(" (")[0]

    @property
    def fine_label(self) -> str:
        """Class, eigenvector and the partition of the tokens, the same for a state and its antipode."""
        partition = "".join(chr(48 + label) for label in self.labels.tolist())
        return f"{self.family} {partition}" if len(self.sizes) > 1 else self.family
