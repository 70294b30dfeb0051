"""One house style for every figure: colour-blind safe, light or dark, written as PDF, SVG or PNG.

Figures are plain ``matplotlib.figure.Figure`` objects made by ``new_figure``; nothing here uses pyplot, so a server
without a display can draw. Settings hold while something is drawn and are put back afterwards: the user's own stay
as they are. Legends and notes take their colours when they are added, so a function that draws is ``@styled``; what
you draw yourself, draw inside ``with theme(...)``.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

import matplotlib
import numpy
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from separatrix.core.disk import written_whole
from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve
from separatrix.core.scalars import require_integer, require_positive

from .coincidence import reveal
from .layout import HouseAxes, HouseFigure, arrange

Theme: TypeAlias = Literal["light", "dark"]
Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#F0E442")
"""Okabe and Ito's colours, told apart by readers with any colour vision; most distinct first."""

COLOURS = dict(zip(("blue", "vermilion", "green", "purple", "orange", "sky", "grey", "yellow"), PALETTE, strict=True))
"""The palette by name, for things that declare their own colour."""

SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"
SUFFIXES = (".pdf", ".svg", ".png")

_theme: contextvars.ContextVar[Theme] = contextvars.ContextVar("theme", default="light")
_drawing = threading.RLock()  # matplotlib's settings belong to the process, so threads draw one after another
_THEMES: dict[str, Theme] = {"light": "light", "dark": "dark"}
_INK = {"light": "#1a1a1a", "dark": "#e8e8e8"}
_PAPER = {"light": "#ffffff", "dark": "#16181d"}
_FAINT = {"light": "#d9d9d9", "dark": "#3a3f4a"}


@contextlib.contextmanager
def theme(name: str) -> Iterator[None]:
    """Draw everything inside in the ``"light"`` or the ``"dark"`` theme, legends and notes included."""
    token = _theme.set(resolve("theme", name, _THEMES))
    try:
        with _house_settings():
            yield
    finally:
        _theme.reset(token)


def current_theme() -> Theme:
    """The theme that holds here; light unless ``theme`` says otherwise."""
    return _theme.get()


@contextlib.contextmanager
def _house_settings() -> Iterator[None]:
    with _drawing, matplotlib.rc_context(rc_params()):
        yield


