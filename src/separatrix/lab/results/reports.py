"""A published result as the report of a run, so that pages and figures can be made without computing anything."""

from __future__ import annotations

from typing import Any

from separatrix.core.errors import CorruptData

from ..campaign import RunReport
from ..experiment.claim import Judgement, Row, Verdict
from ..experiment.definition import Experiment
from .publication import Publication


def published_report(publication: Publication, experiment: Experiment) -> RunReport:
    """What the run gave from which a result was published; its verdicts are the published ones.

    Raises:
        CorruptData: parameters, summary or verdicts are not those of this experiment.

    Cost: expanding the parameters into cells; nothing is run.
    """
    try:
        params = experiment.params(_scale(publication, experiment), **publication.params)
        cells = experiment.cells(params)
        summary = experiment.summary.from_dict(publication.summary)
        judgements = {name: published_judgement(judged) for name, judged in publication.claims.items()}
    except (TypeError, ValueError, KeyError) as error:
        raise CorruptData(
            f"the published result of {experiment.name} is not one of this version ({type(error).__name__}: {error})."
        ) from None
    facts = publication.provenance
    return RunReport(
        experiment=experiment,
        scale=publication.scale,
        params=params,
        cells=cells,
        n_done=len(cells),
        summary=summary,
        judgements=judgements,
        seconds=float(facts.get("seconds", 0.0)),
        provenance={name: value for name, value in facts.items() if name != "command"},
        command=str(facts.get("command", f"separatrix run {experiment.name} --scale {publication.scale}")),
        failures={},
    )


def published_judgement(judged: dict[str, Any]) -> Judgement:
    """A verdict as a published file holds it."""
    rows = tuple(Row(**row) for row in judged["rows"])
    return Judgement(Verdict(judged["verdict"]), judged["evidence"], rows, judged.get("truth", ""))


def _scale(publication: Publication, experiment: Experiment) -> str:
    """The scale of that name, or any of the experiment's: all parameters are given by the file."""
    return publication.scale if publication.scale in experiment.scales else next(iter(experiment.scales))
