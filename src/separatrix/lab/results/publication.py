"""A published result: one small JSON file per experiment, made from the records of a store and kept with the code.

A file says which version of the experiment it belongs to; when the code has moved on, readers see it marked stale.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from separatrix.core.disk import read_regular
from separatrix.core.errors import CorruptData, MissingData
from separatrix.core.names import suggest_options

from ..experiment.definition import Experiment


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Publication:
    """A published result."""

    experiment: str
    title: str
    document: str
    place: str
    version: int
    scale: str
    params: dict[str, Any]
    summary: dict[str, Any]
    claims: dict[str, Any]
    """By claim id: statement, verdict, evidence, rows, what is true instead, the digest of the rule that judged it
    (``rule``) and those under which its cells were computed (``rules_of_run``)."""
    n_records: int | None = None
    """How many records the run has; as many as ``records`` if not said."""
    records: dict[str, Any] = dataclasses.field(default_factory=dict)
    """By key of a cell: the digest of its record and a few of its numbers, from which others can check it. Of a run of
    very many records, of those with the smallest keys."""
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Every change of a verdict or of a rule since the file was first written: when, what, and why."""
    provenance: dict[str, Any]
    stale: bool
    """Whether the experiment's code has another version now. Known on reading, not written."""


def read_publication(path: Path, experiment: Experiment | None) -> Publication:
    """A published file, stale when the experiment is gone (``None``) or has another version.

    Raises:
        MissingData: there is no such file.
        CorruptData: it is not a published result.
    """
    path = Path(path)
    try:
        body = json.loads(read_regular(path))
        return Publication(**body, stale=experiment is None or experiment.version != body["version"])
    except FileNotFoundError:
        raise MissingData(f"there is no published result {path}; make it with separatrix publish.") from None
    except OSError as error:
        raise MissingData(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptData(f"{path} is not a published result ({type(error).__name__}: {error}).") from None


def read_publications(folder: Path, experiments: Mapping[str, Experiment]) -> list[Publication]:
    """Every published file of a folder, in alphabetical order."""
    return [read_publication(path, experiments.get(path.stem)) for path in sorted(folder.glob("*.json"))]
