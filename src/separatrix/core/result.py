"""The base of result objects: small frozen dataclasses that print on one screen and convert.

Nothing here computes or draws. Tensors become nested lists in ``to_dict`` and one column each in ``to_frame``.
"""

from __future__ import annotations

import dataclasses
import enum
import html
import json
import math
from typing import TYPE_CHECKING, Any

from .errors import MissingExtra

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
        """A pandas frame with a row per element of the longest one-dimensional fields (one row if there is none)."""
        values = {field.name: plain(getattr(self, field.name)) for field in _shown(self)}
        lengths = [len(value) for value in values.values() if isinstance(value, list)]
        n_rows = max(lengths, default=1)
        columns = {
            name: value if isinstance(value, list) and len(value) == n_rows else [value] * n_rows
            for name, value in values.items()
        }
        return frame(columns)

    def __repr__(self) -> str:
        lines = [f"  {field.name}: {brief(getattr(self, field.name))}" for field in _shown(self)]
        return "\n".join([f"{type(self).__name__}", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(field.name)}</th>"
            f"<td>{html.escape(brief(getattr(self, field.name)))}</td></tr>"
            for field in _shown(self)
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


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
    return f"{kind} {shape}, {float(array.min()):.6g} to {float(array.max()):.6g}"


def _rounded(number: Any) -> Any:
    return float(f"{number:.6g}") if isinstance(number, float) else number
