"""What a fixed-point solve returns."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, exposed
from separatrix.core.errors import NotConverged
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class EquilibriumSolution(Result):
    """What a fixed-point solve found, per sample.

    ``residual`` is |f(z) - z| at ``best``, and ``relative`` the same over |f(z)|: what you would compute yourself.
    """

    value: Float[Tensor, "*batch d"]
    """The equilibrium; NaN where the solve failed."""
    best: Float[Tensor, "*batch d"]
    """The iterate that converged, or else the one with the smallest residual."""
    outcome: Int[Tensor, " *batch"]
    residual: Float[Tensor, " *batch"]
    relative: Float[Tensor, " *batch"]
    error: Float[Tensor, " *batch"]
    """Estimated distance |best - z*|: the residual times how far steps move the state per change of residual. Infinite
    where nothing is known of it; not estimated with ``stop="residual"``."""
    steps: Int[Tensor, " *batch"]
    """Steps (residuals looked at) until this sample was finished."""
    rate: Float[Tensor, " *batch"]
    """Observed contraction per step, the geometric mean over the last steps; above one the residual grows."""
    evaluations: Int[Tensor, " *batch"]
    """Evaluations of the map, Jacobian-vector products included, until this sample was finished."""
    surveyed: Bool[Tensor, " *batch"]
    """Whether a slow direction that nothing excites was looked for before convergence was claimed: along every unit in
    up to 16 dimensions, in more by a search of some ten to a hundred evaluations. ``find_equilibrium`` does so at every
    claim; a layer, which solves for the same cell again and again, at some of its solves. False where the search ended
    without a result or had no room for its images (half a gigabyte), of failed samples, and with ``stop="residual"``.
    """
    trace: Float[Tensor, " time *batch"] = dataclasses.field(repr=False)
    """|f(z) - z| at every step; a finished sample rests where it finished."""

    @property
    def ok(self) -> bool:
        """True if every sample converged."""
        return all_true(self.outcome == Outcome.CONVERGED)

    @property
    def n_failed(self) -> int:
        """How many samples did not converge."""
        return int((exposed(self.outcome) != Outcome.CONVERGED).sum())

    def outcomes(self) -> list[Outcome]:
        """The outcome of each sample as an enumeration member."""
        return [Outcome(code) for code in self.outcome.flatten().tolist()]

    def unwrap(self) -> Tensor:
        """The equilibria, or ``NotConverged`` carrying this solution."""
        if not self.ok:
            raise NotConverged(self.failure_message(), self)
        return self.value

    def failure_message(self) -> str:
        """One sentence on what failed and what to try."""
        outcome, residual, steps = (exposed(part) for part in (self.outcome, self.residual, self.steps))
        failed = outcome != Outcome.CONVERGED
        kinds = sorted({Outcome(code) for code in outcome[failed].flatten().tolist()})
        names = ", ".join(kind.label for kind in kinds)
        worst = float(residual[failed].nan_to_num(float("inf")).max())
        return (
            f"{self.n_failed} of {outcome.numel()} solves did not converge ({names}; largest residual {worst:.1e} "
            f"after {int(steps.max())} steps). {kinds[-1].advice}"
        )


def out_of_units(solution: EquilibriumSolution, unit: Float[Tensor, "batch 1"]) -> EquilibriumSolution:
    """What was found for states over their units, for the states themselves."""
    size = unit.squeeze(-1)
    return dataclasses.replace(
        solution,
        value=solution.value * unit,
        best=solution.best * unit,
        residual=solution.residual * size,
        error=solution.error * size,
        trace=solution.trace * size,
    )
