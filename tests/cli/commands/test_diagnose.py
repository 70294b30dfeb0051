from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file
from typer.testing import CliRunner

from attention_models import bert_state
from separatrix.cli.commands.diagnose import app
from separatrix.core import InvalidInput, MissingData

runner = CliRunner()


@pytest.fixture
def weights(tmp_path: Path) -> str:
    path = tmp_path / "model.safetensors"
    save_file(bert_state(6), path)
    return str(path)


def test_answer_for_people_ends_in_a_verdict_for_each_layer(weights: str) -> None:
    result = runner.invoke(app, ["attention", weights, "--n-heads", "2", "--n-tokens", "4", "--t-max", "20"])
    assert result.exit_code == 0, result.output
    assert "Spectra" in result.stdout
    assert "encoder.layer.0.attention: this layer, iterated" in result.stdout
    assert "not measured: no texts" in result.stdout


def test_json_holds_the_same_tables(weights: str) -> None:
    words = ["attention", weights, "--n-heads", "2", "--n-tokens", "4", "--t-max", "20", "--json"]
    found = json.loads(runner.invoke(app, words).stdout)
    assert set(found) == {"verdicts", "tables", "skipped", "not_measured"}
    assert found["tables"]["Heads"][0]["heads"] == 2
    assert found["tables"]["Frozen layers"][0]["start"] == "random tokens"


def test_unknown_heads_and_files_are_one_sentence(weights: str) -> None:
    with pytest.raises(InvalidInput, match="n_heads must be given"):
        runner.invoke(app, ["attention", weights], catch_exceptions=False)
    with pytest.raises(MissingData, match="there is no file"):
        runner.invoke(app, ["attention", weights + "x"], catch_exceptions=False)
