"""The claims of Fig. 2 (equal units) and of Fig. 1 of appendix A (equal parameters), which say the same of two runs."""

from __future__ import annotations

from typing import Any

from separatrix.lab import Claim, in_turn, with_column

from .comparison import GAPS, SCORES, gap_above, loss_near_baseline, moved, score_above

ORTHOGONAL = ("nnRNN", "expRNN", "RNN-orth", "EURNN")
OTHERS = ORTHOGONAL[1:]
FORGETFUL = ("LSTM", "RNN")


def told(change: Any, task: str) -> Any:
    """A change to a summary in which nnRNN learned the task, without which nothing is told of the others."""
    return in_turn(with_column(SCORES, "mean", 0.97, {"task": task, "model": "nnRNN"}), change)


def comparison_claims(prefix: str, sizes: str) -> tuple[Claim, ...]:
    """Five claims; ``sizes`` says what is equal."""
    return (
        Claim(
            id=f"{prefix}-copy-solved",
            statement=f"nnRNN and orthogonal networks solve the copy task, {sizes}.",
            measures="median recall of 50 test batches",
            test="95 % interval over seeds above .9",
            judge=score_above("copy", ORTHOGONAL, 0.9),
            counterfeit=moved(SCORES, "copy", ORTHOGONAL, 0.1, 0.2),
            genuine=moved(SCORES, "copy", ORTHOGONAL, 0.97, 0.99),
            scale="laptop",
        ),
        Claim(
            id=f"{prefix}-copy-failed",
            statement=f"LSTM and RNN do not solve the copy task, {sizes}.",
            measures="median test loss over that without memory",
            test="95 % interval over seeds above .8; below .6 of the best network nothing is told",
            judge=loss_near_baseline(FORGETFUL, 0.8),
            counterfeit=told(moved(SCORES, "copy", FORGETFUL, 0.01, 0.1, "loss_"), "copy"),
            genuine=told(moved(SCORES, "copy", FORGETFUL, 0.95, 1.05, "loss_"), "copy"),
            scale="laptop",
        ),
        Claim(
            id=f"{prefix}-copy-match",
            statement=f"On the copy task nnRNN matches orthogonal networks, {sizes}.",
            measures="recall of nnRNN minus that of each orthogonal network, seed by seed",
            test="95 % intervals above -.05; below .6 of the best network nothing is told",
            judge=gap_above("copy", OTHERS, -0.05),
            counterfeit=told(moved(GAPS, "copy", OTHERS, -0.5, -0.3), "copy"),
            genuine=told(moved(GAPS, "copy", OTHERS, -0.01, 0.01), "copy"),
            scale="laptop",
        ),
        Claim(
            id=f"{prefix}-pixels-match",
            statement=f"On permuted pixels nnRNN matches orthogonal networks, {sizes}.",
            measures="test accuracy of nnRNN minus that of each orthogonal network, seed by seed",
            test="95 % intervals above -.02; below .6 of the best network nothing is told",
            judge=gap_above("pixels", OTHERS, -0.02),
            counterfeit=told(moved(GAPS, "pixels", OTHERS, -0.3, -0.1), "pixels"),
            genuine=told(moved(GAPS, "pixels", OTHERS, -0.01, 0.01), "pixels"),
            scale="laptop",
        ),
        Claim(
            id=f"{prefix}-pixels-lesser",
            statement=f"On permuted pixels RNN and LSTM are worse than nnRNN, {sizes}.",
            measures="test accuracy of nnRNN minus that of the other, seed by seed",
            test="95 % intervals above 0; below .6 of the best network nothing is told",
            judge=gap_above("pixels", FORGETFUL, 0.0),
            counterfeit=told(moved(GAPS, "pixels", FORGETFUL, -0.3, -0.1), "pixels"),
            genuine=told(moved(GAPS, "pixels", FORGETFUL, 0.05, 0.1), "pixels"),
            scale="laptop",
        ),
    )
