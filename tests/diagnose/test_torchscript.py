"""TorchScript archives are read as data: the same tensors, and nothing of the file is run."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import recurrent
from separatrix.diagnose.torchscript import is_torchscript, read_torchscript
from separatrix.diagnose.weight_files import read_weights


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2)
        self.narrow = nn.Parameter(torch.arange(6.0).reshape(2, 3).half())
        self.register_buffer("count", torch.tensor(7))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its own writer deprecated; people's files remain
        torch.jit.save(torch.jit.script(Reader()), str(tmp_path / "model.pt"))
    return tmp_path / "model.pt"


def test_tensors_are_those_of_the_module(archive: Path) -> None:
    assert is_torchscript(archive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = torch.jit.load(str(archive)).state_dict()
    found = read_weights(archive)
    assert set(state) <= set(found)
    assert all(torch.equal(found[name], value) for name, value in state.items())
    assert found["narrow"].dtype == torch.float16


def test_a_recurrent_network_in_an_archive_is_looked_at(archive: Path) -> None:
    report = recurrent(archive)
    assert [layer.kind for layer in report.layers] == ["LSTM", "LSTM"]
    assert "Not judged by its recurrent matrices" in report.verdicts[0]


class Harm:
    """What a hostile file would hold."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_a_hostile_archive_is_refused_and_does_nothing(tmp_path: Path) -> None:
    path, trace = tmp_path / "bad.pt", tmp_path / "harm"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("bad/data.pkl", pickle.dumps(Harm(trace), protocol=2))
        made.writestr("bad/code/x.py", "raise SystemExit")
    with pytest.raises(InvalidInput, match=r"without executing it .*refused"):
        read_weights(path)
    assert not trace.exists()


def test_an_archive_that_is_cut_off_is_refused_in_a_sentence(archive: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pt"
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(broken, "w") as made:
        for name in whole.namelist():
            content = whole.read(name)
            made.writestr(name, content[:4] if name.rsplit("/", 1)[0].endswith("/data") else content)
    with pytest.raises(InvalidInput, match="cut off"):
        read_torchscript(broken)
