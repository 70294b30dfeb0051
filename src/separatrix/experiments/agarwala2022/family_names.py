"""Families in sentences, by the one name that each has in figures and tables."""

from __future__ import annotations


def named(family: str) -> str:
    """The label of a family: ``"orthogonal"`` for ``"haar"``."""
    from separatrix.matrices.ensembles import find_ensemble

    return str(find_ensemble(family).label)
