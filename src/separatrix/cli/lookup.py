"""From the names people type to experiments, documents and stores; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.core.errors import MissingData
from separatrix.lab.experiment.scales import SCALES

if TYPE_CHECKING:
    from separatrix.lab.experiment.definition import Experiment
    from separatrix.lab.store.records import Store


def find_experiment(name: str) -> Experiment:
    """One experiment of the package by name, or of any importable module as ``module:name``."""
    from separatrix.experiments import find
    from separatrix.lab.experiment.definition import load

    return load(name) if ":" in name else find(name)


def find_experiments(names: Sequence[str] | None) -> list[Experiment]:
    """The named experiments, or all of the package if none is named."""
    from separatrix.experiments import catalogue

    return [find_experiment(name) for name in names] if names else list(catalogue().values())


@contextmanager
def reading(folder: Path | None) -> Iterator[Store | None]:
    """The store of a command that only reads, which changes nothing in it; none if nothing was ever run.

    Raises:
        MissingData: a folder was named and there is no store: it was misspelt.
    """
    from separatrix.lab.store.records import Store

    if not Store.exists(folder):
        if folder is not None:
            raise MissingData(f"there is no store in {folder}; name a folder that separatrix run has made.")
        yield None
        return
    with Store(folder, read_only=True) as store:
        yield store


def complete_experiment(incomplete: str) -> list[str]:
    """Names for the shell."""
    from separatrix.experiments import modules

    return [name for name in modules() if name.startswith(incomplete)]


def complete_document(incomplete: str) -> list[str]:
    """Document keys for the shell."""
    from separatrix.sources.catalogue import documents

    return [key for key in documents() if key.startswith(incomplete)]


def complete_scale(incomplete: str) -> list[str]:
    """Scales for the shell."""
    return [name for name in SCALES if name.startswith(incomplete)]
