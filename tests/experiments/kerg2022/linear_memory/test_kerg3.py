from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.experiments import find
from separatrix.lab import Summary, Verdict

TABLE5, FIG1, BOUNDS = "kerg3-table5", "kerg3-fig1", "kerg3-prop3-4-1"


def summary_of(name: str, **changes: Any) -> Summary:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **changes))
    return experiment.summarise([(cell, experiment.run(cell)) for cell in cells])


@pytest.fixture(scope="module")
def summaries() -> dict[str, Any]:
    return {name: summary_of(name) for name in (TABLE5, FIG1, BOUNDS)}


def verdicts(name: str, summary: Summary) -> dict[str, Verdict]:
    return {claim.id: claim.judge(summary).verdict for claim in find(name).claims}


@pytest.mark.slow
def test_table_5_is_confirmed_without_and_corrected_with_a_diagonal(summaries: dict[str, Any]) -> None:
    assert verdicts(TABLE5, summaries[TABLE5]) == {
        "kerg2022-table5-nilpotent": Verdict.CONFIRMED,
        "kerg2022-table5-diagonal": Verdict.REFUTED,
        "kerg2022-table5-rounding": Verdict.CONFIRMED,
        "kerg2022-table5-order": Verdict.CONFIRMED,
        "kerg2022-table5-beta": Verdict.CONFIRMED,
        "kerg2022-table5-truncation": Verdict.CONFIRMED,
    }


def test_a_wrong_total_refutes_the_claim(summaries: dict[str, Any]) -> None:
    broken = summaries[TABLE5].model_copy(deep=True)
    broken.table("Total Fisher memory")[0]["total"] += 0.02
    assert verdicts(TABLE5, broken)["kerg2022-table5-nilpotent"] is Verdict.REFUTED


def test_table_5_at_another_size_is_not_judged_against_print() -> None:
    summary = summary_of(TABLE5, n_units=10, rows=(0, 6))
    found = verdicts(TABLE5, summary)
    assert found["kerg2022-table5-nilpotent"] is Verdict.NOT_RUN
    assert found["kerg2022-table5-diagonal"] is Verdict.NOT_RUN
    assert found["kerg2022-table5-order"] is Verdict.CONFIRMED


def test_figure_1_claims_follow_from_its_curves(summaries: dict[str, Any]) -> None:
    assert verdicts(FIG1, summaries[FIG1]) == {
        "kerg2022-ch3-fig1-growth": Verdict.CONFIRMED,
        "kerg2022-ch3-fig1-end": Verdict.CONFIRMED,
        "separatrix-ch3-fig1-sampling": Verdict.CONFIRMED,
        "kerg2022-ch3-fig1-normalisation": Verdict.MISPRINT,
        "kerg2022-ch3-fig1-most": Verdict.CONDITIONAL,
        "kerg2022-ch3-fig1-beyond": Verdict.CONFIRMED,
    }


TRANSIENTS = {  # exact root mean square of the norm at t = 10, 25, 50, 75, 90, 99, four digits
    (0.95, 0.0): (0.5680, 0.2402, 0.05441, 0.01067, 0.003127, 0.000623),
    (1.0, 0.0): (0.9487, 0.8660, 0.7071, 0.5, 0.3162, 0.1),
    (1.05, 0.0): (1.545, 2.933, 8.109, 19.42, 25.53, 12.52),
    (0.95, 0.005): (0.7061, 1.078, 0.6926, 0.0781, 0.00697, 0.000623),
    (1.0, 0.005): (1.145, 3.426, 7.698, 3.214, 0.6588, 0.1),
    (1.05, 0.005): (1.820, 10.34, 76.38, 110.8, 50.04, 12.52),
}


def test_transients_have_their_known_sizes(summaries: dict[str, Any]) -> None:
    rows = summaries[FIG1].transients
    for row in rows:
        found = [row["rms_norm"][t] for t in (10, 25, 50, 75, 90, 99)]
        assert found == pytest.approx(TRANSIENTS[row["alpha"], row["beta"]], rel=1e-3)  # three to four given digits
        assert row["rms_norm"][100] == 0
    peaks = {
        (row["alpha"], row["beta"]): row for row in summaries[FIG1].table("Exact root mean square of the norm, peak")
    }
    assert (peaks[1.05, 0.005]["step"], peaks[1.0, 0.005]["step"], peaks[1.05, 0.0]["step"]) == (68, 50, 90)
    assert peaks[1.05, 0.005]["peak"] == pytest.approx(119.4, abs=0.05)


def test_memory_curves_pass_through_their_known_points(summaries: dict[str, Any]) -> None:
    curves = {(row["alpha"], row["beta"], row["d"]): row["curve"] for row in summaries[FIG1].memory}
    lags = (0, 1, 50, 99, 100)
    assert [curves[1.0, 0.0, 0.0][k] for k in lags] == pytest.approx([1, 0.5, 0.019608, 0.01, 0], abs=1e-6)
    assert [curves[1.05, 0.0, 0.0][k] for k in lags] == pytest.approx([1, 0.52438, 0.093616, 0.092976, 0], abs=1e-5)


def test_bounds_hold_and_their_misprints_show(summaries: dict[str, Any]) -> None:
    assert verdicts(BOUNDS, summaries[BOUNDS]) == {
        "kerg2022-ch3-prop3-4-1": Verdict.MISPRINT,
        "kerg2022-ch3-eq-a-2-6": Verdict.MISPRINT,
        "separatrix-ch3-sharper-bound": Verdict.CONFIRMED,
        "kerg2022-ch3-amplification": Verdict.CONFIRMED,
        "kerg2022-ch3-delay-line-total": Verdict.MISPRINT,
        "kerg2022-ch3-delay-line-optimal": Verdict.CONDITIONAL,
    }


@pytest.mark.parametrize("name", [TABLE5, FIG1, BOUNDS])
def test_summaries_are_plain_and_can_be_drawn(name: str, summaries: dict[str, Any]) -> None:
    written = json.dumps(summaries[name].to_dict(), allow_nan=False)
    summary = find(name).summary.from_dict(json.loads(written))
    draw = find(name).draw
    assert draw is not None
    figures = draw(summary)
    assert figures
    assert all(isinstance(figure, Figure) and figure.axes for figure in figures.values())


@pytest.mark.parametrize("name", [TABLE5, FIG1, BOUNDS])
def test_running_a_cell_twice_gives_the_same_numbers(name: str) -> None:
    experiment = find(name)
    cell = experiment.cells(experiment.params("smoke"))[0]
    once, again = (experiment.summarise([(cell, experiment.run(cell))]) for _ in range(2))
    assert once == again


def test_listing_the_experiments_does_not_import_torch() -> None:
    code = "import sys; from separatrix.experiments.kerg2022.linear_memory import kerg3_fig1, kerg3_prop3_4_1"
    code += ", kerg3_table5; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
