from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import separatrix
from separatrix.core import InvalidInput
from separatrix.diagnose import Diagnosis, FaultFound


@pytest.fixture(scope="module")
def faulty() -> Diagnosis:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1))
    return separatrix.check(model, torch.randn(16, 6), loss="cross_entropy", target=torch.randint(0, 3, (16,)))


def test_the_json_form_has_the_fields_of_its_schema(faulty: Diagnosis) -> None:
    content = json.loads(faulty.to_json())
    schema = json.loads((Path(separatrix.__file__).parent / "diagnose/findings/schema.json").read_text())
    assert content["schema"] == schema["properties"]["schema"]["const"]
    assert set(schema["required"]) <= set(content)
    for finding in content["findings"]:
        assert set(schema["properties"]["findings"]["items"]["required"]) <= set(finding)
        assert finding["severity"] in ("ok", "note", "warning", "fault")
        assert finding["uncertainty"]["kind"] in ("exact", "se", "null", "none")
    assert content["verdict"] == "fault"


def test_every_finding_has_the_names_of_the_contract(faulty: Diagnosis) -> None:
    found = faulty.findings[0]
    assert (found.id, found.severity) == ("output_loss_mismatch", "fault")
    assert str(found.where) == "output"
    assert found.value == pytest.approx(0.5514, abs=1e-4)  # ln(e + 2) - 1
    assert "softmax" in found.meaning
    assert "Remove the last softmax" in found.advice


def test_truth_is_refused_and_raising_is_by_severity(faulty: Diagnosis) -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(faulty)
    with pytest.raises(FaultFound, match="output_loss_mismatch at output") as caught:
        faulty.raise_if("fault")
    assert caught.value.diagnosis is faulty
    with pytest.raises(InvalidInput, match="severity must be"):
        faulty.raise_if("bad")
    fine = separatrix.check(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(16, 6))
    assert fine.raise_if("warning") is fine
    assert (fine.exit_status, faulty.exit_status) == (0, 2)


@pytest.mark.parametrize("ending", [".json", ".txt", ".html", ".pdf"])
def test_it_is_written_in_every_form(ending: str, faulty: Diagnosis, tmp_path: Path) -> None:
    path = faulty.save(tmp_path / f"report{ending}")
    content = path.read_bytes()
    if ending == ".pdf":
        assert content.startswith(b"%PDF")
    else:
        assert b"output_loss_mismatch" in content
    if ending == ".html":
        assert b"<svg" in content
        assert b'src="http' not in content
        assert b'href="http' not in content


def test_another_ending_is_refused(faulty: Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="ending of path"):
        faulty.save(tmp_path / "report.exe")


def test_a_notebook_shows_it_escaped(faulty: Diagnosis) -> None:
    class Script(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("<script>alert(1)</script>")

    shown = separatrix.check(Script(), torch.randn(4, 3))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
