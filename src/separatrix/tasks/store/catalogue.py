"""The data sets and weights this package knows, by name. Loaders turn them into arrays; here are only the facts.

The facts themselves stand in ``datasets.toml`` beside this file.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

from separatrix.core.names import resolve

from .registry import DataFile, Dataset, Mirror


@functools.cache
def _registry() -> dict[str, Dataset]:
    text = resources.files(__package__).joinpath("datasets.toml").read_text(encoding="utf-8")
    return {name: _dataset(name, facts) for name, facts in tomllib.loads(text).items()}


def _dataset(name: str, facts: dict[str, Any]) -> Dataset:
    return Dataset(name=name, **{**facts, "files": tuple(_data_file(file) for file in facts["files"])})


def _data_file(facts: dict[str, Any]) -> DataFile:
    return DataFile(**{**facts, "mirrors": tuple(Mirror(**mirror) for mirror in facts.get("mirrors", ()))})


def datasets() -> dict[str, Dataset]:
    """Every known data set by name."""
    return dict(_registry())


def find_dataset(name: str | Dataset) -> Dataset:
    """One data set by name (an unknown one gets the nearest three); a data set is itself."""
    return resolve("data set", name, _registry(), base=Dataset)
