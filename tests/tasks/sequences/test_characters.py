from __future__ import annotations

from pathlib import Path

import pytest
import torch

from separatrix.core import DatasetUnavailable, InvalidInput, MissingData
from separatrix.tasks import bits_per_symbol, evaluation_windows, load_characters


def test_a_text_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "play.txt"
    file.write_text("to be or not to be\n" * 20)
    text = load_characters(file)
    assert text.name == "play"
    assert text.n_symbols == len(set("to be or not to be\n"))
    assert text.decode(text.train[:5]) == "to be"
    assert len(text.sha256) == 64


@pytest.mark.parametrize("content", ["", "aaaa" * 50, "ab"])
def test_a_text_too_poor_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "poor.txt"
    file.write_text(content)
    with pytest.raises(InvalidInput, match="at least two different characters"):
        load_characters(file)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "noise.bin"
    file.write_bytes(b"\xff\xfe\x00\xff" * 100)
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        load_characters(file)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEPARATRIX_DATA", raising=False)
    with pytest.raises(MissingData, match="there is no text file at"):
        load_characters(tmp_path / "none.txt")
    with pytest.raises(DatasetUnavailable, match="ptb-char was not found"):
        load_characters("ptb-char", path=tmp_path)


def test_windows_cover_every_symbol_that_can_be_predicted() -> None:
    symbols = torch.arange(23)
    windows = list(evaluation_windows(symbols, 2, 4))
    targets = torch.cat([target for _, target in windows], 1)
    assert torch.equal(targets, torch.stack([symbols[1:11], symbols[12:22]]))
    assert all(torch.equal(inputs + 1, target) for inputs, target in windows)
    with pytest.raises(InvalidInput, match="too short for 23 rows"):
        list(evaluation_windows(symbols, 23, 4))


def test_one_bit_is_a_fair_coin() -> None:
    assert bits_per_symbol(0.6931471805599453) == pytest.approx(1.0)
