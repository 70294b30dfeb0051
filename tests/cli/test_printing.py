from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import OWN, Answer
from separatrix import advise
from separatrix.advise import deq_advisor
from separatrix.cli.printing import fitted, print_table
from separatrix.lab import Store
from separatrix.matrices.ensembles import Antisymmetric, Haar
from short_experiments import SHORT, run_inline

DIGEST = re.compile("[0-9a-f]{64}")
SENTENCE = "the largest deviation of a norm from 1 is 0.13; call flow.project first. " * 3
COMMANDS = (
    ("list",),
    ("claims",),
    ("claims", OWN, "--store", "STORE"),
    ("show", OWN, "--store", "STORE"),
    ("show", "altafini-fig2"),
    ("errata",),
    ("cite", "altafini2025"),
    ("cite", "--notation"),
    ("data", "show", "mnist"),
    ("advise", "deq"),
    ("advise", "deq", "--ensemble", "GOE"),
    ("run", "altafini-fig"),
    ("claims", OWN, "--store", "/dev/null/x"),
    ("publish", OWN, "--store", "STORE", "--scale", "paper"),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_sentence_is_wrapped_between_words_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = fitted(f"  {SENTENCE}", Terminal()).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines).split() == SENTENCE.split()
    assert all(line.startswith("    ") for line in lines[1:])


def test_a_word_longer_than_the_line_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a-very-long-folder" * 5
    assert path in fitted(f"the store {path} cannot be written.", Terminal()).splitlines()[1]


def test_a_pipe_gets_each_sentence_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert fitted(SENTENCE, io.StringIO()) == SENTENCE


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_table_breaks_no_word(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ["automatic", "differentiation", "of", "all", "tokens"]
    print_table(("claim", "statement", "measures"), [("separatrix-cluster", " ".join(words), " ".join(words))])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert all(out.count(word) == 2 for word in words)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    words: tuple[str, ...], cli: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(advise, "deq", functools.cache(advise.deq))  # computed once for all widths
    monkeypatch.setattr(deq_advisor, "ENSEMBLES", {family.name: family for family in (Haar(), Antisymmetric())})
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        answer = cli(*(f"{tmp_path}/store" if word == "STORE" else word for word in words))
        wide = [line for line in (answer.out + answer.err).splitlines() if len(line) > columns]
        assert [line for line in wide if str(tmp_path) not in line and not DIGEST.fullmatch(line.strip())] == []


@pytest.mark.parametrize("columns", [24, 60])
def test_a_title_is_as_wide_as_the_terminal_not_as_the_table(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(("beta", "points"), [("0.1", "7")], title="Consensus and bipartite consensus of six tokens")
    first = capsys.readouterr().out.splitlines()[0]
    assert first == ("Consensus and bipartite" if columns == 24 else "Consensus and bipartite consensus of six tokens")
