"""The claim ledger: each claim, what was measured, and the verdict that follows from stored records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, final

from separatrix.core.result import plain

from .campaign import RunReport, best_report
from .experiment.claim import Claim, Row, Verdict
from .experiment.definition import Experiment
from .store.records import Store


@final
@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """One claim with its verdict, and the rows of measured and expected numbers behind it."""

    id: str
    document: str
    place: str
    statement: str
    measures: str
    test: str
    erratum: str | None
    experiment: str
    """Name of the experiment that measures it."""
    scale: str | None
    """Scale of the run that was judged; ``None`` when no run could be."""
    verdict: Verdict
    evidence: str
    rows: tuple[Row, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the verdict by its label."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def ledger(
    experiments: Iterable[Experiment], store: Store | None, known: Mapping[str, RunReport | None] | None = None
) -> list[LedgerEntry]:
    """Every claim of the experiments, judged from the records of the largest complete run.

    Args:
        experiments: whose claims.
        store: where the records are; ``None`` if nothing was ever run.
        known: reports of the largest complete runs that were made before, by name of the experiment.

    Raises:
        ExperimentError: an experiment's own code failed on complete records.
    """
    entries, reports = [], dict(known or {})
    for experiment in experiments:
        if experiment.name not in reports and store is not None and experiment.claims:
            reports[experiment.name] = best_report(experiment, store)
        report = reports.get(experiment.name)
        entries += [_entry(experiment, claim, report) for claim in experiment.claims]
    return entries


def _entry(experiment: Experiment, claim: Claim, report: RunReport | None) -> LedgerEntry:
    judgement = report.judgements.get(claim.id) if report is not None else None
    if judgement is not None and report is not None:
        scale, verdict, evidence, rows = report.scale, judgement.verdict, judgement.evidence, judgement.rows
    else:
        scale, verdict, rows = None, Verdict.NOT_RUN, ()
        evidence = f"needs separatrix run {experiment.typed_name} --scale {claim.scale}"
    return LedgerEntry(
        id=claim.id,
        document=claim.document,
        place=claim.place,
        statement=claim.statement,
        measures=claim.measures,
        test=claim.test,
        erratum=claim.erratum,
        experiment=experiment.name,
        scale=scale,
        verdict=verdict,
        evidence=evidence,
        rows=rows,
    )
