"""Writing published results, from a store or by judging a published summary again under the present rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import separatrix
from separatrix.core.disk import why_not, write_text_whole
from separatrix.core.errors import CorruptData, MissingData, StoreError
from separatrix.core.result import plain

from ..campaign import ExperimentError, PlannedRun, RunReport, best_report, judgements_of
from ..experiment.claim import Claim, Judgement
from ..experiment.definition import Experiment
from ..experiment.rule import rule_digest
from ..experiment.scales import require_scale
from ..store.records import Store
from .fingerprints import MOST_RECORDS, fingerprint
from .history import with_history
from .publication import Publication, read_publication


def publish(
    experiments: Iterable[Experiment], store: Store, folder: Path, scale: str = "laptop", because: str = ""
) -> tuple[list[Path], list[str]]:
    """Write ``<name>.json`` for each experiment that has a complete run at the scale.

    Args:
        experiments: which.
        store: where their records are.
        folder: where the files go.
        scale: of the runs.
        because: why a published verdict or rule changes; it goes into the history of the file.

    Returns:
        The files written, and the names of experiments left out because no such run is complete.

    Raises:
        InvalidInput: a published verdict or rule would change and no reason is given; no file is written then.
        ExperimentError: the summary or a rule of an experiment failed; no file is written then.
    """
    require_scale(scale)
    texts, left_out = {}, []
    for experiment in experiments:
        report = best_report(experiment, store, scale)
        if report is None or report.summary is None:
            left_out.append(experiment.name)
        elif report.failures:
            raise ExperimentError(next(iter(report.failures.values())))
        else:
            path = folder / f"{experiment.name}.json"
            texts[path] = _text(with_history(_body(report, store), path, because))
    for path, text in texts.items():
        _write(path, text)
    return list(texts), left_out


def judge_again(experiments: Iterable[Experiment], folder: Path, because: str = "") -> list[Path]:
    """Judge the published summaries of a folder again by the present rules, without computing anything.

    The files then say that the rule is younger than the run. Experiments without a file are passed over.

    Returns:
        The files that changed.

    Raises:
        InvalidInput: a verdict or rule would change and no reason is given; no file is written then.
        MissingData: a file belongs to another version of its experiment, which only a new run can replace.
    """
    texts = {}
    for experiment in experiments:
        path = folder / f"{experiment.name}.json"
        if path.exists():
            before = path.read_text(encoding="utf-8")
            after = _text(with_history(_judged_body(experiment, path), path, because))
            if after != before:
                texts[path] = after
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def _judged_body(experiment: Experiment, path: Path) -> dict[str, Any]:
    published = read_publication(path, experiment)
    if published.stale:
        raise MissingData(f"{path} was made by another version of {experiment.name}; run it and publish again.")
    return {
        **{name: value for name, value in vars(published).items() if name != "stale" and value is not None},
        "title": experiment.title,
        "document": experiment.document,
        "place": experiment.place,
        "claims": judged_claims(experiment, published),
    }


def judged_claims(experiment: Experiment, published: Publication) -> dict[str, Any]:
    """The claims of a published result as the present rules judge its summary.

    Raises:
        CorruptData: the summary is not one of this experiment.
        ExperimentError: a rule failed on it.
    """
    try:
        summary = experiment.summary.from_dict(published.summary)
    except (TypeError, ValueError, KeyError) as error:
        raise CorruptData(
            f"the published summary is none of {experiment.name} ({type(error).__name__}: {error})."
        ) from None
    judgements = judgements_of(experiment, published.scale, summary)
    return _claims(experiment, judgements, published.provenance.get("rules", {}))


def _body(report: RunReport, store: Store) -> dict[str, Any]:
    """A complete run as plain values; floats in full, so that they read back exactly."""
    experiment = report.experiment
    assert report.summary is not None
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "document": experiment.document,
        "place": experiment.place,
        "version": experiment.version,
        "scale": report.scale,
        "params": report.params.model_dump(mode="json"),
        "summary": report.summary.to_dict(),
        "claims": _claims(experiment, report.judgements, report.provenance["rules"]),
        "n_records": len(report.cells),
        "records": _fingerprints(report, store),
        "history": [],
        "provenance": {
            "package_version": separatrix.__version__,
            **plain(dict(report.provenance)),
            "command": report.command,
        },
    }


def _fingerprints(report: RunReport, store: Store) -> dict[str, Any]:
    """Of the records of a run, in the order of its cells; of a very large run, of those that are chosen by their keys.

    Raises:
        StoreError: one of them was lost or damaged while they were read.
    """
    keys = PlannedRun(report.experiment, report.params, report.scale, store).keys
    chosen = keys.listed() if len(keys) <= MOST_RECORDS else keys.smallest(MOST_RECORDS)
    found = {key: fingerprint(record) for key in chosen if (record := store.read(key)) is not None}
    if len(found) < len(chosen):
        raise StoreError(
            f"{len(chosen) - len(found)} records of {report.experiment.name} are lost or damaged; compute them again "
            f"with: {report.command}"
        )
    return found


def _claims(
    experiment: Experiment, judgements: Mapping[str, Judgement], rules: Mapping[str, list[str]]
) -> dict[str, Any]:
    return {
        claim.id: _judged(claim, judgements[claim.id], rules) for claim in experiment.claims if claim.id in judgements
    }


def _judged(claim: Claim, judgement: Judgement, rules: Mapping[str, list[str]]) -> dict[str, Any]:
    return {
        "statement": claim.statement,
        **plain(judgement),
        "rule": rule_digest(claim),
        "rules_of_run": list(rules.get(claim.id, [])),
    }


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_whole(path, text)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {why_not(error)}.") from error
