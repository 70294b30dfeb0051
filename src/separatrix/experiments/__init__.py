"""One file per figure, table or theorem of the documents, and ours.

Each module binds its experiment, or several, to names of this package's choosing; ``catalogue`` finds them all.
Modules import rooms (``from separatrix import matrices``), not torch, so that listing experiments stays fast.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from separatrix.core.errors import unknown_name
from separatrix.lab.experiment.definition import Experiment


@functools.cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment of the package by name, in alphabetical order."""
    found: dict[str, Experiment] = {}
    for info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, Experiment) and value.module == module.__name__:
                found[value.name] = value
    return dict(sorted(found.items()))


def find(name: str) -> Experiment:
    """One experiment by name; an unknown name gets the nearest three."""
    known = catalogue()
    if name not in known:
        raise unknown_name("experiment", name, known)
    return known[name]
