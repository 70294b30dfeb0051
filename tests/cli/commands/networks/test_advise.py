from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from command_line import run_here
from separatrix.cli.commands.networks.advise import app

QUICK = ["deq", "--phi", "hardtanh", "--ensemble", "haar", "--width", "256", "--tol", "1e-5"]


def test_table_recommendation_and_limits_are_printed() -> None:
    result = CliRunner().invoke(app, QUICK)
    assert result.exit_code == 0
    assert "Recommended: haar at sqrt(V) =" in result.output
    assert "No theory is offered for LayerNorm" in result.output
    assert "…" not in result.output  # no column is cut in a narrow terminal


def test_json_is_one_object() -> None:
    result = CliRunner().invoke(app, [*QUICK, "--json"])
    assert json.loads(result.output)["forecasts"][0]["ensemble"] == "haar"


def test_picture_is_written(tmp_path: Path) -> None:
    target = tmp_path / "advice.svg"
    result = CliRunner().invoke(app, [*QUICK, "--figure", str(target)])
    assert result.exit_code == 0
    assert target.read_text().lstrip().startswith("<?xml")


def test_expected_errors_are_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["deq", "--phi", "tahn"], [*QUICK, "--figure", str(tmp_path / "advice.gif")]):
        answer = run_here(capsys, monkeypatch, "advise", *arguments)
        assert answer.code == 2
        assert len(answer.err.strip().splitlines()) == 1
