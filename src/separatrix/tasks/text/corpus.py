"""Texts as sequences of symbols: characters, words, or pieces of a given sentencepiece model.

The vocabulary is that of the training part. A symbol that only the other parts have becomes ``<unk>``.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.core.names import choose, suggest_options

from ..store.location import locate
from ..store.registry import Dataset

Level: TypeAlias = Literal["characters", "words"]
UNKNOWN = "<unk>"
END_OF_LINE = "<eos>"
SPLIT = (0.9, 0.05, 0.05)
"""Contiguous shares for a text that comes in one file."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Text:
    """Three parts of a text as indices into ``symbols``."""

    name: str
    train: Int[Tensor, " n"]
    valid: Int[Tensor, " m"]
    test: Int[Tensor, " k"]
    symbols: tuple[str, ...]
    sha256: str = ""
    """Digest of the files, for the record of a run; empty for a text made in code."""

    @property
    def n_symbols(self) -> int:
        """Size of the vocabulary."""
        return len(self.symbols)

    def decode(self, indices: Int[Tensor, " n"], between: str = "") -> str:
        """The symbols behind indices, joined."""
        return between.join(self.symbols[index] for index in indices.tolist())


def load_text(
    name: str | Dataset, level: Level = "characters", *, path: str | Path | None = None, download: bool = False
) -> Text:
    """A registered text: ``"tiny-shakespeare"``, ``"wikitext2-reordered"``, ``"text8"``, ``"ptb"``.

    Args:
        name: of the registry, or a data set of your own. A text in one file is cut into 90, 5 and 5 per cent.
        level: ``"characters"``, or ``"words"``, which are separated by blanks and end a line with ``<eos>``.
        path: a folder that holds the files; else they are looked for as ``locate`` does.
        download: whether missing files may be fetched.

    Raises:
        DatasetUnavailable: the files were found nowhere.
        InvalidInput: a data set that is no text with a training part.
    """
    choose("level", level, ("characters", "words"))  # before a download, not after
    located = locate(name, path=path, download=download)
    if set(located.paths) == {"all"}:
        parts = list(cut(located.read("all").decode("utf-8"), SPLIT))
    elif {"train", "valid", "test"} <= set(located.paths):
        parts = [located.read(split).decode("utf-8") for split in ("train", "valid", "test")]
    else:
        raise InvalidInput(f"{located.dataset.name} has no training text; its parts are {', '.join(located.paths)}.")
    return dataclasses.replace(make_text(located.dataset.name, parts, level), sha256=located.digest)


def make_text(name: str, parts: Sequence[str], level: Level = "characters") -> Text:
    """Three strings (train, valid, test) as a ``Text`` with the vocabulary of the first, in order of code points."""
    choose("level", level, ("characters", "words"))
    if len(parts) != 3:
        raise InvalidInput(f"parts must be three strings: train, valid, test; got {len(parts)}.")
    train, valid, test = (split_symbols(part, level) for part in parts)
    known = set(train)
    if not known.issuperset(valid) or not known.issuperset(test):
        known.add(UNKNOWN)
    symbols = tuple(sorted(known))
    index = {symbol: place for place, symbol in enumerate(symbols)}
    return Text(name, encode(train, index), encode(valid, index), encode(test, index), symbols)


def split_symbols(text: str, level: Level) -> Sequence[str]:
    """A string as its characters or its words; every line of words ends with ``<eos>``."""
    if level == "characters":
        return text
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return [word for line in lines for word in (*line.split(), END_OF_LINE)]


def encode(symbols: Sequence[str], index: Mapping[str, int]) -> Int[Tensor, " n"]:
    """Indices of symbols; unknown ones become ``<unk>``, or are refused if the vocabulary has none."""
    unknown = index.get(UNKNOWN)
    if unknown is None and not set(symbols) <= set(index):
        strange = sorted(set(symbols) - set(index))[:3]
        raise InvalidInput(f"the vocabulary lacks {', '.join(map(repr, strange))} and has no {UNKNOWN}.")
    return torch.tensor([index.get(symbol, unknown) for symbol in symbols], dtype=torch.int64)


def cut(text: str, shares: Sequence[float]) -> tuple[str, str, str]:
    """A text as three contiguous parts with the given shares; the last takes what is left."""
    first, second = int(len(text) * shares[0]), int(len(text) * (shares[0] + shares[1]))
    return text[:first], text[first:second], text[second:]


def split_pieces(text: str, model_file: str | Path) -> Int[Tensor, " n"]:
    """Indices of the pieces of a text under a trained sentencepiece model.

    Raises:
        MissingExtra: sentencepiece is not installed.
    """
    try:
        sentencepiece = importlib.import_module("sentencepiece")
    except ImportError as error:
        raise MissingExtra("pieces need sentencepiece: pip install sentencepiece.") from error
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    return torch.tensor(processor.encode(text), dtype=torch.int64)


def conditional_entropy(symbols: Sequence[str]) -> tuple[float, float]:
    """Bits per symbol of single symbols, and of a symbol given the one before, which a table of pairs would reach."""
    singles, pairs = collections.Counter(symbols[:-1]), collections.Counter(itertools.pairwise(symbols))
    n_all, n_pairs = len(symbols), len(symbols) - 1
    order0 = -sum(n / n_all * math.log2(n / n_all) for n in collections.Counter(symbols).values())
    order1 = -sum(n / n_pairs * math.log2(n / singles[first]) for (first, _), n in pairs.items())
    return order0, order1
