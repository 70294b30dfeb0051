"""Altafini 2025: self-attention dynamics on the sphere."""

from __future__ import annotations

from .document import Document, Erratum, Item

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
    Erratum(
        key="altafini2025-E17",
        place="Example 3, Figure 3(b)",
        printed="between 1 and 200 of 1000 sampled points are stable",
        correct=(
            "in about half of the instances none of the sampled points is stable: the two that always are, consensus "
            "on v_1 and its antipode, are never drawn with 100 random signs"
        ),
        evidence="Exact counts and samples at random instances; an instance in which only those two are stable.",
    ),
)

ITEMS: tuple[Item, ...] = (
    Item(
        "assumption",
        "1",
        "section 4",
        "V is symmetric with a simple positive principal eigenvalue",
        (),
        "an assumption; how far real layers are from it is measured by separatrix-minilm-asymmetry",
    ),
    Item(
        "lemma",
        "1",
        "section 3",
        "the Oja flow of one token has a Lyapunov function and ends at the principal eigenvector",
        ("altafini2025-lemma1",),
    ),
    Item(
        "remark",
        "1",
        "section 4.1",
        "consensus is reserved for points on an eigenvector",
        (),
        "a convention of names, kept by our classification",
    ),
    Item(
        "lemma",
        "2",
        "section 4.1",
        "equilibria of the multiagent Oja flow: consensus, bipartite, polygonal",
        ("altafini2025-lemma2",),
    ),
    Item(
        "theorem",
        "1",
        "section 4.2",
        "almost every start of the multiagent Oja flow ends in consensus on v_1; all else is unstable",
        ("altafini2025-theorem1", "altafini2025-theorem1-values"),
    ),
    Item("lemma", "3", "section 4.2", "blocks of the Jacobian of the multiagent Oja flow", ("altafini2025-lemma3",)),
    Item(
        "lemma",
        "4",
        "section 4.2",
        "eigenvalues at consensus and bipartite points of the multiagent Oja flow",
        ("altafini2025-lemma4",),
    ),
    Item("lemma", "5", "section 4.2", "a Lyapunov function of the multiagent Oja flow", ("altafini2025-lemma5",)),
    Item(
        "remark", "2", "section 4.2", "unstable equilibria attract on sets of measure zero", ("altafini2025-remark2",)
    ),
    Item("lemma", "6", "section 5.1", "four classes of equilibria of the attention flow", ("altafini2025-lemma6",)),
    Item("remark", "3", "section 5.1", "what an m-clustering is", (), "a definition, used by our classification"),
    Item(
        "remark",
        "4",
        "section 5.1",
        "a 1-clustering is consensus off the eigenvectors, a 2-clustering need not be bipartite",
        ("altafini2025-example2-one-clustering",),
    ),
    Item(
        "proposition",
        "1",
        "section 5.1",
        "clustering equilibria exist iff a scaled matrix is singular",
        ("altafini2025-proposition1",),
    ),
    Item(
        "remark",
        "5",
        "section 5.1",
        "antipodes of clusterings rest, partial flips typically do not",
        ("altafini2025-remark5",),
    ),
    Item("lemma", "7", "section 5.1", "rank of attention at each class of equilibria", ("altafini2025-lemma7",)),
    Item(
        "theorem",
        "2",
        "section 5.2",
        "which consensus and bipartite equilibria of attention are stable",
        ("altafini2025-theorem2-consensus", "altafini2025-theorem2-inequalities", "altafini2025-theorem2-single"),
    ),
    Item("lemma", "8", "section 5.2", "blocks of the Jacobian of the attention flow", ("altafini2025-lemma8",)),
    Item(
        "lemma",
        "9",
        "section 5.2",
        "stability of consensus under attention, with the eigenvalues of Lemma 4",
        ("altafini2025-lemma9", "altafini2025-theorem2-consensus"),
    ),
    Item(
        "lemma", "10", "section 5.2", "eigenvalues at a bipartite consensus under attention", ("altafini2025-lemma10",)
    ),
    Item(
        "lemma",
        "11",
        "section 5.2",
        "polygonal equilibria of attention are unstable",
        ("altafini2025-lemma11", "altafini2025-lemma11-polygonal"),
    ),
    Item("remark", "6", "section 5.2", "an equilibrium and its antipode are equally stable", ("altafini2025-remark6",)),
    Item(
        "text",
        "limits of Theorem 2",
        "section 5.2",
        "stability of clusterings, the number of attractors and a Lyapunov function are not known",
        (),
        "statements of ignorance; separatrix-cluster-blocks and separatrix-exact-count answer two of them",
    ),
    Item(
        "example",
        "1",
        "section 6",
        "random weights with d = 3, n = 10 lead to consensus, bipartite and 3-clustering ends",
        ("altafini2025-example1",),
    ),
    Item("figure", "1", "section 6", "four trajectories of Example 1", ("altafini2025-example1",)),
    Item(
        "example",
        "2",
        "section 6",
        "census with d = 20, n = 100: more than half of the instances are multistable",
        ("altafini2025-example2-multistable",),
    ),
    Item(
        "figure",
        "2",
        "section 6",
        "classes of the ends of Example 2",
        ("altafini2025-example2-multistable", "altafini2025-example2-one-clustering"),
    ),
    Item(
        "example",
        "3",
        "section 6",
        "stable bipartite points lie on the first or the last eigenvector",
        ("altafini2025-fig3a-ends", "altafini2025-example3-bipartite-ends"),
    ),
    Item(
        "figure",
        "3",
        "section 6",
        "counts of stable points: (a) exhaustive at d = 4, n = 10; (b) sampled at d = 10, n = 100",
        ("altafini2025-fig3a-half", "altafini2025-fig3b-range", "altafini2025-fig3b-lower"),
    ),
    Item(
        "text",
        "value matrix not symmetric",
        "section 7",
        "symmetry can be relaxed while the principal eigenvalue is real and simple; else a limit cycle may attract",
        ("altafini2025-extension-asymmetric", "altafini2025-extension-cycle"),
    ),
    Item(
        "proposition",
        "2",
        "section 7",
        "for beta to zero attention becomes the multiagent Oja flow",
        ("altafini2025-proposition2",),
    ),
    Item(
        "text",
        "several heads",
        "section 7",
        "consensus stays stable, on a combination of the heads' principal eigenvectors",
        ("altafini2025-multihead-consensus",),
    ),
    Item(
        "text",
        "discrete time",
        "section 7",
        "a similar analysis holds for Euler steps",
        ("altafini2025-extension-discrete", "altafini2025-discrete-steps"),
    ),
    Item(
        "text",
        "weights that vary in time",
        "section 7",
        "stability must be shown in a uniform sense, not at each instant",
        ("altafini2025-time-varying",),
    ),
    Item(
        "text",
        "feedforward network",
        "section 7",
        "cannot be part of the continuous-time model",
        ("altafini2025-feedforward",),
    ),
    Item(
        "text",
        "trained layers",
        "sections 1 and 8",
        "a trained layer tilts tokens towards the principal eigenvector of its value matrix",
        ("altafini2025-conjecture-tilt",),
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
