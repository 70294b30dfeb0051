"""Altafini 2025: self-attention dynamics on the sphere."""

from __future__ import annotations

from .document import Document, Erratum
from .items.altafini2025 import ITEMS

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="altafini2025-E1",
        place="Lemma 8, off-diagonal terms and proof",
        printed="x_k x_i' Q'K in the off-diagonal block; A_ii I in the proof",
        correct="x_h x_i' Q'K, with h the token differentiated by; A_ii V in the proof",
        evidence=(
            "Jacobian by automatic differentiation at random states: the corrected block agrees to rounding, the "
            "printed one does not."
        ),
    ),
    Erratum(
        key="altafini2025-E2",
        place="Lemma 3, proof",
        printed="V (x_i x_i' V sum_j x_j) is differentiated",
        correct="x_i x_i' V sum_j x_j, without the V in front; the lemma itself is right",
        evidence="Automatic differentiation agrees with the statement of the lemma to rounding.",
    ),
    Erratum(
        key="altafini2025-E3",
        place="Lemma 4, blocks at a bipartite consensus",
        printed="(1/n)(I - v v') in the three cases",
        correct="(1/n)(I - v v') V in all three; the compact Kronecker form is right",
        evidence="Automatic differentiation at a bipartite point of the multiagent Oja flow.",
    ),
    Erratum(
        key="altafini2025-E4",
        place="Lemma 4, instability of bipartite consensus",
        printed="unstable because +-2 (n_1 - n_2) lambda_k / n are eigenvalues",
        correct=(
            "those eigenvectors are radial, not tangent. For n_1 != n_2 the conclusion holds for another reason "
            "(a positive transversal eigenvalue, or a 2x2 block of negative determinant). For n_1 = n_2 the "
            "tangent eigenvalues are lambda_j (j != k) and zeros: not linearly unstable for k = 1 if lambda_2 < 0"
        ),
        evidence="Tangent spectra of the closed form against automatic differentiation.",
    ),
    Erratum(
        key="altafini2025-E5",
        place="Theorem 1",
        printed="almost every trajectory of the multiagent Oja flow converges to consensus on v_1",
        correct="false for n = 2 when lambda_2 < 0: antipodal pairs near v_1 are stable and attract an open set",
        evidence=(
            "Integration with V = diag(1, -1, -2), two tokens, uniform starts: about one start in eight ends "
            "antipodal; with three tokens none does."
        ),
    ),
    Erratum(
        key="altafini2025-E6",
        place="Lemma 4, proof (and Lemma 10)",
        printed="11' has eigenvalues 1 and 0; vectors of the third class are orthogonal to every v_h",
        correct=(
            "11' has eigenvalues n and 0; third-class vectors need only v_k' z_i = 0 and a vanishing sum, since "
            "orthogonality to every v_h leaves zero"
        ),
        evidence="Linear algebra; the multiplicities of the lemma agree with the dense Jacobian.",
    ),
    Erratum(
        key="altafini2025-E7",
        place="Lemma 5",
        printed="W = (lambda_1 - (1/n) sum' V sum) / 2; in the proof (1/n) m' V m",
        correct="W = (lambda_1 - m' V m) / 2 with m the mean token",
        evidence=(
            "The printed W is negative at consensus; the corrected one is zero there, non-negative, and falls "
            "along integrated trajectories at the stated rate."
        ),
    ),
    Erratum(
        key="altafini2025-E8",
        place="Section 5, opening, and Lemma 7, proof",
        printed="m = (1/n) sum_j A_ij x_j; exponent v_k' Q'K v_l in the denominator",
        correct="m_i = sum_j A_ij x_j without 1/n; exponent v_k' Q'K v_k",
        evidence=(
            "Rows of A sum to one, so at consensus the mean is v_k itself; entries of A at a bipartite point "
            "agree with the corrected form."
        ),
    ),
    Erratum(
        key="altafini2025-E9",
        place="Proposition 1 against Lemma 6",
        printed="a clustering equilibrium exists iff some Gamma makes I - (Gamma A) x V singular",
        correct=(
            "Gamma of the proposition is the inverse of that of Lemma 6, and the condition is empty: Gamma = I / "
            "lambda_1 makes the matrix singular at every x. What matters is that x itself lies in its kernel"
        ),
        evidence="The matrix with gamma_i = 1/lambda_1 is singular at random states that are no equilibria.",
    ),
    Erratum(
        key="altafini2025-E10",
        place="Remark 4 and Example 2",
        printed="1-clustering: all tokens equal at a point that is no eigenvector",
        correct=(
            "no such equilibrium exists: equal tokens have uniform attention, so V w = gamma w. Reports of it are "
            "states that have not converged"
        ),
        evidence="The speed at equal tokens is |(I - w w') V w|, zero only on eigenvectors.",
    ),
    Erratum(
        key="altafini2025-E11",
        place="Lemma 7",
        printed="the rank of A is 2 at a bipartite consensus and m at an m-clustering",
        correct=(
            "rank 1 at a bipartite point if v_k' Q'K v_k = 0; in general the rank is that of the m x m matrix "
            "exp(beta w_a' M w_b), generically m"
        ),
        evidence="Numerical rank at such points.",
    ),
    Erratum(
        key="altafini2025-E12",
        place="Theorem 2, inequalities (9)",
        printed=(
            "1 - alpha_2 (n_1^2 + n_2^2) / (2 alpha_1 n_1 n_2) in the first; + delta_1 delta_2 lambda_k^2 in the "
            "second (from c b > a d in the proof)"
        ),
        correct="1 + alpha_2 (n_1^2 + n_2^2) / (2 alpha_1 n_1 n_2); - delta_1 delta_2 lambda_k^2 (from c b < a d)",
        evidence=(
            "Thousands of random points against exact spectra: the printed pair errs on several per cent, the "
            "corrected pair on none with two tokens or more in each group."
        ),
    ),
    Erratum(
        key="altafini2025-E13",
        place="Theorem 2",
        printed="stable iff delta_l lambda_k > 0 for l = 1, 2 and (9)",
        correct="delta_l lambda_k > 0 is not needed for a group of one token, which has no transversal direction",
        evidence=(
            "V = diag(1, -5), M = 0.6 I, one token against six: delta_1 = -0.2875, yet all tangent eigenvalues "
            "are negative."
        ),
    ),
    Erratum(
        key="altafini2025-E14",
        place="Lemma 11 and Theorem 2",
        printed="all polygonal equilibria are unstable",
        correct=(
            "the proof perturbs along v_1, which is not tangent, and drops a term. Counterexample: n = 2, M "
            "skew-symmetric, V = diag(1, -1, -2): antipodal pairs near v_1 attract an open set"
        ),
        evidence="Integration from uniform starts: about one in seven ends antipodal.",
    ),
    Erratum(
        key="altafini2025-E15",
        place="Section 7, multi-head",
        printed="the consensus direction is a combination of the principal eigenvectors of the V_h",
        correct="it is the principal eigenvector of the sum of the V_h, which need not lie in their span",
        evidence=(
            "Dense spectra with several heads, and a sum whose principal eigenvector is orthogonal to those of "
            "both heads."
        ),
    ),
    Erratum(
        key="altafini2025-E16",
        place="Section 7, feedforward network",
        printed="impossible to include in the continuous-time model",
        correct="a choice of the model: adding (I - x_i x_i') g(x_i) is well defined and keeps tokens on the sphere",
        evidence="The added velocity is tangent for any g.",
    ),
)

DOCUMENT = Document(
    key="altafini2025",
    authors="Altafini, Claudio",
    title="Multistability of self-attention dynamics in transformers",
    year=2025,
    venue="Preprint, November 2025",
    errata=ERRATA,
    items=ITEMS,
)
