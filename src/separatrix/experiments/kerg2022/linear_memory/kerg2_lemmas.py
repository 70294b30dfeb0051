"""kerg2022, chapter 2: lemmas on gradients and normal matrices, Fisher information, memory of linear networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, condition, judge, with_entry

from . import lemma_measures, memory_measures
from .parts import Measured, at_least, at_most, experiment_of_parts, rows_within, run_part, within

PARTS: dict[str, Callable[[int, Any], Payload]] = {
    "lemma 2.1.1": lemma_measures.chain_rule,
    "lemma 2.1.2": lemma_measures.affine_gradients,
    "lemma 2.3.1": lemma_measures.normal_schur_form,
    "lemma 2.3.2": lemma_measures.normal_triangular,
    "corollary 2.3.3": lemma_measures.orthonormal_eigenbasis,
    "lemma 2.3.4": lemma_measures.conjugate_pairs,
    "henrici": lemma_measures.henrici_departure,
    "real Schur form": lemma_measures.real_schur_blocks,
    "section 2.5": lemma_measures.fisher_information,
    "memory matrix": memory_measures.memory_matrix,
    "normal networks": memory_measures.normal_networks,
    "ceiling": memory_measures.memory_ceiling,
    "feedback line": memory_measures.feedback_line,
    "equality": memory_measures.equality_of_the_bound,
    "interference": memory_measures.interference,
}


def run(cell: Cell) -> Payload:
    """Measure one statement at random instances."""
    return run_part(cell, PARTS)


def judge_blocks(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch2-real-schur``."""
    found = summary.parts["real Schur form"]
    stated = [
        Row("largest skew of a block", found["largest skew of a block"], 0.0, 1e-6),
        *rows_within(summary, "real Schur form", [at_most("residual", 1e-12)]),
    ]
    normal = found["largest skew, normal matrices"]
    right = [Row("largest skew of a block, normal matrices", normal, 0.0, 1e-6)]
    says = "the blocks are rotation blocks if the matrix is normal; else each has a third number, its skew"
    evidence = f"skew of a block up to {found['largest skew of a block']:.3g}, {small(normal)} if normal"
    return judge(evidence, stated, condition(says, right))


