"""The heading of a column: words for the names that code uses."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORDS = {
    "d": "dimension d",
    "d_model": "width",
    "embedding_std": "size of embeddings",
    "exponent_2_fails": "exponent 2 fails",
    "extra_count": "extra eigenvalues",
    "extra_printed": "extra eigenvalues, printed",
    "first_by_chance": "first, by chance",
    "flow_learned": "learned by the flow",
    "for_a_gradient": "kept for a gradient",
    "h_var": "length variance h·h/N",
    "haar_minus_gaussian": "orthogonal minus independent",
    "half_width": "half-width of the 95 % interval",
    "heavy_error": "distance of the heavy layer",
    "k": "eigenvector k",
    "h_var_spread": "spread of the length variance",
    "lr": "learning rate",
    "lr_factor": "factor on the learning rate",
    "lstm": "LSTM",
    "m": "clusters m",
    "mean_error": "mean error",
    "n1": "first group",
    "n2": "second group",
    "n_hidden": "hidden units",
    "n_in": "inputs",
    "n_out": "outputs",
    "offdiagonal": "off the diagonal",
    "phi": "activation",
    "plain_double": "in plain double precision",
    "rate_at_edge": "rate at the edge of the search",
    "right_if_kept": "right if kept",
    "right_if_lost": "right if lost",
    "score_in": "score of the inputs",
    "score_out": "score of the outputs",
    "sd": "standard deviation",
    "share_of_first": "share of the first positions",
    "share_on": "share of units on",
    "se": "standard error",
    "std": "standard deviation",
    "std_loss": "standard deviation of the loss",
    "steps_times_balance": "steps × |balance|",
    "tied": "tied weights",
    "trace_error": "error of the trace",
    "trained_at": "trained at",
    "until_90": "updates until 90 %",
    "urnn": "uRNN",
    "variance_diagonal": "variance on the diagonal",
    "variance_offdiagonal": "variance off the diagonal",
    "weight_scale": "weight scale √V",
    "weight_var": "weight variance V",
    "within_10000_steps": "within 10000 steps",
    "without_noise_var": "variance without noise",
}
"""Headings that do not follow from the name itself. Documents' symbols stay beside the words."""
_FRONTS = {"theory": "theory", "document": "document", "printed": "printed", "unbounded": "without a bound"}
"""Who says a number, as the first part of a name."""
_AFTER = {"before": "before training", "after": "after training"}


def heading(name: str, beside: Collection[str] = ()) -> str:
    """A column's name as people read it; ``beside`` are the other columns, where a short name depends on them.

    Example:
        >>> heading("n_seeds"), heading("theory_h_var"), heading("kernel_distance"), heading("radius_after")
        ('seeds', 'theory: length variance h·h/N', 'kernel distance', 'radius after training')
        >>> heading("n", ["d", "n"]), heading("n", ["model", "n"]), heading("v_1")
        ('tokens n', 'runs', 'v₁')
    """
    if name == "n":
        return "tokens n" if {"d", "beta"} & set(beside) else "runs"
    if name in _WORDS:
        return _WORDS[name]
    if symbol := re.fullmatch(r"(.*\b)v_(\d+)", name):
        return symbol[1] + "v" + "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in symbol[2])
    first, _, rest = name.partition("_")
    if rest and first in _FRONTS:
        return f"{_FRONTS[first]}: {heading(rest)}"
    if rest and first == "n":
        return heading(rest)
    front, _, last = name.rpartition("_")
    if front and last in _AFTER:
        return f"{heading(front)} {_AFTER[last]}"
    return re.sub(r"(?<!\bv)_", " ", name)