def styled(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Make a drawing function draw with the house settings in force, so that legends and titles take them too.

    Lines that hide others in the figure it returns are dashed (``coincidence.reveal``).
    """

    @functools.wraps(draw)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn:
        with _house_settings():
            drawn = draw(*args, **kwargs)
            if isinstance(drawn, Figure):
                reveal(drawn)
            return drawn

    return wrapped


def ink() -> str:
    """The colour of text and axes in the present theme."""
    return _INK[_theme.get()]


def paper() -> str:
    """The background colour of the present theme."""
    return _PAPER[_theme.get()]


def faint() -> str:
    """The colour of grids and of what should stay in the background in the present theme."""
    return _FAINT[_theme.get()]


def rc_params() -> dict[Any, Any]:
    """The matplotlib settings of the present theme."""
    return {
        "figure.facecolor": paper(),
        "figure.titlesize": 10,
        "savefig.facecolor": "auto",  # the figure's own, whatever the theme when it is saved
        "axes.facecolor": paper(),
        "axes.edgecolor": ink(),
        "axes.labelcolor": ink(),
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=PALETTE[:7]),
        "image.cmap": SEQUENTIAL,
        "grid.color": faint(),
        "grid.linewidth": 0.5,
        "text.color": ink(),
        "xtick.color": ink(),
        "ytick.color": ink(),
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "legend.handlelength": 2.4,  # two dashes of a dashed line
        "hatch.linewidth": 0.5,
        "lines.linewidth": 1.5,
        "lines.markersize": 4,
        "errorbar.capsize": 2,
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],  # same widths where DejaVu is absent
        "font.size": 9,
        "svg.fonttype": "none",
        "svg.hashsalt": "separatrix",
        "pdf.fonttype": 42,
    }


def new_figure(
    n_rows: int = 1,
    n_cols: int = 1,
    *,
    width: float | int = 6.4,
    height: float | int = 4.0,
    stacked: Sequence[float] | None = None,
    **subplots: Any,
) -> tuple[Figure, numpy.ndarray]:
    """A figure in the house style and its axes as an array (n_rows, n_cols); sizes in inches.

    Inside ``with narrow():`` panels stand one below the other, ``stacked`` inches high if that is given; the array
    keeps its shape, and rows and columns that share an axis keep sharing it. Further options go to
    ``matplotlib.figure.Figure.subplots``, which refuses those it does not know.
    """
    n_rows, n_cols = require_integer(n_rows, "n_rows", at_least=1), require_integer(n_cols, "n_cols", at_least=1)
    width, height = require_positive(width, "width"), require_positive(height, "height")
    rows, columns, width, height = arrange(n_rows, n_cols, width, height)
    shared: dict[str, Any] = {}
    if columns < n_cols:  # one below the other: what belongs to rows and columns has another meaning
        shared = {name: subplots.pop(name) for name in ("sharex", "sharey") if subplots.get(name) in ("row", "col")}
        subplots.pop("width_ratios", None)
        if stacked is not None:
            subplots["height_ratios"], height = list(stacked), sum(stacked)
    with _house_settings():
        figure = HouseFigure(figsize=(width, height), layout="constrained")
        figure.n_columns = n_cols
        subplots["subplot_kw"] = {"axes_class": HouseAxes, **(subplots.get("subplot_kw") or {})}
        if subplots["subplot_kw"].get("projection"):  # a projection brings its own class of axes
            del subplots["subplot_kw"]["axes_class"]
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    grid = axes.reshape(n_rows, n_cols)
    for name, along in shared.items():
        for group in grid if along == "row" else grid.T:
            for other in group[1:]:
                getattr(other, name)(group[0])
    return figure, grid


def single_axes(**options: Any) -> tuple[Figure, Axes]:
    """A figure with one pair of axes; options as for ``new_figure``."""
    figure, axes = new_figure(1, 1, **options)
    return figure, axes[0, 0]


def save(figure: Figure | Axes, path: str | Path, dpi: int = 150) -> Path:
    """Write a figure, or that of axes, as PDF, SVG or PNG, chosen by the suffix. Equal figures give equal bytes."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"a figure's suffix must be one of {', '.join(SUFFIXES)}; got {path.suffix or 'none'!r}.")
    whole = figure if isinstance(figure, Figure) else figure.get_figure(root=True)
    if whole is None:
        raise InvalidInput("figure must be a figure or axes of one; these axes were removed from theirs.")
    kind = path.suffix.lower()
    with _house_settings(), written_whole(path) as stream:
        whole.savefig(stream, format=kind.removeprefix("."), dpi=dpi, metadata=_without_date(kind))
    return path


def to_svg(figure: Figure, prefix: str) -> str:
    """A figure as an ``<svg>`` element to stand in a page; ``prefix`` keeps its ids apart from other figures'."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", prefix):
        raise InvalidInput(f"prefix must be a letter followed by letters, digits, '-' or '_'; got {prefix!r}.")
    stream = io.StringIO()
    with _house_settings():
        figure.savefig(stream, format="svg", metadata=_without_date(".svg"))
    text = stream.getvalue()
    element = _without_foreign_links(text[text.index("<svg") :].strip())
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", element)


def _without_foreign_links(element: str) -> str:
    """The element without addresses that a page must not hold: only the web, mail and the element itself are left."""
    kept = r"#|https?://|mailto:|data:image/(?:png|jpeg);"
    return re.sub(rf'\s(?:xlink:)?href="(?!{kept})[^"]*"', "", element, flags=re.IGNORECASE)


def to_page_svg(figure: Figure, prefix: str) -> str:
    """A figure drawn in the light theme as an ``<svg>`` element that follows the theme of the page it stands in.

    Ink, paper and grid become the page's style variables ``--figure-ink``, ``--figure-paper`` and ``--figure-grid``,
    with the light colours where the page has none: one drawing serves both themes.
    """
    colours = {_INK["light"]: "ink", _PAPER["light"]: "paper", _FAINT["light"]: "grid"}

    def variable(found: re.Match[str]) -> str:
        return f"{found[1]}var(--figure-{colours[found[2]]}, {found[2]})"

    pattern = rf"((?:fill|stroke): ?)({'|'.join(colours)})\b"
    return re.sub(pattern, variable, to_svg(figure, prefix))


_NOTEBOOKS = {
    "ink": ("--jp-content-font-color1", "--vscode-editor-foreground", "--md-default-fg-color"),
    "paper": ("--jp-layout-color0", "--vscode-editor-background", "--md-default-bg-color"),
    "grid": ("--jp-border-color2", "--vscode-editorIndentGuide-background", "--md-default-fg-color--lightest"),
}
"""What notebooks (JupyterLab, VS Code, our site) call their colours, so that a picture follows their theme."""


def to_notebook_svg(figure: Figure, prefix: str) -> str:
    """A figure drawn in the light theme as an ``<svg>`` element in the colours of the notebook it stands in."""
    element = to_page_svg(figure, prefix)
    for name, variables in _NOTEBOOKS.items():
        given = {"ink": _INK, "paper": _PAPER, "grid": _FAINT}[name]["light"]
        chain = given
        for variable in reversed(variables):
            chain = f"var({variable}, {chain})"
        element = element.replace(f"var(--figure-{name}, {given})", chain)
    return element


def _without_date(suffix: str) -> dict[str, Any]:
    return {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(suffix, {})
