from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Answer
from separatrix.lab import Store
from short_experiments import SHORT, run_inline

Cli = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    return tmp_path / "store"


def test_records_travel_and_are_checked_and_tidied(cli: Cli, folder: Path, tmp_path: Path) -> None:
    assert cli("store", "export", tmp_path / "a.csv", "--store", folder).out.startswith("4 records in")
    assert cli("store", "export", tmp_path / "a.zip", "--store", folder).code == 0
    assert "4 records taken over" in cli("store", "import", tmp_path / "a.zip", "--store", tmp_path / "b").out
    assert "0 records taken over, 4 were there" in cli("store", "merge", folder, "--store", tmp_path / "b").out
    assert "4 records are whole, 0 damaged" in cli("store", "verify", "--store", folder).out
    assert json.loads(cli("store", "gc", "--dry-run", "--json", "--store", folder).out)["paths"] == []
    (folder / "index.sqlite").write_bytes(b"no index" * 100)
    assert cli("store", "verify", "--store", folder).code == 2
    assert "the index holds 4 records" in cli("store", "rebuild", "--store", folder).out


def test_a_damaged_record_is_named_with_exit_code_1(cli: Cli, folder: Path) -> None:
    path, *_ = sorted(folder.glob("records/*/*.json"))
    path.write_text("x")
    answer = cli("store", "verify", "--store", folder)
    assert answer.code == 1
    assert str(path) in answer.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("export", "a.xls"), "must end with .csv, .parquet or .zip"),
        (("export", "/proc/a.csv"), "FILE cannot be written"),
        (("import", "none.zip"), "there is no file 'none.zip'"),
        (("merge", "none"), "there is no store in"),
        (("verify",), "there is no store in"),
        (("rebuild",), "there are no records in"),
    ],
)
def test_wrong_words_are_one_sentence(words: tuple[str, ...], sentence: str, cli: Cli, tmp_path: Path) -> None:
    answer = cli("store", *words, "--store", tmp_path / "typo")
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert not (tmp_path / "typo").exists() or words[0] in ("import", "merge")
