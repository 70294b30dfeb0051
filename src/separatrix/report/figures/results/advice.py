"""Figures of advice: what the advised changes did to accuracy, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from ..house.layout import captioned, is_narrow, legend_outside
from ..house.style import COLOURS, faint, ink, single_axes, styled

_COLOUR = {"helps": COLOURS["blue"], "harms": COLOURS["vermilion"], "no gain shown": COLOURS["grey"]}


@styled
def draw_gains(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Mean paired difference of accuracy with its interval, the largest gain on top; a square promises nothing."""
    ordered = sorted(rows, key=lambda row: row["gain"])
    names = [f"{row['finding'].replace('_', ' ')}: {row['change']} ({row['optimiser']})" for row in ordered]
    figure, ax = single_axes(width=7.2, height=0.8 + (0.36 if is_narrow() else 0.2) * len(ordered))
    ax.axvline(0.0, color=faint(), linewidth=0.8)
    for place, row in enumerate(ordered):
        colour = _COLOUR[row["result"]]
        low, high = (min(max(float(row[end]), -1.0), 1.0) for end in ("low", "high"))
        ax.plot([low, high], [place, place], color=colour, linewidth=1.4)
        ax.plot(row["gain"], place, "o" if row["promised"] else "s", color=colour, markersize=4)
    if is_narrow():  # there is no room beside the axes: each name stands above its interval
        ax.set_yticks(range(len(ordered)), [""] * len(ordered))
        ax.set_ylabel("fault: advised change (optimiser)")
        for place, name in enumerate(names):
            where: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8}
            ax.text(0.01, place + 0.45, name, **where)
    else:
        ax.set_yticks(range(len(ordered)), names)
        ax.tick_params(axis="y", labelsize=7)
    ax.set(xlabel="test accuracy with the advised change minus without it", ylim=(-0.7, len(ordered) - 0.1))
    for result in dict.fromkeys(row["result"] for row in reversed(ordered)):
        ax.plot([], [], color=_COLOUR[result], linewidth=1.4, label=result)
    for promised, marker, name in ((True, "o", "accuracy promised"), (False, "s", "not promised")):
        if any(bool(row["promised"]) == promised for row in rows):
            ax.plot([], [], marker, color=ink(), markersize=4, label=name)
    legend_outside(figure)
    shown = "Circles: the advice promises accuracy; squares: it does not."
    words = "Blue: the 95 % interval lies above zero; red: below; grey: no gain shown."
    return captioned(figure, f"Paired differences over seeds. {shown} {words}")
