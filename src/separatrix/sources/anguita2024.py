"""Anguita 2024: lambda-balanced linear networks."""

from __future__ import annotations

from .document import Document, Erratum, Item

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "anguita2024-2.2",
        "Eq. (2.2)",
        "any W2 W1 = U S V' gives W2 = U S2 R', W1 = R S1 V' with a common R",
        "true if W2'W2 and W1 W1' commute, as for balanced weights; then S2 S1 = S",
        "two Gaussian 3 x 3 layers: W2'W2 and W1 W1' do not commute",
    ),
    Erratum(
        "anguita2024-2.2.1",
        "Theorem 2.2.1, proof",
        "derivative of W2 W2' - W1 W1'",
        "derivative of W2' W2 - W1 W1'",
        "for unequal sizes the printed difference has no common shape; the corrected one is conserved along an ODE",
    ),
    Erratum(
        "anguita2024-2.2.4-F",
        "Theorem 2.2.4",
        "F is (n_h + n_o) x (n_h + n_i), Q(0) has full rank, F is invertible",
        "F is square of size n_i + n_o; neither full rank nor an inverse is needed",
        "singular task at balance zero, and an empty hidden unit: exact solution against an ODE",
    ),
    Erratum(
        "anguita2024-2.30",
        "Eq. (2.30)",
        "the bracket without inverse, and e^(-St) - I in its third term",
        "the inverse of the bracket, and e^(-2St) - I",
        "balance zero, 3 x 3: printed exponents off by more than 0.01, corrected ones by rounding",
    ),
    Erratum(
        "anguita2024-2.32",
        "Eqs. (2.32)-(2.36)",
        "Jacobian with respect to the inputs; df/dt = -K grad_theta L",
        "Jacobian with respect to the parameters; df/dt = -K dL/df",
        "autograd Jacobian of a two-layer network against the Kronecker form; velocity of the outputs",
    ),
    Erratum(
        "anguita2024-3.1.1-variance",
        "Theorem 3.1.1, item 2",
        "diagonal entries of the balance have 4 times the variance of the others",
        "2 times: 3n + n^2 - n - n^2 = 2n",
        "sampled layers: ratio of variances 2 within sampling error",
    ),
    Erratum(
        "anguita2024-3.1-in-probability",
        "Sec. 3.1, after Table 3.2",
        "wide random weights converge in probability to balanced weights",
        "entry by entry only; the spread of the eigenvalues does not depend on width",
        "LeCun, equal widths 50 and 400: root mean square deviation of eigenvalues 1.4 at both",
    ),
    Erratum(
        "anguita2024-table3.2-3.3",
        "Tables 3.2 and 3.3",
        "scaled variance (r a2^2/k^2 + a1^2)/n; Glorot row 0, 2, 2, 0, -2/(k+1); LeCun balance >= 0",
        "(r a2^4/k^2 + a1^4)/n; Glorot (k-1)/(k+1), -2/(k+1), 2k/(k+1), 0, 0; LeCun balance > -1",
        "sampled layers for the variance; the general expression of Table 3.2 at extreme ratios for the limits",
    ),
    Erratum(
        "anguita2024-3.2",
        "Theorem 3.2.1, Eqs. (3.2), (3.5), (3.12), (3.19)",
        "exponent K t without the sign of the balance; denominator sqrt(l^2 + 4 a^2 + l)",
        "exponent sgn(l) K t; denominator sqrt(l^2 + 4 a^2) + |l|",
        "s = 2, a0 = 0.1, balance -0.5: printed form off by 0.37 at t = 0.5, corrected form by rounding",
    ),
    Erratum(
        "anguita2024-3.3.1-item2",
        "Theorem 3.3.1, item 2",
        "lower row of the eigenvectors of F: U(A - XA), -U(A + XA)",
        "U(A + XA), -U(A - XA), as in Eq. (3.52)",
        "F rebuilt from printed eigenvectors is off by more than 0.1, from corrected ones by rounding",
    ),
    Erratum(
        "anguita2024-3.49",
        "Eqs. (3.49), (3.50)",
        "X = (sqrt(l^2/4 + S^2) - S)/l",
        "X = (sqrt(l^2 + 4 S^2) - 2 S)/l = l/(sqrt(l^2 + 4 S^2) + 2 S)",
        "the printed X is half of the X of item 2 and does not diagonalise F",
    ),
    Erratum(
        "anguita2024-3.3.1-item3",
        "Theorem 3.3.1, item 3; Eqs. (3.67)-(3.77)",
        "Z [ ... ] Z'",
        "Z [ ... ]^-1 Z', with e^(2 Lambda t) throughout the derivation",
        "4 x 4, balance 2 and -3: printed form off by more than 0.1, corrected form by rounding",
    ),
    Erratum(
        "anguita2024-3.4.1",
        "Theorem 3.4.1, Algorithm 1",
        "min(n_i, n_o) <= n_h <= max(n_i, n_o), and the sign of the balance is that of n_o - n_i",
        "n_h <= n_o if the balance is positive, n_h <= n_i if it is negative; nothing else",
        "4-2-4 with balance 3 and -3, and 2-2-3 with balance -1, exist and follow the exact solution",
    ),
    Erratum(
        "anguita2024-3.4.2",
        "Theorem 3.4.2, proof",
        "n_o > n_i: V_perp is not empty, U_perp is",
        "n_o > n_i: U_perp is not empty; the eigenvalue sgn(n_o - n_i) balance/2 is right",
        "eigenvalues of F for 2 inputs and 4 outputs, and their eigenvectors",
    ),
    Erratum(
        "anguita2024-4.1-extra-block",
        "Theorems 4.1.1, 4.1.2",
        "extra blocks sqrt|l| and -sqrt|l| of size max(0, n_o - n_i), l and -l of size max(n_o, n_i)",
        "|l| on n_h - r directions of the heavy layer only, then zeros",
        "2-3-5 with balance 2: eigenvalues of both representations",
    ),
    Erratum(
        "anguita2024-4.13",
        "Eqs. (4.10), (4.13)",
        "Taylor term (2S/l)^2; limit S^2/|l| = -l I",
        "half of that term; the second limit is -l I",
        "s = 2, balance -1000: (sqrt(l^2 + 4 s^2) - l)/2 = 1000.004",
    ),
    Erratum(
        "anguita2024-4.17",
        "Eq. (4.17)",
        "first term ends in V*' without X",
        "V*' X",
        "kernel by autograd against the Kronecker form",
    ),
    Erratum(
        "anguita2024-4.18",
        "Eqs. (4.18), (4.19)",
        "one term with S2^2",
        "S^2, and both terms: they are of the same order",
        "balance 1000: two-term form off by 1e-5 relative, one-term form by more than 0.3",
    ),
    Erratum(
        "anguita2024-large-balance-lazy",
        "Theorems 4.1.2(2), 4.1.3(2,3), 4.2.3",
        "a large balance is lazy and fast",
        "only if n_h = n_o (positive) or n_h = n_i (negative); otherwise rich, after a delay growing with it",
        "2-3-5 against 2-5-5 at balance 10 to 1000: times to learn, kernel distance",
    ),
    Erratum(
        "anguita2024-4.2.1",
        "Theorem 4.2.1",
        "W'W = V S V', W W' = U S U'",
        "V S^2 V', U S^2 U'",
        "a converged one-layer network",
    ),
    Erratum(
        "anguita2024-4.2-transposes",
        "Sec. 4.2, end",
        "W1'W1 resembles W W' and W2 W2' resembles W'W",
        "W1'W1 ~ W'W/l for l -> inf, W2 W2' ~ W W'/|l| for l -> -inf",
        "square network at balance +-1000",
    ),
    Erratum(
        "anguita2024-fig4.3-rate",
        "Sec. 4.3, Figs. 4.3, 4.4",
        "rate of learning |l|/2; steps fall like 730 exp(-0.083 |l|)",
        "rate |l| (loss 2|l|); steps times |l| tends to a constant",
        "slope of the exact log loss at balance 100; steps to a threshold at balances up to 200",
    ),
    Erratum(
        "anguita2024-4.34",
        "Eqs. (4.34), (4.36)",
        "W2'W2 in the second score; Tr(dW (W)' - Sigma')",
        "W2 W2' in both; Tr(dW (W - Sigma)')",
        "for unequal sizes the printed forms have no common shape; the rate against finite differences",
    ),
    Erratum(
        "anguita2024-4.40",
        "Eq. (4.40), Sec. 2.3.4",
        "1/P Tr Y Y'",
        "1/(2P) Tr Y Y'",
        "random regression: the loss of the samples against both forms",
    ),
    Erratum(
        "anguita2024-4.5.1",
        "Theorem 4.5.1",
        "best balance Tr(D)",
        "Tr(D)/n",
        "brute-force minimum over a grid",
    ),
    Erratum(
        "anguita2024-alignment-constant",
        "Sec. 2.2.4",
        "alignment and balance remain constant through training",
        "balance always; alignment only if present at the start",
        "unaligned start: the overlap of singular vectors with the task changes",
    ),
)

PRINTED_STEPS_LAW = (730.0, 0.083)
"""Figure 4.4's fit: steps = 730 exp(-0.083 |balance|)."""

ITEMS: tuple[Item, ...] = ()

DOCUMENT = Document(
    key="anguita2024",
    authors="Anguita, Nicolas",
    title="Learning dynamics of linear neural networks",
    year=2024,
    venue="MEng thesis, Imperial College London",
    errata=ERRATA,
    items=ITEMS,
)
