from __future__ import annotations

import importlib.util
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

from separatrix import core, tasks
from separatrix.core import DatasetUnavailable, InvalidInput, MissingExtra
from separatrix.tasks.text.corpus import SPLIT, cut, encode, split_symbols


def test_the_vocabulary_is_that_of_the_training_part() -> None:
    text = tasks.make_text("small", ["abcab", "abz", "c"])
    assert text.symbols == ("<unk>", "a", "b", "c")
    assert text.train.tolist() == [1, 2, 3, 1, 2]
    assert text.valid.tolist() == [1, 2, 0]
    assert text.decode(text.valid) == "ab<unk>"


def test_no_unknown_symbol_is_added_where_none_is_needed() -> None:
    assert tasks.make_text("small", ["abc", "ab", "c"]).symbols == ("a", "b", "c")


def test_lines_of_words_end_with_a_mark() -> None:
    text = tasks.make_text("small", [" the cat \n\n sat \n", "the dog\n", "cat"], "words")
    assert text.decode(text.train, " ") == "the cat <eos> <eos> sat <eos>"
    assert text.decode(text.valid, " ") == "the <unk> <eos>"


def test_a_symbol_without_a_place_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the vocabulary lacks 'z' and has no <unk>"):
        encode("az", {"a": 0})


def test_parts_are_contiguous_and_complete() -> None:
    text = "".join(map(str, range(100)))
    assert "".join(cut(text, SPLIT)) == text
    assert [len(part) for part in cut("x" * 1000, SPLIT)] == [900, 50, 50]


def test_text8_symbols_are_letters_and_single_blanks() -> None:
    assert tasks.normalise_text8("  The 1st, CAFÉ: 20%\n") == "the one st caf two zero"
    assert tasks.normalise_text8(tasks.normalise_text8("A1b")) == "a one b"


def test_the_made_up_text_is_the_same_for_the_same_seed_and_has_the_length_asked_for() -> None:
    first = tasks.made_up_text(500, generator=core.spawn(0, "t"))
    assert len(first) == 500
    assert first == tasks.made_up_text(500, generator=core.spawn(0, "t"))
    assert first != tasks.made_up_text(500, generator=core.spawn(1, "t"))
    order0, order1 = tasks.conditional_entropy(first)
    assert order1 < order0 - 1  # there is something to learn


def test_entropies_agree_with_a_count_by_hand() -> None:
    order0, order1 = tasks.conditional_entropy("abababaa")
    assert order0 == pytest.approx(-(5 / 8 * math.log2(5 / 8) + 3 / 8 * math.log2(3 / 8)))
    pairs = Counter(["ab", "ba", "ab", "ba", "ab", "ba", "aa"])
    after_a = {"b": pairs["ab"] / 4, "a": pairs["aa"] / 4}
    assert order1 == pytest.approx(4 / 7 * -sum(p * math.log2(p) for p in after_a.values()))  # after b always a


def test_a_missing_text_is_said_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    monkeypatch.setattr("separatrix.tasks.store.location.cache_folder", lambda: tmp_path / "none")
    with pytest.raises(DatasetUnavailable, match=r"^tiny-shakespeare was not found\. Looked in"):
        tasks.load_text("tiny-shakespeare")


@pytest.mark.needs_data
def test_a_data_set_without_a_training_text_is_refused(data_dir: Path) -> None:
    with pytest.raises(InvalidInput, match="wikitext2 has no training text; its parts are valid, test"):
        tasks.load_text("wikitext2")


@pytest.mark.skipif(importlib.util.find_spec("sentencepiece") is not None, reason="sentencepiece is installed")
def test_pieces_without_sentencepiece_say_what_to_install() -> None:
    with pytest.raises(MissingExtra, match="pip install sentencepiece"):
        tasks.split_pieces("text", "model")


@pytest.mark.needs_data
def test_tiny_shakespeare_has_its_known_size_and_entropies(data_dir: Path) -> None:
    text = tasks.load_text("tiny-shakespeare")
    parts = (text.train, text.valid, text.test)
    assert sum(len(part) for part in parts) == 1115394
    assert [round(len(part) / 1115394, 3) for part in parts] == list(SPLIT)
    assert text.n_symbols == 65
    whole = (data_dir / "text/tinyshakespeare.txt").read_text(encoding="utf-8")
    assert text.decode(torch.cat(parts)) == whole
    assert tasks.conditional_entropy(whole) == pytest.approx((4.7794, 3.5383), abs=5e-5)


@pytest.mark.needs_data
def test_wikitext_2_has_its_known_numbers_of_words(data_dir: Path) -> None:
    text = tasks.load_text("wikitext2-reordered", "words")
    assert [len(part) for part in (text.train, text.valid, text.test)] == [2088628, 217646, 245569]
    assert text.n_symbols == 33278
    assert "<eos>" in text.symbols


def test_characters_are_kept_as_they_are() -> None:
    assert split_symbols("a\n b", "characters") == "a\n b"
