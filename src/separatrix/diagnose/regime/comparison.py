"""Several networks side by side, at equal loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, final

from separatrix.core.arrays import require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result

from .rich_lazy import RichLazy


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RegimeComparison(Result):
    """Networks that were trained to the same loss, by name, from the laziest to the richest."""

    loss: float
    runs: dict[str, RichLazy]

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary per network."""
        return [
            {
                "network": name,
                "verdict": run.verdict.label,
                "loss": run.loss_after,
                "kernel change": run.kernel_change,
                "kernel distance": run.kernel_distance,
                "feature change": run.feature_change,
                "linearised error": run.linearised_error,
                "movement": run.movement,
            }
            for name, run in self.runs.items()
        ]

    def __repr__(self) -> str:
        width = max(len(name) for name in self.runs)
        lines = [f"RegimeComparison at loss {self.loss:.4g} (laziest first)"]
        for row in self.rows():
            lines.append(
                f"  {row['network']:<{width}}  {row['verdict']:<10}  kernel {row['kernel change']:.3g}  "
                f"features {row['feature change']:.3g}  linearised {row['linearised error']:.3g}"
            )
        return "\n".join(lines)


def compare_regimes(runs: Mapping[str, RichLazy], *, tolerance: float = 0.1) -> RegimeComparison:
    """Put networks side by side; refused unless their training losses agree.

    Args:
        runs: results of ``rich_lazy`` by name.
        tolerance: largest relative difference of the final losses.

    Returns:
        The comparison, ordered by the change of features.

    Raises:
        InvalidInput: fewer than two networks, or losses that differ: train to the same loss first (``target_loss=``,
            ``train_to_loss``) or pick checkpoints with ``pick_at_loss``.
    """
    require_positive(tolerance, "tolerance")
    if len(runs) < 2:
        raise InvalidInput(f"a comparison needs at least two networks; got {len(runs)}.")
    losses = {name: run.loss_after for name, run in runs.items()}
    low, high = min(losses, key=losses.__getitem__), max(losses, key=losses.__getitem__)
    if not losses[high] - losses[low] <= tolerance * losses[high]:
        raise InvalidInput(
            f"networks must be compared at equal loss: {low!r} has {losses[low]:.4g}, {high!r} {losses[high]:.4g}. "
            "Train them to the same loss with target_loss=, or choose checkpoints with pick_at_loss."
        )
    ordered = dict(sorted(runs.items(), key=lambda item: item[1].feature_change))
    return RegimeComparison(sum(losses.values()) / len(losses), ordered)
