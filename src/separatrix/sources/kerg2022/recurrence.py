"""Kerg 2022 on recurrent networks (chapter 3, appendices A and D): errata, numbered items, printed memory."""

from __future__ import annotations

import dataclasses
from typing import final

from separatrix.sources.document import Erratum, Item


@final
@dataclasses.dataclass(frozen=True)
class PrintedMemory:
    """One row of Table 5 of appendix A: a triangular matrix of 100 units and its total Fisher memory as printed."""

    sub: float
    rest: float
    diagonal: float
    total: float
    tolerance: float
    """Half a unit of the last printed digit."""


TABLE5_UNITS = 100
TABLE5: tuple[PrintedMemory, ...] = (
    PrintedMemory(0.95, 0.0, 0.0, 3.03, 0.005),
    PrintedMemory(1.00, 0.0, 0.0, 5.19, 0.005),
    PrintedMemory(1.05, 0.0, 0.0, 12.1, 0.05),
    PrintedMemory(0.95, 0.005, 0.0, 3.18, 0.005),
    PrintedMemory(1.00, 0.005, 0.0, 5.30, 0.005),
    PrintedMemory(1.05, 0.005, 0.0, 12.1, 0.05),
    PrintedMemory(0.95, 0.0, 0.2, 12.0, 0.05),
    PrintedMemory(1.00, 0.0, 0.2, 16.2, 0.05),
    PrintedMemory(1.05, 0.0, 0.2, 20.5, 0.05),
    PrintedMemory(0.95, 0.005, 0.2, 12.1, 0.05),
    PrintedMemory(1.00, 0.005, 0.2, 16.3, 0.05),
    PrintedMemory(1.05, 0.005, 0.2, 20.4, 0.05),
)

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="kerg2022-spectrum",
        place="Eq. (3.5.1)",
        printed="T may be any strictly lower-triangular matrix without changing the spectrum of the rotation blocks",
        correct="T must vanish inside the blocks; an entry t there makes |lambda|^2 = gamma^2 + gamma t sin theta",
        evidence="gamma = theta = 1: modulus 1.1191 at t = .3, 0.7611 at t = -.5, two real eigenvalues at t = -2",
    ),
    Erratum(
        key="kerg2022-reach",
        place="section 3.5",
        printed="Eq. (3.5.1) can express any matrix whose eigenvalues are complex-conjugate pairs",
        correct="only with t inside the blocks, and then gamma is not the modulus; a skew kappa per block gives both",
        evidence="[[.5, -2], [.3, .5]] has Henrici departure 1.7, every rotation block has 0; with kappa the round "
        "trip is exact to rounding",
    ),
    Erratum(
        key="kerg2022-delay-line-optimal",
        place="section 3.4.2",
        printed="the delay line achieves the highest possible J(k) for k <= N",
        correct="it does so among networks with the same amplification of the signal, |W^m v| for m <= k",
        evidence="alpha = 1.1, first weight three times as large: J(1) = 0.908 against 0.524",
    ),
    Erratum(
        key="kerg2022-normalisation",
        place="section 3.4.2, Eq. (3.4.2), Fig. 1, Table 5",
        printed="J(k) = alpha^k (alpha - 1) / (alpha^(k+1) - 1) for a line with alpha on its sub-diagonal",
        correct="alpha is the square of the sub-diagonal entry, and a factor 1/eps is missing here and in Eq. (3.4.4)",
        evidence="N = 100, sub-diagonal 1.05: the totals 12.087 (computed, and printed as 12.1) and 12.087 (formula at "
        "1.05^2) against 8.278 (formula at 1.05)",
    ),
    Erratum(
        key="kerg2022-table5",
        place="appendix A, Table 5, rows with d = 0.2",
        printed="12.0, 16.2, 20.5, 12.1, 16.3, 20.4",
        correct="11.939, 16.298, 20.837, 12.090, 16.391, 20.885",
        evidence="ball arithmetic with 256 bits, error bounds below 1e-12; the covariance has condition 5e14 to 1e24, "
        "which double precision cannot invert",
    ),
    Erratum(
        key="kerg2022-eq-a-2-6",
        place="appendix A.2, Eqs. (A.2.3) and (A.2.6)",
        printed="u' C u = eps sum |A' D'^k u|^2, and C <= eps sigma^2 diag(1, (1-alpha^2)/(1-alpha), ...)",
        correct="(DA)^k is not D^k A; C <= eps sigma^(2(N-1)) diag(...), the exponent of the line before; in the "
        "Loewner order A >= B means that A - B is positive semidefinite",
        evidence="random triangular matrices of 2 to 8 units: exponent 2 fails in 1361 of 14000, 2(N-1) never",
    ),
    Erratum(
        key="kerg2022-polynomial",
        place="Proposition 3.4.2",
        printed="with eigenvalues of modulus one, gradients of the network grow at most polynomially",
        correct="that holds for powers of the matrix itself; with units that switch off, products of masked matrices "
        "may grow exponentially",
        evidence="64 units, unit spectrum, random masks 90 per cent on: the top exponent is +.04 a step where entries "
        "of T have the spread .1 and +.2 at the spread .2; for T = 0 every masked product has norm at most one. "
        "Masks that a modReLU network driven by noise makes itself gave at most +.007 a step over 3000 steps",
    ),
    Erratum(
        key="kerg2022-exp-gradient",
        place="appendix D.4",
        printed="the gradient of f(exp A) is B (d exp)_{-A}((G'B - B'G)/2), with B = exp A and G = df/dB",
        correct="B (d exp)_{-A}((B'G - G'B)/2), the opposite sign; at A = 0 it is the skew part of G",
        evidence="automatic differentiation and central differences of the map (tests of nn.orthogonal)",
    ),
    Erratum(
        key="kerg2022-full-capacity",
        place="appendix D.3",
        printed="the update W <- (I + lr/2 A)^-1 (I - lr/2 A) W with A = G*W - W*G, which is a descent",
        correct="A = GW* - WG* for a factor on the left; G*W - W*G belongs on the right",
        evidence="slopes of the loss along the update at 200 random W and G: 142 ascend with the printed A, none with "
        "the corrected one",
    ),
    Erratum(
        key="kerg2022-eurnn",
        place="section 3.6",
        printed="EURNN is attributed to Mhammedi et al. 2017",
        correct="EURNN is Jing et al. 2017 (plane rotations); Mhammedi et al. 2017 is oRNN (reflections)",
        evidence="the two articles",
    ),
    Erratum(
        key="kerg2022-cayley-subset",
        place="section 3.3.1",
        printed="Cayley and Householder parametrisations reach only a subset of the orthogonal matrices",
        correct="the Cayley transform with a diagonal of signs, and n reflections, reach every orthogonal matrix",
        evidence="random members of both components assigned and read back to 1e-6 (tests of nn.orthogonal)",
    ),
    Erratum(
        key="kerg2022-copy-length",
        place="appendix A.1.1",
        printed="the copy task has 10 + T input steps, the cue stands at step T, the loss is over the recalled symbols",
        correct="it has T + 20 steps, the cue stands at step T + 10 (counted from 1), the loss is over all steps",
        evidence="the baseline of 0.095 printed for T = 200 is 10 ln 8 / 220 = 0.0945; over the ten recalled symbols "
        "alone it would be ln 8 = 2.08",
    ),
    Erratum(
        key="kerg2022-copy-normal",
        place="section 3.6.3, Fig. 3(a)",
        printed="after the copy task T = 0 and the learned network is normal and orthogonal",
        correct="T is smaller than the rotation blocks and not zero; singular values leave one",
        evidence="64 units, five seeds, delay 50: T has 0.41 of the norm of the Schur form and the largest singular "
        "value is 2.5 (2.3 to 2.6) once the task is learned",
    ),
    Erratum(
        key="kerg2022-references",
        place="appendix A.1.3 and A.6",
        printed="Table 2 reports the accuracy; results are in Table 7",
        correct="Table 3 reports the accuracy; results are in Table 6",
        evidence="the numbers of the tables themselves",
    ),
    Erratum(
        key="kerg2022-spurious",
        place="appendix D.4",
        printed="bi-analytic around the origin, the exponential map cannot create spurious minima or saddle points",
        correct="that holds below the angle pi, which training may leave; at rotations by 2 pi its derivative is "
        "singular",
        evidence="on 3x3 rotations, at the angle 2 pi the derivative has rank one: a linear function that is not "
        "stationary there on the group is stationary in the coordinates",
    ),
)
ITEMS: tuple[Item, ...] = (
    Item(
        "figure",
        "3-1",
        "section 3.4",
        "transients and Fisher memory of triangular matrices",
        (
            "kerg2022-ch3-fig1-growth",
            "kerg2022-ch3-fig1-end",
            "kerg2022-ch3-fig1-normalisation",
            "kerg2022-ch3-fig1-most",
            "kerg2022-ch3-fig1-beyond",
        ),
    ),
    Item(
        "proposition",
        "3.4.1",
        "section 3.4",
        "strictly triangular matrices remember at least a fraction of what a delay line does",
        ("kerg2022-ch3-prop3-4-1",),
    ),
    Item(
        "text",
        "best memory",
        "section 3.4.2",
        "the delay line has the highest possible memory curve",
        ("kerg2022-ch3-delay-line-optimal",),
    ),
    Item(
        "proposition",
        "3.4.2",
        "section 3.4",
        "powers of a unit triangular matrix grow like polynomials",
        (
            "kerg2022-ch3-prop3-4-2",
            "kerg2022-ch3-polynomial",
        ),
    ),
    Item(
        "figure",
        "3-2",
        "section 3.6",
        "copy and permuted MNIST at equal number of units",
        (
            "kerg2022-ch3-fig2-copy-solved",
            "kerg2022-ch3-fig2-copy-failed",
            "kerg2022-ch3-fig2-copy-match",
            "kerg2022-ch3-fig2-pixels-match",
            "kerg2022-ch3-fig2-pixels-lesser",
        ),
    ),
    Item(
        "table",
        "3-1",
        "section 3.6",
        "characters of Penn Treebank: bits per character",
        (
            "kerg2022-ch3-table1-best",
            "kerg2022-ch3-table1-lstm",
        ),
    ),
    Item(
        "figure",
        "3-3",
        "section 3.6",
        "learned Schur forms",
        (
            "kerg2022-ch3-fig3-copy",
            "kerg2022-ch3-fig3-text",
            "kerg2022-ch3-fig3-angles",
            "kerg2022-ch3-fig3-moduli",
        ),
    ),
    Item(
        "equation",
        "(A.2.6)",
        "appendix A.2",
        "the covariance is at most sigma^2 times that of a delay line",
        ("kerg2022-ch3-eq-a-2-6",),
    ),
    Item("table", "A-1", "appendix A", "copy task", (), "hyperparameters, a record and no statement"),
    Item(
        "figure",
        "A-1",
        "appendix A",
        "copy and permuted MNIST at equal number of parameters",
        (
            "kerg2022-A-fig1-copy-solved",
            "kerg2022-A-fig1-copy-failed",
            "kerg2022-A-fig1-copy-match",
            "kerg2022-A-fig1-pixels-match",
            "kerg2022-A-fig1-pixels-lesser",
        ),
    ),
    Item("table", "A-2", "appendix A", "permuted MNIST", (), "hyperparameters, a record and no statement"),
    Item("table", "A-3", "appendix A", "Penn Treebank accuracy", ("kerg2022-A-table3",)),
    Item("table", "A-4", "appendix A", "Penn Treebank", (), "hyperparameters, a record and no statement"),
    Item(
        "table",
        "A-5",
        "appendix A",
        "total Fisher memory of triangular matrices",
        (
            "kerg2022-table5-nilpotent",
            "kerg2022-table5-diagonal",
            "kerg2022-table5-rounding",
            "kerg2022-table5-order",
            "kerg2022-table5-beta",
            "kerg2022-table5-truncation",
        ),
    ),
    Item(
        "text",
        "Schur instability",
        "appendix A.4",
        "computed Schur forms of matrices such as Grcar's are inaccurate",
        (
            "kerg2022-A4-backward-stable",
            "kerg2022-A4-grcar",
        ),
    ),
    Item(
        "figure",
        "A-2",
        "appendix A",
        "learned Schur form on permuted MNIST",
        (
            "kerg2022-A-fig2-order",
            "kerg2022-A-fig2-angles",
        ),
    ),
    Item(
        "table",
        "A-6",
        "appendix A",
        "three versions of nnRNN on Penn Treebank",
        (
            "kerg2022-A-table6-unit",
            "kerg2022-A-table6-same",
        ),
    ),
    Item(
        "figure",
        "A-3",
        "appendix A",
        "gradient norms with clamped or regularised eigenvalues",
        (
            "kerg2022-A-fig3-backward",
            "kerg2022-A-fig3-training",
        ),
    ),
    Item(
        "text",
        "saturation",
        "appendix D.1",
        "LSTMs lose gradients and saturate where unitary networks do not",
        (
            "kerg2022-D1-gradients",
            "kerg2022-D1-saturation",
        ),
    ),
    Item(
        "text",
        "explicit solutions",
        "appendix D.2",
        "rotations solve the copy task, one unit the adding task",
        (
            "kerg2022-D2-copy",
            "kerg2022-D2-adding",
        ),
    ),
)
