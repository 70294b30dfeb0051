"""Agarwala and Schoenholz 2022: deep equilibrium networks and the family of the initial matrix.

V is the normalised trace of W^T W, s = sqrt(1 - 4 V), tr the normalised trace, C_k the Catalan numbers. Each erratum
is verified by a test of its own, by algebra, quadrature or sampled matrices.
"""

from __future__ import annotations

from .document import Document, Erratum, Item

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="agarwala2022-eq7",
        place="Eq. (7)",
        printed="Var[(z_t)_i] = (x.x/N) sum_{k=1}^{t} V^t",
        correct="(x.x/N) sum_{k=1}^{t-1} V^k for z_0 = 0",
        evidence="t = 3, V = 0.5: correct 0.75, printed 0.375; sampled matrices agree with 0.75",
    ),
    Erratum(
        key="agarwala2022-eq9",
        place="Eq. (9) and appendix A.3",
        printed="E[z*] = x for every rotation-invariant family",
        correct="E[z*] = chi x with chi = tr (1 - W)^{-1}, which is 2/(1 + s) for symmetric Gaussian matrices",
        evidence="V = 0.1: chi = 1.1270, sampled matrices of width 600 give 1.1277",
    ),
    Erratum(
        key="agarwala2022-catalan",
        place="text before Eq. (11)",
        printed="tr[W^k] = C_k V^k",
        correct="tr[W^{2k}] = C_k V^k, odd traces vanish (as Eq. 61 has it)",
        evidence="moments of the semicircle law: 0, V, 0, 2 V^2",
    ),
    Erratum(
        key="agarwala2022-eq11",
        place="Eq. (11)",
        printed="Var[(z_i*)^2] = 1/s - (1 - s)/(2V) - 1",
        correct="Var[z_i*] = (m1 - chi^2) x.x/N = 2/(s(1 + s)) - 4/(1 + s)^2 for x.x = N",
        evidence="V = 0.1: correct 0.1848, printed -0.836 (a negative variance)",
    ),
    Erratum(
        key="agarwala2022-eq12",
        place="Eqs. (12), (67)",
        printed="sigma^2 = (1/N) E Var[z.z]",
        correct="(1/N^2) E Var[z.z], which Eq. (13) needs with the normalised trace",
        evidence="Var[x.Ax] = 2 sum of squared eigenvalues of A = 2 N tr A^2 for Gaussian x",
    ),
    Erratum(
        key="agarwala2022-eq14",
        place="Eqs. (14), (74)-(76)",
        printed="untied: (2/N)(2/(1-V)^2 + 1/(1-V^2)^2 - 2/(1-V^2)) for independent and symmetric matrices alike",
        correct="(2/N)(1 + 4Va + V^2 a^2)/(1-V^2) with a = 1/(1-V) for independent entries, with 2V more in the "
        "numerator for symmetric ones; both diverge as (1-V)^{-3}, only orthogonal matrices as (1-V)^{-2}",
        evidence="V = 0.7: 30.94 and 33.68, sampled products agree; printed 22.1",
    ),
    Erratum(
        key="agarwala2022-eq18",
        place="Eq. (18), middle of Eq. (79)",
        printed="2/(1-V)^3 - 1/(1-V)^2",
        correct="(2/N) times that, (2/N)(1 + V)/(1 - V)^3",
        evidence="V = 0.5: tr of the squared resolvent product is 12, width 600 gives 12.03",
    ),
    Erratum(
        key="agarwala2022-eq20",
        place="Eq. (20)",
        printed="(1/2V)(1/(1-4V)^{-5/2} - 1/(1-4V)^{-3/2})",
        correct="((1-4V)^{-5/2} - (1-4V)^{-3/2})/(2V) = 2 (1-4V)^{-5/2}",
        evidence="V = 0.1: correct 7.172, printed -0.929",
    ),
    Erratum(
        key="agarwala2022-sec223-width",
        place="section 2.2.3",
        printed="valid when N >> delta^{-2/3}",
        correct="the edge of symmetric Gaussian matrices fluctuates by N^{-2/3}, so N >> delta^{-3/2}",
        evidence="spread of the largest eigenvalue over sampled matrices falls as N^{-2/3}",
    ),
    Erratum(
        key="agarwala2022-sec223-untied",
        place="section 2.2.3",
        printed="untied divergence of order delta^{-2} irrespective of the family",
        correct="delta^{-3} for independent and symmetric Gaussian matrices, delta^{-2} for orthogonal ones",
        evidence="from the corrected Eq. (14)",
    ),
    Erratum(
        key="agarwala2022-eq25-goe",
        place="Eqs. (25), (30) applied to symmetric matrices",
        printed="fields and matrix freely independent: sigma_h^2 = V(E phi^2 + 2 C + sigma_x^2)",
        correct="cavity equations with the reaction a = V chi of a unit's output on itself",
        evidence="hard-tanh, sqrt(V) = 0.6, unit inputs: cavity 1.2507, printed 0.4924; 20 matrices of width 2000 "
        "agree with the former (experiment deq-cavity)",
    ),
    Erratum(
        key="agarwala2022-eq30",
        place="text around Eq. (30)",
        printed="the spectrum is an annulus",
        correct="for independent entries a disc: the inner radius 1/sqrt(tr (W^T W)^{-1}) is zero",
        evidence="smallest eigenvalue modulus of a Gaussian matrix of width 400 is below 0.1",
    ),
    Erratum(
        key="agarwala2022-eq38",
        place="Eq. (38)",
        printed="largest eigenvalue of (W^{t+1})^T W^{t+1} bounded by (t + 1) V^{t+1}",
        correct="(t + 2)^{t+2} / (t + 1)^{t+1} V^{t+1}, about e (t + 2) V^{t+1}",
        evidence="t = 0, V = 1: 4 (the largest squared singular value of W), printed 1",
    ),
    Erratum(
        key="agarwala2022-eq47",
        place="Eq. (47)",
        printed="E[(z_i*)^2] = x.x/(N(1 - V))",
        correct="x_i^2 + V/(1 - V) x.x/N; the print is its average over i",
        evidence="sampled matrices with one large coordinate of x",
    ),
    Erratum(
        key="agarwala2022-eq51",
        place="Eq. (51)",
        printed="sigma_t^2 = (V^t/(1 - V) - 1) x.x/N",
        correct="((V - V^t)/(1 - V)) x.x/N",
        evidence="t = 1 must give 0; printed V/(1-V) - 1",
    ),
    Erratum(
        key="agarwala2022-eq54",
        place="Eqs. (11), (54)-(57)",
        printed="Var[(z_i)^2]",
        correct="Var[z_i]; the right-hand sides are second moments of z_i",
        evidence="V = 0.5, t large, untied: Var[z_i] = 1, Var[z_i^2] differs",
    ),
    Erratum(
        key="agarwala2022-eq65",
        place="Eq. (65)",
        printed="f_c'(V) has the term 1/(2 V s)",
        correct="1/(V s)",
        evidence="derivative of (1 - s)/(2V)",
    ),
    Erratum(
        key="agarwala2022-eq66",
        place="Eq. (66)",
        printed="1/s - (1 - s)/(2V)",
        correct="2/s - (1 - s)/(2V) = 2/(s(1 + s))",
        evidence="V = 0.1: correct 1.4550, printed 0.164; matrices of width 600 give 1.4575",
    ),
    Erratum(
        key="agarwala2022-eq68",
        place="Eq. (68)",
        printed="(1/N) E tr (M^T M)^2",
        correct="(2/N) E tr (M^T M)^2, as in Eq. (13)",
        evidence="fourth moment of a Gaussian coordinate is 3, so each term contributes 3 - 1 = 2",
    ),
    Erratum(
        key="agarwala2022-eq72",
        place="Eq. (72)",
        printed="(2/N) sum s^4 = (2/N) tr (M^T M)^2",
        correct="(2/N^2) sum s^4 = (2/N) tr (M^T M)^2 with the normalised trace",
        evidence="sum over N singular values is N times the normalised trace",
    ),
    Erratum(
        key="agarwala2022-eq86",
        place="Eq. (86)",
        printed="(1/8) delta^{-5/2}",
        correct="(1/32) delta^{-5/2} for sqrt(V) = 1/2 - delta, as Eq. (85) and (1-4V)^{-5/2} imply",
        evidence="integral of sqrt(y)/(1+y)^4 over y > 0 is pi/16",
    ),
    Erratum(
        key="agarwala2022-eq86-text",
        place="text after Eq. (86)",
        printed="the squared second moment scales as delta^{-2}",
        correct="delta^{-1}: the second moment scales as delta^{-1/2}",
        evidence="slope of 2/(s(1+s)) near V = 1/4",
    ),
    Erratum(
        key="agarwala2022-eq93",
        place="Eq. (93)",
        printed="(1 - phi'(z*) W)^{-T} v (phi'(z*) z*)^T",
        correct="[D (1 - W^T D)^{-1} v] z*^T with D = diag phi'(W z*): the slopes act on the adjoint vector",
        evidence="automatic differentiation agrees with the latter to rounding",
    ),
    Erratum(
        key="agarwala2022-eq94",
        place="Eq. (94)",
        printed="the kernel pairs df/dW with itself at one input",
        correct="df/dW at x with df/dW at x'",
        evidence="the printed expression does not depend on x'",
    ),
    Erratum(
        key="agarwala2022-eq95",
        place="Eq. (95)",
        printed="tr[(1 - DW)^{-T}(1 - D'W)^{-1}] (D z).(D' z')",
        correct="tr[(1 - DW)^{-1} D D' (1 - D'W)^{-T}] z.z'",
        evidence="product of automatically differentiated gradients, averaged over readouts",
    ),
    Erratum(
        key="agarwala2022-eq108",
        place="Eqs. (108), (109), (115), (116) and the text after (108)",
        printed="M^{-1}(z) = sqrt(z + 1/z), positive for negative z",
        correct="sqrt(z + 2 + 1/z), imaginary for negative z; S_W(z) = z^{-1/2} with two branches",
        evidence="(z + 1)^2/z expanded; Eq. (117) is right",
    ),
    Erratum(
        key="agarwala2022-eq122",
        place="Eqs. (122)-(124)",
        printed="G = (1-p)/z - (z - sqrt(z^2 - 4p))/2",
        correct="G = (1-p)/z + (z - sqrt(z^2 - 4p))/2",
        evidence="p = 0.6, z = 1.2 + 0.3i: 0.7467 - 0.4673i; the print is not 1/z at infinity",
    ),
    Erratum(
        key="agarwala2022-eq128",
        place="Eq. (128)",
        printed="tr[z + V P^{-1} Q]",
        correct="tr[(z + V P^{-1} Q)^{-1}]",
        evidence="corner of the inverse of a block matrix",
    ),
    Erratum(
        key="agarwala2022-eq180",
        place="Eq. (180)",
        printed="G_12 + G_22 = ...",
        correct="-G_12 + G_22 = ..., as in Eq. (184)",
        evidence="numerical solution of the operator-valued equation",
    ),
)

ITEMS: tuple[Item, ...] = ()

DOCUMENT = Document(
    key="agarwala2022",
    authors="Agarwala, Atish and Schoenholz, Samuel S.",
    title="Deep equilibrium networks are sensitive to initialization statistics",
    year=2022,
    venue="International Conference on Machine Learning (ICML)",
    errata=ERRATA,
    items=ITEMS,
)
