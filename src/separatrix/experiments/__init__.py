"""One file per figure, table or theorem of the documents, and ours; a folder per document, in parts where it is large.

A module is named as its experiment (``altafini_fig2`` holds ``altafini-fig2``) and binds it to ``EXPERIMENT``; modules
without that line hold what several experiments share. The modules of experiments import rooms (``from separatrix import
matrices``), not torch, so that listing experiments stays fast.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from separatrix.core.names import resolve
from separatrix.lab.experiment.definition import Experiment


@functools.cache
def modules() -> dict[str, str]:
    """The module of every experiment by the name of the experiment, in alphabetical order.

    Cost: reading the files; nothing is imported.
    """
    here = Path(__file__).parent
    return {
        file.stem.replace("_", "-"): ".".join((__name__, *file.relative_to(here).with_suffix("").parts))
        for file in sorted(here.rglob("*.py"), key=lambda file: file.stem)
        if "\nEXPERIMENT = " in file.read_text(encoding="utf-8")
    }


def catalogue() -> dict[str, Experiment]:
    """Every experiment of the package by name, in alphabetical order. Imports them all."""
    return {name: find(name) for name in modules()}


def find(name: str) -> Experiment:
    """One experiment by name; an unknown name gets the nearest three. Imports the module of that name alone."""
    experiment: Experiment = importlib.import_module(resolve("experiment", name, modules())).EXPERIMENT
    return experiment
