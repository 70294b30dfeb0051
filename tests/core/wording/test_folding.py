from __future__ import annotations

from separatrix.core.wording import folded

SENTENCE = "the gates of the network scale the state, so that a radius is no sign of instability " * 3


def test_long_lines_are_folded_between_words_and_short_ones_left_alone() -> None:
    lines = folded(f"head\n  {SENTENCE}\n  a   table  row").split("\n")
    assert (lines[0], lines[-1]) == ("head", "  a   table  row")
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines[1:-1]).split()) == SENTENCE.strip()
    assert all(line.startswith("    ") for line in lines[2:-1])


def test_a_word_longer_than_a_line_stays_whole() -> None:
    assert folded("see " + "x" * 120).split("\n")[1].strip() == "x" * 120
