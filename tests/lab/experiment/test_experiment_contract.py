"""What every experiment promises. A shipped one is found by its file; a stranger's is entered by one line."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pytest
from matplotlib.figure import Figure

from coin_experiment import COINS
from separatrix.experiments import catalogue
from separatrix.lab import SCALES, Cell, Experiment, Record, Summary, Verdict, load
from separatrix.lab.experiment.record import encode
from separatrix.report import draw_experiment
from separatrix.sources import documents, find_erratum

TOO_SMALL_TO_TELL = ("agarwala-fig1",)
"""Experiments of whose claims some need more than the sizes of these tests, and say so."""

STRANGERS = [COINS]
EXPERIMENTS = [*catalogue().values(), *STRANGERS]

COMPUTED: dict[str, dict[str, Any]] = {  # the others are run at their smallest scale by tests of their own
    "agarwala-fig1": {"width": 120, "n_scales": 4},
    "altafini-multihead": {"n_instances": 2, "heads": (2,)},
    "anguita-fig4-5": {},
    "attention-criterion": {"n_tokens": 8, "n_instances": 4, "n_betas": 21},
    "kerg3-prop3-4-1": {"sizes": (3, 6), "n_matrices": 20},
    **{stranger.name: {} for stranger in STRANGERS},
}

Computed: TypeAlias = tuple[Experiment, list[tuple[Cell, Any]], Summary]

pytestmark = pytest.mark.sampled(20, across="experiment")
every = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)


@every
def test_scales_are_settings_that_json_keeps(experiment: Experiment) -> None:
    for scale in SCALES:
        params = experiment.params(scale)
        assert params == experiment.scales[scale]
        written = json.loads(json.dumps(params.model_dump(mode="json"), allow_nan=False))
        assert type(params).model_validate(written) == params


@every
def test_cells_are_the_same_every_time_and_unlike_each_other(experiment: Experiment) -> None:
    for scale in SCALES:
        params = experiment.params(scale)
        expanded = list(experiment.expand(params))
        cells = experiment.cells(params)
        keys = [cell.key for cell in cells]
        assert len(keys) == len(set(keys)) == len(expanded) > 0
        assert keys == [cell.key for cell in experiment.cells(params)]
        assert [Cell.from_json(cell.to_json()) for cell in cells] == cells


@every
def test_another_seed_makes_other_cells_unless_nothing_is_drawn(experiment: Experiment) -> None:
    first, second = (
        {cell.key for cell in experiment.cells(experiment.params("smoke", seeds))} for seeds in ((0,), (1,))
    )
    shared = [cell for cell in experiment.cells(experiment.params("smoke", (0,))) if cell.key in first & second]
    assert all(cell.seed == 0 for cell in shared)  # a cell without a seed is computed once, whatever the seeds


@every
def test_the_entry_leads_back_to_the_experiment(experiment: Experiment) -> None:
    assert load(experiment.entry) is experiment


@every
def test_claims_name_a_known_place_and_belong_to_the_experiment(experiment: Experiment) -> None:
    for claim in experiment.claims:
        assert claim.document in (*documents(), "separatrix")
        assert all((claim.place, claim.statement, claim.measures, claim.test))
        assert claim.scale in SCALES
        assert claim.erratum is None or find_erratum(claim.erratum)


def test_claim_identifiers_are_unique_over_all_experiments() -> None:
    identifiers = [claim.id for experiment in EXPERIMENTS for claim in experiment.claims]
    assert sorted(identifiers) == sorted(set(identifiers))


@pytest.fixture(scope="module", params=COMPUTED)
def computed(request: pytest.FixtureRequest) -> Computed:
    """An experiment, its cells with their payloads as the store gives them back, and the summary."""
    experiment = next(experiment for experiment in EXPERIMENTS if experiment.name == request.param)
    cells = experiment.cells(experiment.params("smoke", **COMPUTED[request.param]))
    texts = [Record(cell, experiment.run(cell), {}).to_text() for cell in cells]
    results = [(record.cell, record.payload) for record in map(Record.from_text, texts)]
    return experiment, results, experiment.summarise(results)


def test_a_cell_has_the_same_record_every_time(computed: Computed) -> None:
    experiment, results, _ = computed
    cell, payload = results[0]
    assert encode(experiment.run(cell)) == encode(payload)


def test_a_summary_is_of_its_class_and_json_keeps_it(
    computed: Computed,
) -> None:
    experiment, _, summary = computed
    assert type(summary) is experiment.summary
    assert all(summary.tables.values())
    written = json.dumps(summary.to_dict(), allow_nan=False)
    read = experiment.summary.from_dict(json.loads(written))
    assert json.dumps(read.to_dict(), allow_nan=False) == written


def test_every_claim_is_judged_with_rows_and_evidence(
    computed: Computed,
) -> None:
    experiment, _, summary = computed
    assert experiment.claims
    for claim in experiment.claims:
        judgement = claim.judge(summary)
        assert judgement.evidence
        if (judgement.verdict is Verdict.NOT_RUN) and experiment.name in TOO_SMALL_TO_TELL:
            continue
        assert judgement.verdict is not Verdict.NOT_RUN
        assert judgement.rows


def test_figures_have_names_and_axes(computed: Computed) -> None:
    experiment, _, summary = computed
    figures = draw_experiment(experiment, summary)
    assert bool(figures) is (experiment.draw is not None)
    for name, figure in figures.items():
        assert name
        assert isinstance(figure, Figure)
        assert figure.axes
