from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import separatrix.tasks.store.location
from separatrix.cli.commands.reference.data import app
from separatrix.core import InvalidInput


@pytest.fixture(autouse=True)
def empty_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No data from outside, unless a test asks for it (then look it up before the variable is gone)."""
    if "data_dir" in request.fixturenames:
        request.getfixturevalue("data_dir")
    monkeypatch.setattr(separatrix.tasks.store.location, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("SEPARATRIX_DATA", raising=False)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_names_every_set_and_says_what_is_missing() -> None:
    assert any(line.split()[:2] == ["mnist", "missing"] for line in run("list").splitlines())
    assert {row["name"] for row in json.loads(run("list", "--json"))} >= {"mnist", "ptb", "tiny-shakespeare"}


def test_list_tells_a_corrupt_file_from_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "tinyshakespeare.txt").write_text("not this one")
    states = {row["name"]: row["state"] for row in json.loads(run("list", "--json"))}
    assert states["tiny-shakespeare"] == "corrupt"
    assert states["mnist"] == "missing"


def test_show_always_prints_licence_files_and_digests() -> None:
    text = run("show", "ptb")
    assert "Linguistic Data Consortium" in text
    assert "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf" in text
    assert json.loads(run("show", "ptb", "--json"))["files"][0]["name"] == "ptb/ptb.train.txt"


def test_get_asks_for_the_licence_before_any_download() -> None:
    with pytest.raises(InvalidInput, match="--accept-licence ptb"):
        run("get", "ptb")


@pytest.mark.needs_data
def test_get_finds_what_is_already_here(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPARATRIX_DATA", str(data_dir))
    answer = json.loads(run("get", "tiny-shakespeare", "--json"))
    assert answer["verified"]
    assert Path(answer["files"]["all"]["path"]).is_file()


def test_listing_data_imports_neither_torch_nor_matplotlib() -> None:
    heavy = ("torch", "matplotlib", "numpy")
    code = f"import sys, separatrix.cli.commands.reference.data; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
