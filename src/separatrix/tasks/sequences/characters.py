"""Character-level language modelling: a text as a long sequence, windows for training, all of it for evaluation."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, MissingData

from ..store.registry import Dataset
from ..text.corpus import SPLIT, Text, cut, load_text, make_text

SEPARATED = ("ptb-char",)
"""Corpora whose characters are separated by blanks; their lines end with a symbol of its own."""


def load_characters(text: str | Path | Dataset, *, path: str | Path | None = None, download: bool = False) -> Text:
    """A text as characters.

    Args:
        text: a registered text (``"tiny-shakespeare"``, ``"wikitext2-reordered"``, ``"ptb-char"``), a data set of
            your own, or the ``Path`` of a text file, which is cut into 90, 5 and 5 per cent.
        path: a folder that holds the files of a registered text.
        download: whether missing files may be fetched.

    Raises:
        MissingData: the text was found nowhere.
        InvalidInput: a text without at least two different characters.

    The Penn Treebank is licensed text that nobody may pass on: supply it in a folder, with the files and digests that
    the error names. Its files have blanks between characters and ``_`` for a blank.
    """
    if isinstance(text, Path):
        return _checked(_text_of_file(text))
    name = text.name if isinstance(text, Dataset) else text
    return _checked(load_text(text, "words" if name in SEPARATED else "characters", path=path, download=download))


def _text_of_file(file: Path) -> Text:
    if not file.is_file():
        raise MissingData(f"there is no text file at {file}.")
    content = file.read_bytes()
    try:
        text = make_text(file.stem, cut(content.decode("utf-8"), SPLIT))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text: {error}.") from None
    return dataclasses.replace(text, sha256=hashlib.sha256(content).hexdigest())


def _checked(text: Text) -> Text:
    if text.n_symbols < 2 or min(len(text.train), len(text.valid), len(text.test)) < 2:
        raise InvalidInput(
            f"{text.name} must have at least two different characters, and two in each part; it has {text.n_symbols} "
            f"and parts of {len(text.train)}, {len(text.valid)} and {len(text.test)}."
        )
    return text


def evaluation_windows(
    symbols: Int[Tensor, " n"], n_rows: int, context: int
) -> Iterator[tuple[Int[Tensor, "rows t"], Int[Tensor, "rows t"]]]:
    """Inputs and targets of all windows of a text in ``n_rows`` rows, the last and shorter one included.

    A model carries its state from one to the next. Weight their losses by ``targets.numel()``.

    Example:
        >>> import torch
        >>> [tuple(inputs.shape) for inputs, _ in evaluation_windows(torch.arange(20), 2, 4)]
        [(2, 4), (2, 4), (2, 1)]
    """
    require_integer(n_rows, "n_rows", at_least=1)
    require_integer(context, "context", at_least=1)
    length = len(symbols) // n_rows
    if length < 2:
        raise InvalidInput(f"a text of {len(symbols)} symbols is too short for {n_rows} rows.")
    rows = symbols[: n_rows * length].reshape(n_rows, length)
    for start in range(0, length - 1, context):
        end = min(start + context, length - 1)
        yield rows[:, start:end].clone(), rows[:, start + 1 : end + 1].clone()


def bits_per_symbol(nats: float) -> float:
    """A mean loss with the natural logarithm in bits.

    Example:
        >>> round(bits_per_symbol(1.0), 4)
        1.4427
    """
    return nats / math.log(2)
