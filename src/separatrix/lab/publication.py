"""Published results: one small JSON file per experiment, made from the records of a store and kept with the code.

A file says which version of the experiment it belongs to; when the code has moved on, readers see it marked stale.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

import separatrix
from separatrix.core.errors import CorruptData, MissingData, StoreError
from separatrix.core.names import suggest_options
from separatrix.core.result import plain

from .campaign import RunReport, best_report
from .experiment.claim import Judgement
from .experiment.definition import Experiment
from .experiment.scales import require_scale
from .store.records import Store


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
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
    """By claim id: statement, verdict, evidence and rows."""
    provenance: dict[str, Any]
    stale: bool
    """Whether the experiment's code has another version now. Known on reading, not written."""


def publish(
    experiments: Iterable[Experiment], store: Store, folder: Path, scale: str = "laptop"
) -> tuple[list[Path], list[str]]:
    """Write ``<name>.json`` for each experiment that has a complete run at the scale.

    Returns:
        The files written, and the names of experiments left out because no such run is complete.
    """
    require_scale(scale)
    written, left_out = [], []
    for experiment in experiments:
        report = best_report(experiment, store, scale)
        if report is None or report.summary is None:
            left_out.append(experiment.name)
        else:
            written.append(_write(report, folder))
    return written, left_out


def published_text(report: RunReport) -> str:
    """A complete run as the text of its file; floats in full, so that they read back exactly."""
    experiment = report.experiment
    body = {
        "experiment": experiment.name,
        "title": experiment.title,
        "document": experiment.document,
        "place": experiment.place,
        "version": experiment.version,
        "scale": report.scale,
        "params": report.params.model_dump(mode="json"),
        "summary": report.summary.to_dict() if report.summary is not None else None,
        "claims": {
            claim.id: {"statement": claim.statement, **_judged(report.judgements[claim.id])}
            for claim in experiment.claims
            if claim.id in report.judgements
        },
        "provenance": {
            "package_version": separatrix.__version__,
            **plain(dict(report.provenance)),
            "command": report.command,
        },
    }
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_publication(path: Path, experiment: Experiment | None) -> Publication:
    """A published file, stale when the experiment is gone (``None``) or has another version.

    Raises:
        MissingData: there is no such file.
        CorruptData: it is not a published result.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return Publication(**body, stale=experiment is None or experiment.version != body["version"])
    except FileNotFoundError:
        raise MissingData(f"there is no published result {path}; make it with separatrix publish.") from None
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData(f"{path} is not a published result ({type(error).__name__}: {error}).") from None


def read_publications(folder: Path, experiments: Mapping[str, Experiment]) -> list[Publication]:
    """Every published file of a folder, in alphabetical order."""
    return [read_publication(path, experiments.get(path.stem)) for path in sorted(folder.glob("*.json"))]


def _judged(judgement: Judgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict.label,
        "evidence": judgement.evidence,
        "rows": [plain(row) for row in judgement.rows],
    }


def _write(report: RunReport, folder: Path) -> Path:
    path = folder / f"{report.experiment.name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(published_text(report), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}.") from error
    return path
