"""Problems of relational tasks as pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..house.style import PALETTE, faint, new_figure, styled

LONG = 13
"""Rows of more pictures than this stand one part below the other."""
BETWEEN, APART = 1, 14
"""Pixels between pictures of a group, and between groups."""


@styled
def draw_problem_sheet(parts: Mapping[str, Mapping[str, Any]], title: str) -> Figure:
    """Problems of a task, part by part: rows of pictures, or boards of a game.

    Groups of pictures stand apart from one another, and what the answer points to has a frame.

    Args:
        parts: by name, ``images`` (problems, positions, 3, h, w), ``labels`` and ``patterns``; ``groups``, the numbers
            of pictures that belong together (all if not given), and ``marked``, positions by problem.
        title: what stands above.
    """
    n_shown = next(iter(parts.values()))["images"].shape[1]
    n = max(len(part["labels"]) for part in parts.values())
    if n_shown == 1:  # boards
        figure, grid = new_figure(
            len(parts), n, width=max(5.0, 1.3 * n), height=0.9 + 1.75 * len(parts), gridspec_kw={"hspace": 0.25}
        )
        places = [list(row) for row in grid]
    elif n_shown > LONG:
        figure, grid = new_figure(n * len(parts), 1, width=1.0 + 0.36 * n_shown, height=0.8 + 0.6 * n * len(parts))
        places = [list(grid[k * n : (k + 1) * n, 0]) for k in range(len(parts))]
    else:
        width = max(5.0, len(parts) * (1.6 + 0.36 * n_shown))
        figure, grid = new_figure(n, len(parts), width=width, height=0.6 + 0.6 * n)
        places = [list(grid[:, k]) for k in range(len(parts))]
    for (name, part), own in zip(parts.items(), places, strict=True):
        for k, axes in enumerate(own):
            axes.set_axis_off()
            if k < len(part["labels"]):
                _draw(axes, part, k)
        at, side = ((0.5, 1.5), "center") if 1 < n_shown <= LONG else ((0.0, 1.5), "left")
        if n_shown == 1:
            _head_boards(own[0], name)
        else:
            own[0].annotate(name, at, xycoords="axes fraction", ha=side, weight="bold")
    figure.suptitle(title)
    return figure


def _head_boards(axes: Axes, name: str) -> None:
    """A heading above two lines of a title, as wide as it likes: it may reach over the next board, not into the title.

    The layout makes room for the first letter alone, so for the height of the heading and not for its width.
    """
    at: dict[str, Any] = {
        "xycoords": "axes fraction",
        "xytext": (0, 20),
        "textcoords": "offset points",
        "weight": "bold",
    }
    axes.annotate(name, (0.0, 1.0), **at).set_in_layout(False)
    axes.annotate(name[:1], (0.0, 1.0), alpha=0.0, **at)


def _draw(axes: Axes, part: Mapping[str, Any], k: int) -> None:
    images = numpy.asarray(part["images"][k])
    groups = part.get("groups") or (len(images),)
    strip, lefts = _strip(images, groups)
    axes.imshow(strip, vmin=0, vmax=1, interpolation="nearest" if len(images) == 1 else None)
    if len(images) == 1:  # a board: its nine cells
        for line in range(1, 3):
            at = line * strip.shape[0] / 3 - 0.5
            axes.axhline(at, color="0.35", linewidth=0.4)
            axes.axvline(at, color="0.35", linewidth=0.4)
    marked = list(part["marked"][k]) if "marked" in part else []
    if marked:
        side = images.shape[-1]
        width = lefts[marked[-1]] + side - lefts[marked[0]]
        axes.add_patch(
            Rectangle((lefts[marked[0]] - 0.5, -0.5), width, side, fill=False, edgecolor=PALETTE[1], linewidth=1.4)
        )
    words = part["patterns"][k] if marked else f"answer {part['labels'][k]}: {part['patterns'][k]}"
    if len(images) == 1:
        words = textwrap.fill(words, 22)
    axes.set_title(words, fontsize=6, loc="left", pad=2)


def _strip(images: numpy.ndarray, groups: Sequence[int]) -> tuple[numpy.ndarray, list[int]]:
    """Pictures (positions, 3, h, w) beside one another, thin lines within groups and gaps between; left edges."""
    moved = images.transpose(0, 2, 3, 1)
    height, width = moved.shape[1:3]
    ends = set(numpy.cumsum(groups)[:-1].tolist())
    line = numpy.ones((height, BETWEEN, 3)) * numpy.array([int(faint()[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    gap = numpy.ones((height, APART, 3))
    pieces: list[numpy.ndarray] = []
    lefts: list[int] = []
    at = 0
    for k, image in enumerate(moved):
        if k:
            pieces.append(gap if k in ends else line)
            at += pieces[-1].shape[1]
        pieces.append(image)
        lefts.append(at)
        at += width
    return numpy.concatenate(pieces, axis=1), lefts
