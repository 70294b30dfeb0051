from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import separatrix
from separatrix.diagnose.findings.evidence import FILE, as_toml, evidence, paired_runs
from separatrix.experiments.ours.advice.pairs import PAIRS, WITHOUT
from separatrix.experiments.ours.check_advice import TABLE

RESULT = Path(__file__).parents[3] / "results" / "check-advice.json"


def test_evidence_is_what_the_experiment_published() -> None:
    published = json.loads(RESULT.read_text())
    assert FILE.read_text() == as_toml(published["summary"]["tables"][TABLE], published["version"])


def _accusations() -> set[str]:
    """Names that detectors give to faults and warnings, as their source has them."""
    here = Path(separatrix.__file__).parent / "diagnose" / "detectors"
    text = "\n".join(file.read_text() for file in here.rglob("*.py"))
    return set(re.findall(r'(?:Finding|judged)\(\s*"(\w+)",\s*(?:"fault"|"warning"|severity)', text))


def test_every_accusation_has_a_pair_or_a_reason_for_having_none() -> None:
    named = _accusations()
    assert len(named) > 25
    assert {pair.finding for pair in PAIRS.values()} | set(WITHOUT) >= named
    assert {row.pair for row in paired_runs()} == set(PAIRS)


def test_advice_without_gain_says_so() -> None:
    assert "no gain shown" in evidence("softmax_axis")
    assert "did harm" in evidence("time_growth")


def test_the_optimiser_at_hand_chooses_the_pair() -> None:
    assert evidence("vanishing", "SGD").endswith("SGD")
    assert evidence("vanishing", "AdamW").endswith("Adam")
    assert evidence("dead_units", "RMSprop") == evidence("dead_units")


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_findings_carry_their_evidence(kind: type[torch.optim.Optimizer]) -> None:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(-1))
    optimizer = kind(model.parameters(), lr=1e-3)  # type: ignore[call-arg]
    found = separatrix.check(
        model, torch.randn(24, 6), loss="cross_entropy", target=torch.randint(0, 3, (24,)), optimizer=optimizer
    ).find("output_loss_mismatch")
    assert found is not None
    assert "our tests, " in found.evidence
    assert "certain is the floor" in found.evidence
    assert found.to_dict()["advice"]["evidence"] == found.evidence