def judge_ceiling(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch2-ceiling``."""
    found = summary.parts["ceiling"]
    stated = [
        *rows_within(summary, "ceiling", [at_most("largest share, random", 1 - 1e-9)]),
        Row("share of N/eps that the strongest line reaches", found["least share, strongest line"], 1.0, 1e-12),
    ]
    limits = [
        at_most("gap of the strongest line", 2e-6),
        at_least("least eigenvalue of the spatial matrix", 1e-300),
    ]
    says = (
        "N/eps is approached as the line's gain grows and reached by no network, the spatial matrix being positive "
        "definite"
    )
    evidence = (
        f"a line of gain 10^6 reaches all but {small(found['gap of the strongest line'])} of N/eps; random networks at "
        f"most {found['largest share, random']:.3f}"
    )
    return judge(evidence, stated, condition(says, rows_within(summary, "ceiling", limits)))


def lemma(id: str, place: str, statement: str, measures: str, test: str, **parts: Any) -> Claim:
    """A claim of this experiment."""
    return Claim(id=f"kerg2022-ch2-{id}", place=place, statement=statement, measures=measures, test=test, **parts)


CLAIMS = (
    lemma(
        "lemma2-1-1",
        "Lemma 2.1.1",
        "The gradient by an argument is the transposed Jacobian times the gradient by the value.",
        "central differences of composed maps against Jacobian (forward mode) and gradient",
        "1e-8",
        judge=within("lemma 2.1.1", at_most("error", 1e-8)),
        counterfeit=with_entry("parts", "lemma 2.1.1", error=0.1),
    ),
    lemma(
        "lemma2-1-2",
        "Lemma 2.1.2",
        "The gradient by the matrix of an affine map is an outer product, that by the offset the gradient itself.",
        "central differences by every entry",
        "1e-8",
        judge=within("lemma 2.1.2", at_most("error, matrix", 1e-8), at_most("error, offset", 1e-8)),
        counterfeit=with_entry("parts", "lemma 2.1.2", **{"error, matrix": 0.1}),
    ),
    lemma(
        "lemma2-3-1",
        "Lemma 2.3.1",
        "A matrix is normal if and only if its Schur form is.",
        "norms of the commutators of both; normal and other matrices told apart by either",
        "1e-12 relative; no disagreement",
        judge=within("lemma 2.3.1", at_most("difference of commutators", 1e-12), at_most("disagreements", 0.0)),
        counterfeit=with_entry("parts", "lemma 2.3.1", disagreements=2),
    ),
    lemma(
        "lemma2-3-2",
        "Lemma 2.3.2",
        "A triangular matrix is normal if and only if it is diagonal.",
        "commutator of triangular matrices, at random and made as small as descent can, against Henrici's bound",
        "never below the bound, which is positive off the diagonal matrices; 0 to 1e-12 for diagonal ones",
        judge=within(
            "lemma 2.3.2",
            at_least("least commutator over its bound", 1 - 1e-9),
            at_least("least after descent", 1 - 1e-9),
            at_most("commutator of diagonal ones", 1e-12),  # some processors fuse the products of complex numbers
        ),
        counterfeit=with_entry("parts", "lemma 2.3.2", **{"least after descent": 0.01}),
    ),
    lemma(
        "corollary2-3-3",
        "Corollary 2.3.3",
        "Normal matrices are those with an orthonormal eigenbasis.",
        "Gram matrices of unit eigenvectors of normal and of other random matrices",
        "1e-10 if normal; above 1e-2 if not",
        judge=within("corollary 2.3.3", at_most("deviation, normal", 1e-10), at_least("least deviation, others", 1e-2)),
        counterfeit=with_entry("parts", "corollary 2.3.3", **{"deviation, normal": 0.3}),
    ),
    lemma(
        "lemma2-3-4",
        "Lemma 2.3.4",
        "Eigenvalues of real matrices are real or come in conjugate pairs.",
        "distance of the spectrum, from characteristic polynomials, to its conjugate",
        "1e-6",
        judge=within("lemma 2.3.4", at_most("distance", 1e-6)),
        counterfeit=with_entry("parts", "lemma 2.3.4", distance=0.1),
    ),
    lemma(
        "henrici",
        "section 2.3.1",
        "The departure from normality is zero exactly for normal matrices.",
        "departure by eigenvalues against that by the Schur form; its values for normal and other matrices",
        "1e-10; 1e-6 if normal; above 1e-2 if not",
        judge=within(
            "henrici",
            at_most("difference of the two forms", 1e-10),
            at_most("departure, normal", 1e-6),
            at_least("least departure, others", 1e-2),
        ),
        counterfeit=with_entry("parts", "henrici", **{"departure, normal": 0.3}),
    ),
    lemma(
        "real-schur",
        "section 2.3.2",
        "The 2x2 blocks of a real Schur form are rotation blocks.",
        "skew of LAPACK's blocks for random and for normal real matrices",
        "zero to 1e-6",
        judge=judge_blocks,
        counterfeit=with_entry("parts", "real Schur form", **{"largest skew, normal matrices": 0.5}),
        erratum="kerg2022-rotation-blocks",
    ),
    lemma(
        "fisher",
        "section 2.5",
        "Fisher information is the variance of the score and the expected curvature; the score has mean zero.",
        "both, by quadrature, for the mean and spread of a normal law",
        "1e-10",
        judge=within("section 2.5", at_most("difference", 1e-10), at_most("mean score", 1e-10)),
        counterfeit=with_entry("parts", "section 2.5", difference=0.1),
    ),
    lemma(
        "memory-matrix",
        "section 2.6",
        "The memory matrix of a linear network is (W^k v)' C^-1 (W^l v), whatever the signal was.",
        "curvature of the log-likelihood by automatic differentiation at two histories, C by another solver",
        "1e-9",
        judge=within("memory matrix", at_most("error", 1e-9), at_most("dependence on the history", 1e-9)),
        counterfeit=with_entry("parts", "memory matrix", error=0.1),
    ),
    lemma(
        "normal-total",
        "section 2.6",
        "The total memory of a normal network is 1/eps, whatever the source; the trace is N/eps for every network.",
        "spatial Fisher matrices of random normal and other networks",
        "1e-9",
        judge=within("normal networks", at_most("deviation from the identity", 1e-9), at_most("trace error", 1e-9)),
        counterfeit=with_entry("parts", "normal networks", **{"deviation from the identity": 0.2}),
    ),
    lemma(
        "ceiling",
        "section 2.6",
        "The total memory is at most N/eps, and some network reaches it.",
        "share of N/eps at random networks and at lines of growing gain",
        "below 1 at random; 1 to 1e-12 for the best",
        judge=judge_ceiling,
        counterfeit=with_entry("parts", "ceiling", **{"largest share, random": 1.3, "gap of the strongest line": 0.5}),
        erratum="kerg2022-ceiling",
    ),
    lemma(
        "feedback-line",
        "section 2.6",
        "A line with feedback, sqrt(beta) between 1 - sqrt(alpha) and 1/(4 sqrt(alpha)), is stable, amplifies, and "
        "its memory grows with its length.",
        "spectral radii at both ends of the range; growth of the signal; totals at two lengths",
        "below 1 inside, above 1 beyond; a gain above 1 inside, none below; the longer line holds more, in proportion "
        "to 20 per cent",
        judge=within(
            "feedback line",
            at_most("radius inside", 1.0),
            at_least("least radius beyond", 1.0),
            at_least("least gain inside", 1.05),
            at_most("gain below", 1.0),
            at_least("least total per added unit", 0.1),
            at_least("least delay of the peak over the length", 1.0),
        ),
        counterfeit=with_entry("parts", "feedback line", **{"radius inside": 1.2}),
    ),
    lemma(
        "equality",
        "section 2.6",
        "Memory meets the amplification bound for the delay line and, up to a change of basis, for no other network.",
        "ratio of memory to bound: lines with random gains, lines in other bases, random networks",
        "1e-9; below 1 - 1e-6 at some lag of every other network",
        judge=within(
            "equality",
            at_most("gap of lines", 1e-9),
            at_most("gap of turned lines", 1e-9),
            at_least("least gap of others", 1e-6),
        ),
        counterfeit=with_entry("parts", "equality", **{"gap of lines": 0.1}),
    ),
    lemma(
        "interference",
        "section 2.6",
        "Networks unitarily equivalent to a delay line have a diagonal memory matrix.",
        "share of the memory matrix off its diagonal: lines, lines in other bases, random networks for comparison",
        "1e-9",
        judge=within(
            "interference",
            at_most("share, lines", 1e-9),
            at_most("share, turned lines", 1e-9),
            at_least("least share, random networks", 1e-3),
        ),
        counterfeit=with_entry("parts", "interference", **{"share, lines": 0.3}),
    ),
)

EXPERIMENT = experiment_of_parts(
    "kerg2-lemmas",
    "Gradients, normal matrices, Fisher information and the memory of linear networks",
    "chapter 2",
    PARTS,
    CLAIMS,
    run=run,
    rehearsed=5,
    seeds=(0, 1, 2),
)
