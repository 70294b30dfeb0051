"""Every pair: which finding it plants, what is advised, and whether the advice's text promises accuracy.

Written down, with the rule that judges them, before any of them was trained; ``rate-by-curvature`` was added after
``wild-rate`` had shown no gain, and is what is advised since.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from . import sequences, tokens, vectors
from .lessons import Lesson, adam, sgd


@dataclasses.dataclass(frozen=True)
class Pair:
    """A planted fault and the change that is advised for it."""

    finding: str
    """What ``separatrix.check`` should say before, and no longer after."""
    change: str
    optimiser: str
    lesson: Callable[[int, bool], Lesson]
    promised: bool = True
    """Whether a gain in accuracy is claimed; otherwise the text says that only something else is certain."""


PAIRS: dict[str, Pair] = {
    "vanishing-sgd": Pair("vanishing", "He initialisation", "SGD", vectors.scaled_depth(0.2, sgd(0.1))),
    "vanishing-adam": Pair("vanishing", "He initialisation", "Adam", vectors.scaled_depth(0.2, adam(1e-3))),
    "deep-he": Pair("input_lost", "He initialisation", "Adam", vectors.default_depth("he")),
    "deep-residual": Pair("input_lost", "residual blocks with normalisation", "Adam",
                          vectors.default_depth("residual")),
    "deep-norm": Pair("input_lost", "LayerNorm alone", "Adam", vectors.default_depth("norm"), promised=False),
    "exploding-sgd": Pair("exploding", "division by the growth per layer", "SGD", vectors.scaled_depth(4.0, sgd(0.1))),
    "exploding-adam": Pair("exploding", "division by the growth per layer", "Adam",
                           vectors.scaled_depth(4.0, adam(1e-3))),
    "dead": Pair("dead_units", "biases of zero", "SGD", vectors.dead),
    "saturated": Pair("saturated", "smaller weights", "SGD", vectors.saturated),
    "symmetric": Pair("symmetric_units", "random initialisation", "SGD", vectors.symmetric),
    "stuck": Pair("stuck_weights", "one of the two factors not zero", "Adam", vectors.stuck),
    "unscaled-sgd": Pair("unscaled_input", "standardised features", "SGD", vectors.unscaled(sgd(0.1))),
    "unscaled-adam": Pair("unscaled_input", "standardised features", "Adam", vectors.unscaled(adam(1e-3)),
                          promised=False),
    "double-softmax-sgd": Pair("output_loss_mismatch", "last softmax removed", "SGD", vectors.double_softmax(sgd(0.1))),
    "double-softmax-adam": Pair("output_loss_mismatch", "last softmax removed", "Adam",
                                vectors.double_softmax(adam(3e-3)), promised=False),
    "raw-nll": Pair("output_loss_mismatch", "log_softmax at the end", "SGD", vectors.raw_nll),
    "loud-head-sgd": Pair("initial_loss", "smaller head", "SGD", vectors.loud_head(300.0, sgd(0.1))),
    "loud-head-adam": Pair("initial_loss", "smaller head", "Adam", vectors.loud_head(60.0, adam(1e-3), 40),
                           promised=False),
    "linear-chain": Pair("missing_activation", "activations inserted", "Adam", vectors.linear_chain),
    "wild-rate": Pair("learning_rate", "rate / 10 until one step helps", "SGD", vectors.wild_rate),
    "rate-by-curvature": Pair("learning_rate", "rate of 1 / curvature", "SGD", vectors.rate_by_curvature),
    "frozen": Pair("frozen_layer", "thawed", "SGD", vectors.frozen, promised=False),
    "cut-off": Pair("detached", "connected", "SGD", vectors.cut_off),
    "logarithm": Pair("nonfinite_output", "eps inside the logarithm", "SGD", vectors.logarithm),
    "root": Pair("nonfinite_gradient", "argument kept inside the root's domain", "SGD", vectors.root),
    "tiny-batch": Pair("tiny_norm_batch", "GroupNorm", "SGD", vectors.tiny_batch),
    "stale": Pair("stale_statistics", "statistics estimated again", "none", vectors.stale),
    "forget-gate": Pair("short_memory", "forget bias +2", "Adam", sequences.forget_bias(-6.0)),
    "forget-default": Pair("memory", "forget bias +2", "Adam", sequences.forget_bias(None)),
    "small-recurrence": Pair("short_memory", "orthogonal recurrent matrix", "Adam", sequences.recurrent_scale(0.2)),
    "large-recurrence": Pair("time_growth", "orthogonal recurrent matrix", "Adam", sequences.recurrent_scale(4.0)),
    "unstable-scan": Pair("time_growth", "multipliers below one", "Adam", sequences.diagonal(sequences.LENGTH),
                          promised=False),
    "unstable-long": Pair("time_growth", "multipliers below one", "Adam", sequences.diagonal(120), promised=False),
    "cut-in-time": Pair("time_cut", "detach removed", "Adam", sequences.cut_in_time),
    "batch-first": Pair("batch_mixing", "batch_first=True", "Adam", sequences.forgotten_batch_first),
    "no-rest": Pair("no_equilibrium", "weight scaled below critical", "Adam", sequences.no_rest),
    "sharp-attention": Pair("attention_collapse", "1 / sqrt(d)", "Adam", tokens.reader(1, 250, sharp=150.0)),
    "no-residual": Pair("rank_collapse", "residual connections", "Adam", tokens.reader(6, 250, residual=False)),
    "wrong-axis": Pair("softmax_axis", "dim=-1", "Adam", tokens.reader(1, 250, axis=-2), promised=False),
    "leak": Pair("causal_leak", "every layer masked", "Adam", tokens.leak),
    "broken-tie": Pair("broken_tie", "tied again", "Adam", tokens.broken_tie, promised=False),
}  # fmt: skip

WITHOUT = {
    "nonfinite_weights": "there is nothing to train before a good checkpoint is restored",
    "nonfinite_input": "the data are to be cleaned",
    "forward_raises": "nothing runs",
    "backward_raises": "nothing can be learned",
    "loss_raises": "nothing runs",
    "unused_parameters": "they change no prediction; distributed training waits for them",
}
"""Findings without a pair, and why."""
