"""The data sets and weights this package knows, by name. Loaders turn them into arrays; here are only the facts.

The facts themselves stand in ``datasets.toml`` beside this file.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve

from .registry import DataFile, Dataset, Mirror

_OTHERS: dict[str, Dataset] = {}
"""Registered from outside the package."""


@functools.cache
def _registry() -> dict[str, Dataset]:
    text = resources.files(__package__).joinpath("datasets.toml").read_text(encoding="utf-8")
    return {name: _dataset(name, facts) for name, facts in tomllib.loads(text).items()}


def _dataset(name: str, facts: dict[str, Any]) -> Dataset:
    return Dataset(name=name, **{**facts, "files": tuple(_data_file(file) for file in facts["files"])})


def _data_file(facts: dict[str, Any]) -> DataFile:
    return DataFile(**{**facts, "mirrors": tuple(Mirror(**mirror) for mirror in facts.get("mirrors", ()))})


def datasets() -> dict[str, Dataset]:
    """Every known data set by name: those of this package, then those registered from outside."""
    return {**_registry(), **_OTHERS}


def find_dataset(given: object) -> Dataset:
    """The data set of a name, or the one that was given, as it is; an unknown name gets the nearest three."""
    return resolve("data set", given, {} if isinstance(given, Dataset) else datasets(), base=Dataset)


def register_dataset(dataset: Dataset) -> Dataset:
    """Make a data set of your own known by its name, in this process.

    Registering the same facts again changes nothing, so that a notebook's cell can be run twice.

    Raises:
        InvalidInput: the name is taken by another data set.

    Example:
        >>> file = DataFile("text/play.txt", "all", 3, "a" * 64)
        >>> mine = register_dataset(Dataset("play", "a play", "1", "public domain", "Anonymous.", (file,)))
        >>> find_dataset("play") is mine
        True
    """
    taken = datasets().get(dataset.name)
    if taken is not None and taken != dataset:
        raise InvalidInput(f"the name {dataset.name!r} is taken by another data set, {taken.title!r}; choose another.")
    if taken is None:
        _OTHERS[dataset.name] = dataset
    return taken or dataset
