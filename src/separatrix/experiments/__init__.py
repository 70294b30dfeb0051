"""One file per figure, table or theorem of the documents, and ours; a folder per document.

A module is named as its experiment (``altafini_fig2`` holds ``altafini-fig2``) and binds it to ``EXPERIMENT``; modules
that bind none hold what several experiments share. All import rooms (``from separatrix import matrices``), not torch,
so that listing experiments stays fast.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from separatrix.core.names import resolve
from separatrix.lab.experiment.definition import Experiment


@functools.cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment of the package by name, in alphabetical order. Imports them all."""
    found = {name: _experiment(module) for name, module in sorted(_modules().items())}
    return {name: experiment for name, experiment in found.items() if experiment is not None}


def find(name: str) -> Experiment:
    """One experiment by name; an unknown name gets the nearest three.

    Cost: reading the folders, and importing the module of that name alone (all modules, if there is none).
    """
    module = _modules().get(name)
    experiment = _experiment(module) if module is not None else None
    return experiment if experiment is not None else resolve("experiment", name, catalogue())


@functools.cache
def _modules() -> dict[str, str]:
    """Modules of all document folders, by the name of the experiment that each would hold."""
    return {
        module.name.replace("_", "-"): f"{__name__}.{folder.name}.{module.name}"
        for folder in pkgutil.iter_modules(__path__)
        for module in pkgutil.iter_modules([f"{path}/{folder.name}" for path in __path__])
    }


def _experiment(module: str) -> Experiment | None:
    return getattr(importlib.import_module(module), "EXPERIMENT", None)
