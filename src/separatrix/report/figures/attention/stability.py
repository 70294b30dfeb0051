"""Figures of the theory of self-attention: counts of stable points, stable windows, spectra, disagreements."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy
from matplotlib.figure import Figure

from ..house.layout import captioned, is_narrow, legend_outside
from ..house.style import PALETTE, ink, new_figure, single_axes, styled


@styled
def stable_counts(
    shares: Mapping[str, Sequence[float]],
    *,
    ylabel: str,
    title: str,
    sampled: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Stable share of every instance, one colour per eigenvector, instances sorted by their total (Figure 3).

    Args:
        shares: share of all points that is stable, per eigenvector and instance.
        ylabel, title: what is counted.
        sampled: the same from sampled sign vectors, drawn as open circles.
    """
    figure, axes = single_axes(width=6.8, height=3.6)
    stacked = numpy.array([list(values) for values in shares.values()])
    order = numpy.argsort(stacked.sum(0), kind="stable")
    places = numpy.arange(len(order))
    base = numpy.zeros(len(order))
    for colour, (name, values) in zip(PALETTE, shares.items(), strict=False):
        heights = numpy.asarray(values)[order]
        axes.bar(places, heights, bottom=base, width=1.0, color=colour, label=name, linewidth=0)
        base = base + heights
    if sampled is not None:
        totals = numpy.array([list(values) for values in sampled.values()]).sum(0)[order]
        axes.plot(places, totals, "o", mfc="none", mec=ink(), ms=3, mew=0.7, label="sampled")
    axes.set(xlabel="instance, sorted", ylabel=ylabel, xlim=(-0.5, len(order) - 0.5))
    axes.set_title(title)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper left")
    return captioned(
        figure,
        """Share of all consensus and bipartite points that is stable, one bar per random instance, sorted; colours
        tell on which eigenvector they lie."""
        + (" Circles: the same share estimated from sampled points." if sampled is not None else ""),
    )


@styled
def window_plot(
    betas: Sequence[float],
    windows: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    critical: Mapping[str, float],
    title: str,
) -> Figure:
    """Which splits are stable at which inverse temperature: bands of n_1/n with their thresholds.

    Args:
        betas: inverse temperatures.
        windows: lower and upper edge of the stable n_1/n per eigenvector; NaN where there is none.
        critical: the threshold of each eigenvector.
        title: which instance.
    """
    figure, axes = single_axes(width=6.4, height=3.8)
    for colour, (name, (lower, upper)) in zip(PALETTE, windows.items(), strict=False):
        place, low, high = _with_tip(numpy.asarray(betas), numpy.asarray(lower), numpy.asarray(upper), critical[name])
        opens = rf", from $\beta_c = {critical[name]:.3f}$ on" if numpy.isfinite(critical[name]) else ""
        axes.fill_between(place, low, high, color=colour, alpha=0.3, linewidth=0, label=f"stable on {name}{opens}")
        axes.plot(place, low, color=colour)
        axes.plot(place, high, color=colour)
        if numpy.isfinite(critical[name]) and critical[name] <= max(betas):
            axes.axvline(critical[name], color=colour, linestyle=":", linewidth=1)
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"share $n_1/n$ at $+v_k$", ylim=(0, 1))
    axes.set_title(title)
    axes.set_xlim(min(betas), max(betas))
    legend_outside(figure, at="lower")
    return captioned(
        figure,
        """Which splits of the tokens into two opposite groups are stable at which inverse temperature: bands of the
        share of the first group. Each band opens at its critical value (dotted), from the even split outwards.""",
    )


def _with_tip(
    betas: numpy.ndarray, low: numpy.ndarray, high: numpy.ndarray, critical: float
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The edges of a band with the point where it opens, which no grid of temperatures hits."""
    if not betas.min() < critical < betas.max():
        return betas, low, high
    index = int(numpy.searchsorted(betas, critical))
    return numpy.insert(betas, index, critical), numpy.insert(low, index, 0.5), numpy.insert(high, index, 0.5)


@styled
def spectrum_plot(spectra: Mapping[str, Sequence[complex | float]], title: str) -> Figure:
    """Tangent eigenvalues of several states; the right half plane is shaded.

    Complex spectra share the complex plane; spectra that are all real get a line each.
    """
    points = {name: numpy.asarray(values, dtype=complex) for name, values in spectra.items()}
    flat = all(float(numpy.abs(values.imag).max()) < 1e-9 for values in points.values())
    figure, axes = single_axes(width=5.8, height=0.9 + 0.5 * len(points) if flat else 3.8)
    for index, (name, values) in enumerate(points.items()):
        colour, marker = PALETTE[index % len(PALETTE)], "osD^vP"[index % 6]
        height = numpy.full(len(values), index) if flat else values.imag
        axes.plot(values.real, height, marker, mfc="none", mec=colour, ms=6, label=name)
    low, high = axes.get_xlim()
    high = max(high, 0.1 * (high - low))
    axes.axvspan(0, high, color=PALETTE[1], alpha=0.08, linewidth=0)
    axes.axvline(0, color=ink(), linewidth=0.8)
    axes.set(xlim=(low, high), xlabel="real part")
    axes.set_title(title)
    if flat:
        axes.set_yticks(range(len(points)), list(points))
        axes.set_ylim(len(points) - 0.5, -0.5)
    else:
        axes.set_ylabel("imaginary part")
        axes.legend(loc="best")
    return captioned(
        figure,
        """Eigenvalues of the Jacobian on the tangent space of each state. A state is stable if all lie left of
        zero; the shaded side is unstable.""",
    )


@styled
def disagreements(counts: Mapping[str, int], n_points: int, title: str) -> Figure:
    """How many points each criterion decides against the exact spectrum, as horizontal bars with their numbers."""
    figure, axes = new_figure(1, 1, width=6.4, height=0.6 + 0.5 * len(counts))
    names = [textwrap.fill(name, 22) if is_narrow() else name for name in counts]
    bars = axes[0, 0].barh(names, list(counts.values()), color=PALETTE[0], height=0.6)
    axes[0, 0].bar_label(bars, padding=3, fontsize=8)
    axes[0, 0].invert_yaxis()
    axes[0, 0].grid(axis="y", visible=False)
    axes[0, 0].margins(x=0.12)
    axes[0, 0].set(xlabel=f"points decided wrongly, of {n_points}")
    axes[0, 0].set_title(title)
    return captioned(
        figure,
        f"""How many of {n_points} equilibria each criterion decides against their exact spectrum; the numbers stand
        beside the bars. A right criterion has none.""",
    )


@styled
def branch_plot(
    branches: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    events: Mapping[str, float],
    xlabel: str,
    title: str = "",
) -> Figure:
    """Largest real part along branches of equilibria; vertical lines are events predicted in closed form."""
    figure, axes = single_axes(width=6.4, height=3.8)
    for place, (name, (parameters, abscissa)) in enumerate(branches.items()):
        axes.plot(parameters, abscissa, color=PALETTE[place % 7], label=name)
        if name in events:
            axes.axvline(events[name], color=PALETTE[place % 7], linestyle=":", linewidth=1.2)
    axes.axhline(0, color=ink(), linewidth=0.8)
    axes.set(xlabel=xlabel, ylabel="largest real part of the tangent spectrum", title=title)
    axes.legend()
    return captioned(
        figure,
        """Largest real part of the spectrum along branches of equilibria: stable below zero. Dotted lines are
        thresholds in closed form; each branch should cross zero on its own.""",
    )
