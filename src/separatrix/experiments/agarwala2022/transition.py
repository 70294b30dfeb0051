"""What a statement about a transition needs: scales on both sides of it."""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.lab import Row


def unseen_sides(scales: Sequence[float], below: float, above: float) -> list[Row]:
    """A row that cannot tell for each side of a transition that no scale lies on.

    Networks that settle where they should confirm no loss of convergence, nor do those that do not settle beyond it.
    """
    sides = {
        f"scales up to {below:.3g}": any(scale <= below for scale in scales),
        f"scales from {above:.3g}": any(scale >= above for scale in scales),
    }
    return [Row(side, 0, "at least one", agrees=None) for side, seen in sides.items() if not seen]
