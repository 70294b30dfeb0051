from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from attention_models import bert_state
from separatrix.cli.commands.networks.diagnose import app
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


def test_weights_of_one_layer_alone_have_a_name_too(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    state = nn.MultiheadAttention(8, 2).state_dict()
    save_file({name: value.contiguous() for name, value in state.items()}, path)
    words = ["attention", str(path), "--n-heads", "2", "--n-tokens", "4", "--t-max", "20", "--control"]
    result = runner.invoke(app, words)
    assert "\nthe layer: this layer, iterated" in result.stdout
    assert "the layer (redrawn)" in result.stdout


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


@pytest.fixture
def gru(tmp_path: Path) -> str:
    path = tmp_path / "gru.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(nn.GRU(2, 4).state_dict(), path)
    return str(path)


def test_a_recurrent_file_is_looked_into(gru: str) -> None:
    result = runner.invoke(app, ["recurrent", gru, "--inputs", "zeros", "--n-exponents", "1"])
    assert result.exit_code == 0, result.output
    assert "Not judged by its recurrent matrices" in result.stdout
    assert "exponent" in result.stdout
    found = json.loads(runner.invoke(app, ["recurrent", gru, "--json"]).stdout)
    assert [block["gate"] for block in found["layers"][0]["blocks"]] == ["r", "z", "n"]
    with pytest.raises(InvalidInput, match="--inputs must be zeros"):
        runner.invoke(app, ["recurrent", gru, "--inputs", "noise"], catch_exceptions=False)


def test_fixed_points_of_a_file_are_found_and_drawn(gru: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["fixed-points", gru, "-o", str(tmp_path / "points.png")])
    assert result.exit_code == 0, result.output
    assert "1 fixed point, 1 stable" in result.stdout
    assert (tmp_path / "points.png").stat().st_size > 0
    found = json.loads(runner.invoke(app, ["fixed-points", gru, "--json"]).stdout)
    assert found["stable"] == [True]
