"""Figures of balance and regime: profiles of a model, what training changed, conservation laws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from separatrix.diagnose.regime.verdict import LINEARISED_ERROR

from ..house.layout import captioned, legend_outside, plain_log_ticks, within
from ..house.plots import plots
from ..house.style import PALETTE, ink, new_figure, single_axes, styled

if TYPE_CHECKING:
    from separatrix.diagnose.balance.profile import BalanceProfile
    from separatrix.diagnose.regime.rich_lazy import RichLazy

_LAW_COLOURS = dict(
    zip(
        ("full matrix", "diagonal", "trace of rotation pairs", "norm per neuron", "norm of the layer", "nothing"),
        (*PALETTE[:5], PALETTE[6]),
        strict=True,
    )
) | {"not checked": PALETTE[5]}
_ROW = 0.28
_OPTIMISERS = {"gd": "gradient descent", "momentum": "momentum", "adam": "Adam"}


@plots("BalanceProfile")
def balance_bars(profile: BalanceProfile, ax: Axes) -> None:
    """Balance of each pair as a bar, with the quartiles and the range of its eigenvalues or diagonal."""
    pairs = [pair for pair in profile.pairs if pair.pair.first is not None]
    for row, pair in enumerate(pairs):
        low, lower, _, upper, high = pair.quantiles.tolist()
        ax.plot([low, high], [row, row], color=ink(), linewidth=0.7, zorder=2)
        ax.plot([lower, upper], [row, row], color=ink(), linewidth=2.5, solid_capstyle="butt", zorder=3)
        ax.barh(row, pair.balance, height=0.7, color=_LAW_COLOURS[pair.law.label], alpha=0.75, zorder=1)
    ax.axvline(0, color=ink(), linewidth=0.8)
    ax.set_yticks(range(len(pairs)), [pair.name for pair in pairs])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("balance (bar: Tr D / n; lines: quartiles and range)")
    for law in dict.fromkeys(pair.law.label for pair in pairs):
        ax.barh([0], [0], color=_LAW_COLOURS[law], alpha=0.75, label=law if law == "not checked" else f"keeps {law}")


@styled
def draw_balance_profile(profile: BalanceProfile) -> Figure:
    """The balance of every layer pair of a model, coloured by what gradient flow keeps of it."""
    n_pairs = sum(pair.pair.first is not None for pair in profile.pairs)
    figure, axes = single_axes(width=7.0, height=1.3 + _ROW * max(n_pairs, 1))
    balance_bars(profile, axes)
    if n_pairs:
        legend_outside(figure)
    return captioned(
        figure,
        """Balance of each pair of layers (bar: Tr D / n; lines: quartiles and range of its eigenvalues or
        diagonal), coloured by what gradient flow keeps of it.""",
    )


@plots("RichLazy")
def regime_bars(result: RichLazy, ax: Axes) -> None:
    """The measure behind the verdict with the band between lazy and rich, and the two that stand beside it."""
    measures = (
        ("error of the linearised network", result.linearised_error),
        ("kernel change", result.kernel_change),
        ("feature change, 1 - CKA", result.feature_change),
    )
    for row, (_, value) in enumerate(measures):
        ax.barh(row, 0 if math.isnan(value) else value, height=0.5, color=PALETTE[0])
    low, high = LINEARISED_ERROR.lazy_below, LINEARISED_ERROR.rich_above
    ax.barh(0, high - low, left=low, height=0.8, color=PALETTE[4], alpha=0.35)
    ax.set_yticks(range(len(measures)), [name for name, _ in measures])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("lazy left of the band, rich right of it")
    ax.set_title(f"{result.verdict.label} (loss {result.loss_after:.3g})")


@styled
def draw_rich_lazy(result: RichLazy) -> Figure:
    """Per layer: movement of the weights, change of its kernel, change of its features; the verdict as title."""
    panels = (
        ("movement", "relative movement"),
        ("kernel_change", "relative kernel change"),
        ("feature_change", "feature change, 1 - CKA"),
    )
    names = [row.layer for row in result.layers]
    figure, axes = new_figure(1, 3, width=8.0, height=1.6 + _ROW * max(len(names), 2), sharey=True)
    for panel, (field, label) in zip(axes[0], panels, strict=True):
        values = [getattr(row, field) for row in result.layers]
        shown = [0.0 if math.isnan(value) else value for value in values]
        panel.barh(range(len(names)), shown, height=0.7, color=PALETTE[0])
        panel.set_xlabel(label)
        panel.grid(axis="y", visible=False)
        for row, value in enumerate(values):
            text = " does not apply" if math.isnan(value) else f" {value:.2g}"
            panel.annotate(text, (0 if math.isnan(value) else value, row), va="center", fontsize=7, color=ink())
        panel.margins(x=0.25)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    figure.suptitle(
        f"{result.verdict.label}: kernel changed by {result.kernel_change:.2g}, features by "
        f"{result.feature_change:.2g}, linearised error {result.linearised_error:.2g} (loss {result.loss_after:.3g})",
    )
    return figure


@styled
def draw_equal_loss(rows: Sequence[Mapping[str, Any]], target_loss: float) -> Figure:
    """Steps, feature change, kernel distance and test accuracy against alpha, at one training loss."""
    panels = (
        ("steps", "steps to the loss", (1.0, math.inf)),
        ("feature_change", "feature change, 1 - CKA", (0.0, 1.0)),
        ("kernel_distance", "kernel distance", (0.0, 1.0)),
        ("accuracy", "test accuracy", (0.0, 1.0)),
    )
    figure, axes = new_figure(1, 4, width=10.0, height=3.0)
    alphas = [row["alpha"] for row in rows]
    for panel, (field, label, bounds) in zip(axes[0], panels, strict=True):
        means = numpy.array([row[field] for row in rows])
        spread = numpy.array([row[f"{field} sd"] for row in rows])
        panel.errorbar(alphas, means, within(means, means - spread, means + spread, bounds), marker="o", capsize=3)
        panel.set_xscale("log", base=2)
        panel.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
        panel.set_xlabel("scale of the output, alpha")
        panel.set_ylabel(label)
    axes[0, 0].set_yscale("log")
    balances = ", ".join(f"{row['alpha']:g}: {row['balance']:+.2f}" for row in rows)
    return captioned(
        figure,
        f"""A network for digits trained to the same loss ({target_loss:g}) after its output was scaled by alpha and
        its layers rebalanced (balance by alpha {balances}); bars: one standard deviation over seeds. Compare how
        much features and kernel change with how little the test accuracy does.""",
    )


@styled
def draw_balance_under_training(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Fitted balance (top) and distance from balanced (bottom) after each task, a column per activation."""
    activations = list(dict.fromkeys(row["activation"] for row in rows))
    balances = list(dict.fromkeys(row["balance"] for row in rows))
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    figure, axes = new_figure(2, len(activations), width=8.0, height=4.6, sharex=True, sharey="row")
    for column, activation in enumerate(activations):
        for colour, balance in zip(PALETTE, balances, strict=False):
            mine = [row for row in rows if row["activation"] == activation and row["balance"] == balance]
            for panel, field in zip(axes[:, column], ("fitted", "distance"), strict=True):
                places = [stages.index(row["stage"]) for row in mine]
                values, spreads = [row[field] for row in mine], [row[f"{field} spread"] for row in mine]
                panel.errorbar(places, values, spreads, marker="o", capsize=3, color=colour, label=f"{balance:g}")
        axes[0, column].set_title(activation)
        axes[1, column].set_xticks(range(len(stages)), stages)
        axes[1, column].set_xlabel("stage of training")
    axes[0, 0].set_ylabel("fitted balance Tr D / n")
    axes[1, 0].set_ylabel("distance |D - balance I|")
    legend_outside(figure, title="initial balance", title_fontsize=8)
    return captioned(
        figure,
        """Fitted balance (top) and distance from balanced (bottom) of two-layer networks after each of two tasks,
        with one standard deviation over seeds. Look at which activations keep the one, the other or both.""",
    )


