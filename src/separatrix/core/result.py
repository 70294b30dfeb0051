"""The base of result objects: small frozen dataclasses that print on one screen and convert.

Nothing here computes or draws. Tensors become nested lists in ``to_dict`` and one column each in ``to_frame``.
"""

from __future__ import annotations

import dataclasses
import enum
import html
import importlib
import json
import math
from typing import TYPE_CHECKING, Any

from .errors import MissingExtra
from .outcome import Outcome

if TYPE_CHECKING:
    import pandas


class Result:
    """Mix-in for frozen dataclasses that are handed to users."""

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: lists, numbers, strings; what JSON can hold (NaN and infinity as strings)."""
        return {field.name: plain(getattr(self, field.name)) for field in _shown(self)}

    def to_json(self) -> str:
        """``to_dict`` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with a row per thing: an element of the longest one-dimensional fields (or one row).

        Single values stand in every row. What belongs to no row, such as a matrix of another size, is left out and
        named in ``frame.attrs["left_out"]``. Codes of an outcome become its names.
        """
        values = {field.name: plain(named(field.name, getattr(self, field.name))) for field in _shown(self)}
        flat = [len(value) for value in values.values() if isinstance(value, list) and not _nested(value)]
        lengths = flat or [len(value) for value in values.values() if isinstance(value, list)]
        n_rows = max(lengths, default=1)
        columns, left_out = {}, []
        for name, value in values.items():
            if isinstance(value, list) and len(value) == n_rows:
                columns[name] = value
            elif n_rows == 1 or not isinstance(value, list | dict):
                columns[name] = [value] * n_rows
            else:
                left_out.append(name)
        made = frame(columns)
        made.attrs["left_out"] = left_out
        return made

    def __repr__(self) -> str:
        lines = [
            f"  {field.name}: {brief(named(field.name, getattr(self, field.name)), 96 - len(field.name))}"
            for field in _shown(self)
        ]
        return "\n".join([f"{type(self).__name__}", *lines])

    def _repr_html_(self) -> str:
        """What a notebook shows: everything that the text shows, uncut, and a small picture where one is known.

        A class that words its text itself is shown in these words, its fields folded below them.
        """
        told = {field.name: brief(named(field.name, getattr(self, field.name)), 2000) for field in _shown(self)}
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(words)}</td></tr>"
            for name, words in told.items()
        )
        table = f"<table><caption>{type(self).__name__}</caption>{rows}</table>"
        if type(self).__repr__ is not Result.__repr__:
            words = f"<pre style='white-space:pre-wrap'>{html.escape(repr(self))}</pre>"
            table = f"{words}<details><summary>fields</summary>{table}</details>"
        return table + small_picture(self)


_PAINTER = ("separatrix.report.figures.house.plots", "small_svg")
"""Who draws a result for a notebook: by name, for the rooms that compute do not know the one that draws."""


def small_picture(result: Any) -> str:
    """A result as a small ``<svg>`` for a notebook; empty where none is known or it cannot be drawn."""
    module, function = _PAINTER
    return str(getattr(importlib.import_module(module), function)(result))


def named(name: str, value: Any) -> Any:
    """The value of a field as people read it: codes of an outcome by their names."""
    if name != "outcome" or not hasattr(value, "tolist") or not hasattr(value, "shape"):
        return value
    codes = value.reshape(-1).tolist()
    if not {type(code) for code in codes} <= {int} or not set(codes) <= {int(known) for known in Outcome}:
        return value
    labels = [Outcome(code).label for code in codes]
    return Codes(labels) if len(labels) != 1 else labels[0]


class Codes(list[str]):
    """Names of codes, one per element; many of them print as counts."""

    def __repr__(self) -> str:
        if len(self) <= _MOST_NAMES:
            return ", ".join(self)
        counts = {label: self.count(label) for label in dict.fromkeys(self)}
        return f"{len(self)} elements: " + ", ".join(f"{label} {count}" for label, count in counts.items())


_MOST_NAMES = 4


def _nested(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], list | dict)


def frame(data: Any) -> pandas.DataFrame:
    """A pandas frame of columns by name, or of a list of rows."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("to_frame needs pandas: install separatrix[frames].") from error
    return pandas.DataFrame(data)


def _shown(result: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(result) if field.repr]


def plain(value: Any) -> Any:
    """Plain Python for JSON: tensors and arrays as nested lists, enums by label, results as dictionaries."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return getattr(value, "label", value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # torch tensors, numpy arrays and numpy scalars
        return plain(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return repr(value)


def brief(value: Any, width: int = 90) -> str:
    """One line about a value: numbers in full, long arrays as shape and range."""
    if hasattr(value, "tolist") and hasattr(value, "shape") and len(value.shape) > 0:
        return _brief_array(value, width)
    if isinstance(value, enum.Enum):
        return str(plain(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value) if not isinstance(value, str) else value
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _brief_array(array: Any, width: int) -> str:
    shape = tuple(array.shape)
    count = math.prod(shape)
    kind = str(array.dtype).removeprefix("torch.")
    if count == 0:
        return f"empty {kind} {shape}"
    if count <= 8:
        return brief(str(plain([_rounded(item) for item in array.reshape(-1).tolist()])), width)
    if "complex" in kind or "bool" in kind:
        return f"{kind} {shape}"
    from .wording.numerals import number  # words are needed when somebody reads, not when something is computed

    return f"{kind} {shape}, {number(float(array.min()))} to {number(float(array.max()))}"


def _rounded(number: Any) -> Any:
    return float(f"{number:.6g}") if isinstance(number, float) else number
