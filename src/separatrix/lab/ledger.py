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
from .experiment.rule import rule_digest
from .results.publication import Publication, read_publication
from .results.reports import published_judgement
from .results.shipped import shipped_results
from .results.verification import rule_standing
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

    published: Publication | None = None
    """The published result that holds a verdict on the claim, whether or not a run of one's own does."""

    @property
    def is_own(self) -> bool:
        """Whether the judgement follows from records of the store, not from a published file."""
        return self.run is not None

    @property
    def failed(self) -> bool:
        """Whether the rule of the claim failed on complete records; the evidence then says how."""
        return self.run is not None and self.claim.id in self.run.failures

    @property
    def standing(self) -> str:
        """How the rule stands to the run that was judged, in words; nothing if none was."""
        if self.run is not None:
            rules = self.run.provenance.get("rules", {}).get(self.claim.id, [])
            return rule_standing({"rule": rule_digest(self.claim), "rules_of_run": rules})
        return rule_standing(self.published.claims[self.claim.id]) if self.published is not None else ""

    @property
    def scale(self) -> str | None:
        """Scale of the run that was judged."""
        judged = self.run or self.published
        return judged.scale if judged is not None else None

    @property
    def date(self) -> str | None:
        """Day on which the last cell that was judged was computed."""
        judged = self.run or self.published
        last = judged.provenance.get("last") if judged is not None else None
        return str(last)[:10] if last else None

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
            "date": self.date,
            "own": self.is_own,
            "published": self.published.claims[claim.id]["verdict"] if self.published is not None else None,
            "rule": self.standing,
            **plain(self.judgement),
        }


def ledger(
    experiments: Iterable[Experiment],
    store: Store | None,
    known: Mapping[str, RunReport | None] | None = None,
    published: Mapping[str, Publication] | None = None,
) -> list[LedgerEntry]:
    """Every claim of the experiments, judged from the records of the largest complete run.

    Args:
        experiments: whose claims.
        store: where the records are; ``None`` if nothing was ever run.
        known: reports of the largest complete runs that were made before, by name of the experiment.
        published: published results by name of the experiment; they speak where no run of the store does.

    Raises:
        ExperimentError: an experiment's summary failed on complete records; a rule that did is ``failed``.
    """
    entries, reports = [], dict(known or {})
    for experiment in experiments:
        if experiment.name not in reports and store is not None and experiment.claims:
            reports[experiment.name] = best_report(experiment, store)
        report, publication = reports.get(experiment.name), (published or {}).get(experiment.name)
        entries += [_entry(experiment, claim, report, publication) for claim in experiment.claims]
    return entries


def shipped_publications(experiments: Mapping[str, Experiment]) -> dict[str, Publication]:
    """The results that come with the package, by experiment; those of another version of an experiment are left out.

    Cost: reading the files of these experiments alone.
    """
    folder = shipped_results()
    paths = [path for path in sorted(folder.glob("*.json")) if path.stem in experiments] if folder is not None else []
    found = (read_publication(path, experiments[path.stem]) for path in paths)
    return {publication.experiment: publication for publication in found if not publication.stale}


def _entry(
    experiment: Experiment, claim: Claim, report: RunReport | None, publication: Publication | None
) -> LedgerEntry:
    speaks = publication if publication is not None and claim.id in publication.claims else None
    judgement = report.judgement_of(claim) if report is not None else None
    if judgement is not None:
        return LedgerEntry(claim, judgement, experiment, report, speaks)
    if speaks is not None:
        return LedgerEntry(claim, published_judgement(speaks.claims[claim.id]), experiment, None, speaks)
    needed = f"needs separatrix run {experiment.typed_name} --scale {claim.scale}"
    return LedgerEntry(claim, Judgement(Verdict.NOT_RUN, needed), experiment)
