from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from command_line import run_here

ARCH = """
from torch import nn
def fine():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
def doubled():
    return nn.Sequential(*fine(), nn.Softmax(-1))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    (tmp_path / "my_models.py").write_text(ARCH)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    draw = numpy.random.default_rng(0)
    numpy.savez(tmp_path / "batch.npz", x=draw.normal(size=(32, 8)), target=draw.integers(0, 3, 32))
    return tmp_path


@pytest.fixture
def check(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The command, called in a folder with weights, code and a batch."""
    monkeypatch.chdir(folder)

    def called(*words: str) -> tuple[int, str, str]:
        answer = run_here(capsys, monkeypatch, "check", *words)
        return answer.code, answer.out, answer.err

    return called


Check = Callable[..., tuple[int, str, str]]


def test_a_checkpoint_with_its_code_and_a_batch(folder: Path, check: Check) -> None:
    run = ("w.safetensors", "--arch", "my_models:fine", "--sample", "batch.npz", "--loss", "cross_entropy")
    code, out, _ = check(*run, "--html", "report.html")
    assert code == 0
    assert "no fault, no warning" in out
    assert "<svg" in (folder / "report.html").read_text()
    code, out, _ = check(*run[:2], "my_models:doubled", *run[3:], "--json")
    assert code == 2
    assert json.loads(out)["findings"][0]["id"] == "output_loss_mismatch"


def test_weights_alone(folder: Path, check: Check) -> None:
    code, out, _ = check("w.safetensors")
    assert code == 0
    assert "iid" in out
    save_file({"a": torch.full((3, 3), torch.nan)}, folder / "bad.safetensors")
    assert check("bad.safetensors")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.safetensors",), "there is no file"),
        (("w.safetensors", "--arch", "my_models:fine"), "--sample is needed"),
        (("w.safetensors", "--arch", "nowhere:fine", "--sample", "batch.npz"), "cannot be imported"),
        (("w.safetensors", "--arch", "my_models", "--sample", "batch.npz"), "must be MODULE:FUNCTION"),
        ((".",), "no Hugging Face folder"),
    ],
)
def test_what_could_not_run_is_one_sentence_and_status_3(check: Check, words: tuple[str, ...], said: str) -> None:
    code, out, err = check(*words)
    assert (code, out) == (3, "")
    assert said in err
    assert err.count("\n") == 1
