"""Figures of tokens in motion: circles and spheres, censuses, attention along time, convergence, branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from separatrix.core.errors import ShapeError

from ..house.layout import captioned, is_narrow, legend_outside, within
from ..house.style import PALETTE, SEQUENTIAL, ink, new_figure, single_axes, styled


@styled
def circle_trajectories(states: ArrayLike, title: str = "") -> Figure:
    """Tokens on the circle: paths (frames, n, 2) drawn outwards in time, so that they do not cover one another."""
    paths = numpy.asarray(states)
    if paths.ndim != 3 or paths.shape[-1] != 2:
        raise ShapeError(f"states must have shape (frames, n, 2); got {paths.shape}.")
    figure, axes = single_axes(width=4.4, height=4.4)
    radius = numpy.linspace(0.55, 1.0, len(paths))[:, None]
    for i in range(paths.shape[1]):
        curve = paths[:, i] * radius
        axes.plot(curve[:, 0], curve[:, 1], color=PALETTE[i % 7], linewidth=1)
        axes.plot(*curve[-1], "o", color=PALETTE[i % 7], markersize=5)
    angle = numpy.linspace(0, 2 * numpy.pi, 200)
    axes.plot(numpy.cos(angle), numpy.sin(angle), color=ink(), linewidth=0.6)
    axes.set(aspect="equal", title=title, xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    axes.axis("off")
    return figure


@styled
def sphere_trajectories(
    panels: Sequence[tuple[str, ArrayLike]], axis: Sequence[ArrayLike] = (), caption: str = ""
) -> Figure:
    """Tokens on the sphere, a panel per title with paths (frames, n, 3); the solid dot is the end of a path.

    ``axis`` gives one direction per panel, such as the principal eigenvector, drawn as a line through the centre.
    """
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    figure, axes = new_figure(
        rows, columns, width=2.9 * columns, height=3.1 * rows, subplot_kw={"projection": "3d", "computed_zorder": False}
    )
    for place, axis3d in enumerate(axes.flat):
        axis3d.axis("off")
        if place >= len(panels):
            continue
        title, states = panels[place]
        _draw_sphere(axis3d, numpy.asarray(states), None if not axis else numpy.asarray(axis[place]))
        axis3d.set_title(title, pad=-4)
    shown = "Tokens on the sphere, one colour each; the solid dot is where a token ends."
    dashed = " Dashed: the principal eigenvector of the value matrix." if axis else ""
    return captioned(figure, caption or shown + dashed)


def _draw_sphere(axes: Any, paths: numpy.ndarray, direction: numpy.ndarray | None) -> None:
    u, v = numpy.meshgrid(numpy.linspace(0, 2 * numpy.pi, 25), numpy.linspace(0, numpy.pi, 13))
    grid = numpy.cos(u) * numpy.sin(v), numpy.sin(u) * numpy.sin(v), numpy.cos(v)
    axes.plot_wireframe(*grid, color=ink(), linewidth=0.25, alpha=0.35, zorder=0)
    if direction is not None:
        ends = numpy.stack([-1.25 * direction, 1.25 * direction])
        axes.plot(*ends.T, color=ink(), linewidth=0.9, linestyle="--", zorder=1)
    for i in range(paths.shape[1]):
        color = PALETTE[i % 7]
        axes.plot(*paths[:, i].T, color=color, linewidth=1.1, zorder=2)
        axes.scatter(*paths[-1:, i].T, color=color, s=26, zorder=4, depthshade=False)
    axes.set_box_aspect((1, 1, 1), zoom=1.45)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.view_init(elev=22, azim=35)


@styled
def census_bars(
    rows: Sequence[Mapping[str, Any]],
    n_instances: int,
    title: str = "",
    labels: tuple[str, str] = ("instances where it occurs", "mean share of starts"),
    x_label: str = "kind of end",
) -> Figure:
    """Two bars per family: share of instances in which it occurs (with interval), and mean share of the starts."""
    figure, axes = single_axes(width=6.6, height=3.8)
    names = [str(row["family"]) for row in rows]
    place = numpy.arange(len(rows))
    occurs = numpy.array([row["instances"] / n_instances for row in rows])
    low = numpy.array([row["instances low"] for row in rows])
    high = numpy.array([row["instances high"] for row in rows])
    spread = numpy.clip(numpy.stack([occurs - low, high - occurs]), 0, None)
    axes.bar(place - 0.2, occurs, 0.38, yerr=spread, capsize=3, color=PALETTE[0], ecolor=ink(), label=labels[0])
    shares = [row["share"] for row in rows]
    errors = numpy.array([row["standard error"] for row in rows])
    reach = within(shares, numpy.asarray(shares) - errors, numpy.asarray(shares) + errors)
    axes.bar(place + 0.2, shares, 0.38, yerr=reach, capsize=3, color=PALETTE[1], ecolor=ink(), label=labels[1])
    axes.set_xticks(place, names)
    if sum(map(len, names)) > (30 if is_narrow() else 60):  # names that would run into each other
        axes.tick_params(axis="x", rotation=25)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    axes.set(xlabel=x_label, ylabel="fraction", ylim=(0, 1.05), title=title)
    legend_outside(figure)
    return captioned(
        figure,
        f"""{labels[0][0].upper()}{labels[0][1:]} and {labels[1]}, with intervals, by kind of end.""",
    )


@styled
def attention_frames(times: Sequence[float], attention: ArrayLike, title: str = "") -> Figure:
    """Attention matrices (frames, n, n) side by side along time, on one scale."""
    matrices = numpy.asarray(attention)
    if matrices.ndim != 3:
        raise ShapeError(f"attention must have shape (frames, n, n); got {matrices.shape}.")
    figure, axes = new_figure(1, len(matrices), width=2.1 * len(matrices) + 0.8, height=2.6)
    image = None
    for panel, matrix, time in zip(axes[0], matrices, times, strict=True):
        image = panel.imshow(matrix, vmin=0, vmax=matrices.max(), cmap=SEQUENTIAL)
        panel.set_title(f"t = {time:.3g}")
        panel.grid(False)
        panel.set_xticks([])
        panel.set_yticks([])
    if image is not None:
        figure.colorbar(image, ax=list(axes[0]), shrink=0.85, label="attention")
    if title:
        figure.suptitle(title)
    return figure


@styled
def convergence_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str = "") -> Figure:
    """Speed of the fastest token against time, on a logarithmic scale, a curve per name."""
    figure, axes = single_axes(width=6.0, height=3.6)
    for name, (times, speed) in curves.items():
        axes.semilogy(times, numpy.maximum(numpy.asarray(speed, dtype=float), 1e-16), label=name)
    axes.set(xlabel=r"time, in units of $1/\lambda_1$", ylabel="speed of the fastest token", title=title)
    axes.legend()
    return captioned(
        figure,
        """Speed of the fastest token along time, on a logarithmic scale, a curve per start. Where a curve dips and
        rises again the tokens rested beside an equilibrium that is not their end.""",
    )


@styled
def metastability_plot(
    times: Sequence[float],
    speed: Sequence[float],
    counts: Mapping[str, Sequence[int]],
    plateaus: Sequence[tuple[float, float]],
    title: str = "",
) -> Figure:
    """Speed and number of clusters along time; shaded intervals are plateaus (start, duration)."""
    figure, axes = new_figure(2, 1, width=6.4, height=4.6, sharex=True)
    top, bottom = axes[:, 0]
    top.semilogy(times, numpy.maximum(numpy.asarray(speed, dtype=float), 1e-16), color=PALETTE[0])
    top.set(ylabel="speed of the fastest token", title=title)
    for name, values in counts.items():
        bottom.step(times, values, where="post", label=f"at distance {name}")
    bottom.set(xlabel=r"time, in units of $1/\lambda_1$", ylabel="number of clusters")
    bottom.legend()
    for start, duration in plateaus:
        for panel in (top, bottom):
            panel.axvspan(start, start + duration, color=PALETTE[4], alpha=0.15, linewidth=0)
    return captioned(
        figure,
        """Speed of the fastest token (top) and number of clusters at three distances (bottom) along time; shaded:
        plateaus, where the tokens hardly move.""",
    )
