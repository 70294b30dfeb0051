"""Kerg 2022: non-normal recurrent networks, relevancy screening, relational networks."""

from __future__ import annotations

import dataclasses
from typing import final

from .document import Document, Erratum


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
        key="kerg2022-rotation-blocks",
        place="section 2.3.2",
        printed="the 2x2 blocks of a real Schur form are rotation blocks gamma [[cos, -sin], [sin, cos]]",
        correct="gamma [[cos, -exp(kappa) sin], [exp(-kappa) sin, cos]], with kappa = 0 only for normal blocks",
        evidence="[[.5, -2], [.3, .5]] is its own Schur form, with kappa 0.949; LAPACK's blocks of random matrices",
    ),
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
        key="kerg2022-delay-line-total",
        place="section 2.6",
        printed="J_tot = (N/eps)(1 - 1/eps) for the delay line with alpha > 1",
        correct="J_tot = (N/eps)(1 - 1/alpha) + O(1)",
        evidence="exact sums: the remainder tends to 2.8153, 1.2991, 0.8034, 0.3158 at alpha 1.1, 1.5, 2, 4 (eps = 1)",
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
        "of T have the spread .1 and +.2 at the spread .2; for T = 0 every masked product has norm at most one",
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
        key="kerg2022-skew-hermitian",
        place="appendix E",
        printed="a matrix is skew-Hermitian if and only if its eigenvalues are purely imaginary",
        correct="only if; the converse needs a normal matrix",
        evidence="[[i, 1], [0, i]]",
    ),
    Erratum(
        key="kerg2022-unitary-closed",
        place="appendix E",
        printed="U(n) is closed as the preimage of the unit circle under the determinant",
        correct="that preimage is larger; U(n) is the preimage of the identity under A -> A*A",
        evidence="diag(2, 1/2) has determinant one",
    ),
    Erratum(
        key="kerg2022-copy-length",
        place="appendix A.1.1",
        printed="the copy task has 10 + T input steps, the cue stands at step T, the loss is over the recalled symbols",
        correct="it has T + 20 steps, the cue stands at step T + 10 (counted from 1), the loss is over all steps",
        evidence="the baseline of 0.095 printed for T = 200 is 10 ln 8 / 220 = 0.0945; over the ten recalled symbols "
        "alone it would be ln 8 = 2.08",
    ),
)

DOCUMENT = Document(
    key="kerg2022",
    authors="Kerg, Giancarlo",
    title="Inductive biases for efficient information transfer in artificial networks",
    year=2022,
    venue="PhD thesis, Université de Montréal",
    errata=ERRATA,
)
