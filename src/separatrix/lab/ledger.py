"""The claim ledger: each claim, what was measured, and the verdict that follows from stored records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, final

from separatrix.core.names import suggest_options
from separatrix.core.result import plain

from .campaign import RunReport, best_report
from .experiment.claim import Claim, Judgement, Verdict
from .experiment.definition import Experiment
from .store.records import Store


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """One claim of an experiment, the judgement on it, and the run from which that judgement follows."""

    claim: Claim
    judgement: Judgement
    experiment: Experiment
    run: RunReport | None = None
    """The run that was judged; ``None`` when no run could be."""

    @property
    def scale(self) -> str | None:
        """Scale of the run that was judged."""
        return self.run.scale if self.run is not None else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, flat: claim, name of the experiment, scale, and the verdict by its label."""
        claim = self.claim
        return {
            "id": claim.id,
            "document": claim.document,
            "place": claim.place,
            "statement": claim.statement,
            "measures": claim.measures,
            "test": claim.test,
            "erratum": claim.erratum,
            "experiment": self.experiment.name,
            "scale": self.scale,
            **plain(self.judgement),
        }


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
    if judgement is not None:
        return LedgerEntry(claim, judgement, experiment, report)
    needed = f"needs separatrix run {experiment.typed_name} --scale {claim.scale}"
    return LedgerEntry(claim, Judgement(Verdict.NOT_RUN, needed), experiment)
