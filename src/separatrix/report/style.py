"""One house style for every figure: colour-blind safe, light or dark, no global matplotlib state.

Figures are plain ``matplotlib.figure.Figure`` objects made by ``new_figure``; nothing here uses pyplot, so a server
without a display can draw and the user's own settings stay as they are.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib
import numpy
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from separatrix.core.errors import InvalidInput

Theme: TypeAlias = Literal["light", "dark"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#F0E442")
"""Okabe and Ito's colours, told apart by readers with any colour vision; most distinct first."""

SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"
SUFFIXES = (".pdf", ".svg", ".png")

_theme: contextvars.ContextVar[Theme] = contextvars.ContextVar("theme", default="light")
_INK = {"light": "#1a1a1a", "dark": "#e8e8e8"}
_PAPER = {"light": "#ffffff", "dark": "#16181d"}
_FAINT = {"light": "#d9d9d9", "dark": "#3a3f4a"}


@contextlib.contextmanager
def theme(name: Theme) -> Iterator[None]:
    """Draw everything inside in the light or the dark theme."""
    token = _theme.set(name)
    try:
        yield
    finally:
        _theme.reset(token)


def ink() -> str:
    """The colour of text and axes in the present theme."""
    return _INK[_theme.get()]


def rc_params() -> dict[Any, Any]:
    """The matplotlib settings of the present theme."""
    text, paper, faint = _INK[_theme.get()], _PAPER[_theme.get()], _FAINT[_theme.get()]
    return {
        "figure.facecolor": paper,
        "savefig.facecolor": paper,
        "axes.facecolor": paper,
        "axes.edgecolor": text,
        "axes.labelcolor": text,
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=PALETTE[:7]),
        "grid.color": faint,
        "grid.linewidth": 0.5,
        "text.color": text,
        "xtick.color": text,
        "ytick.color": text,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "lines.linewidth": 1.5,
        "lines.markersize": 4,
        "font.family": "DejaVu Sans",
        "svg.fonttype": "none",
        "svg.hashsalt": "separatrix",
        "pdf.fonttype": 42,
    }


def new_figure(
    n_rows: int = 1, n_cols: int = 1, *, width: float = 6.4, height: float = 4.0, **subplots: Any
) -> tuple[Figure, numpy.ndarray]:
    """A figure in the house style and its axes as an array (n_rows, n_cols); sizes in inches."""
    with matplotlib.rc_context(rc_params()):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(n_rows, n_cols, squeeze=False, **subplots)
    return figure, axes


def single_axes(**options: Any) -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure, axes = new_figure(1, 1, **options)
    return figure, axes[0, 0]


def save(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write a figure as PDF, SVG or PNG, chosen by the suffix."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"a figure's suffix must be one of {', '.join(SUFFIXES)}; got {path.suffix or 'none'!r}.")
    with matplotlib.rc_context(rc_params()):
        figure.savefig(path, dpi=dpi, metadata=_without_date(path))
    return path


def _without_date(path: Path) -> dict[str, Any]:
    return {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix.lower(), {})
