from __future__ import annotations

from typing import Any

import pytest

from separatrix.core import DatasetUnavailable
from separatrix.experiments.ours.attention_frozen_layers import EXPERIMENT, Measured
from separatrix.lab.experiment.claim import Verdict


@pytest.fixture(scope="module")
def summary() -> Any:
    cells = EXPERIMENT.cells(EXPERIMENT.params("smoke"))
    return EXPERIMENT.summarise([(cell, EXPERIMENT.run(cell)) for cell in cells])


def claim(name: str) -> Any:
    return next(item for item in EXPERIMENT.claims if item.id == name)


def test_generated_layers_need_no_data_and_confirm_what_holds_for_every_layer(summary: Any) -> None:
    assert summary.source == "generated"
    assert claim("separatrix-frozen-agreement").judge(summary).verdict is Verdict.CONFIRMED
    smoke = [item.id for item in EXPERIMENT.claims if item.scale == "smoke"]
    assert smoke == ["separatrix-frozen-agreement"]
    assert set(EXPERIMENT.draw(summary)) == {"spectra", "ends"}  # type: ignore[misc]


def test_an_end_off_the_eigenvector_refutes_and_a_complex_pair_sets_a_condition(summary: Any) -> None:
    spectrum = {"seed": 0, "control": False, "asymmetry": 0.9}
    end = {"seed": 0, "control": False, "groups": "8", "stable": True}
    made = Measured(
        source="made up",
        heads=[],
        spectra=[{**spectrum, "layer": i, "imaginary part": imaginary} for i, imaginary in enumerate((0.0, 0.4))],
        ends=[
            {**end, "layer": 0, "kind": "consensus", "alignment": 1.0},
            {**end, "layer": 1, "kind": "clustering", "alignment": 0.1, "groups": "5/3"},
        ],
    )
    judge = claim("separatrix-frozen-consensus").judge
    assert judge(made).verdict is Verdict.CONDITIONAL
    made.ends[0]["alignment"] = 0.9
    assert judge(made).verdict is Verdict.REFUTED
    assert claim("separatrix-minilm-asymmetry").judge(made).verdict is Verdict.CONFIRMED


def test_missing_weights_are_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cell = EXPERIMENT.cells(EXPERIMENT.params("laptop"))[0]
    with pytest.raises(DatasetUnavailable, match="minilm-l6-attention"):
        EXPERIMENT.run(cell)