@styled
def draw_conservation(laws: Sequence[Mapping[str, Any]], drift: Sequence[Mapping[str, Any]]) -> Figure:
    """Rate of each law by one backward pass (left); drift of the balance against learning rate (right)."""
    blocks = list(dict.fromkeys(row["block"] for row in laws))
    rows = 1.2 + _ROW * len(blocks)
    figure, axes = new_figure(1, 2, width=10.0, height=rows, stacked=(0.75 * rows, 3.0))
    left, right = axes[0]
    for label, field, marker, colour in (
        ("law of the block", "residual", "o", PALETTE[0]),
        ("next larger law", "its residual", "s", PALETTE[1]),
    ):
        kept = [row for row in laws if field == "its residual" or row["law"] != "nothing"]
        points = [(max(row[field], 1e-18), blocks.index(row["block"])) for row in kept if not math.isnan(row[field])]
        left.plot(*zip(*points, strict=True), marker, color=colour, label=label, alpha=0.8)
    left.set_xscale("log")
    left.set_yticks(range(len(blocks)), blocks)
    left.invert_yaxis()
    left.set_xlabel("relative rate along the gradient")
    left.legend(loc="center")
    for colour, (optimiser, name) in zip(PALETTE, _OPTIMISERS.items(), strict=False):
        mine = sorted((row["rate"], row["drift"]) for row in drift if row["optimiser"] == optimiser)
        rates, drifts = zip(*mine, strict=True)
        right.plot(rates, drifts, marker="o", color=colour, label=name)
    right.set_xscale("log")
    right.set_yscale("log")
    plain_log_ticks(right.xaxis)
    right.set_xlabel("learning rate")
    right.set_ylabel("relative drift of the balance")
    right.legend()
    return captioned(
        figure,
        """Left: rate at which each block's law changes along the gradient, by one backward pass; the law of a block
        should lie at rounding level, the next larger one should not. Right: drift of the balance over training
        against the learning rate; what is conserved by the flow drifts less at smaller rates.""",
    )
