"""Errata of Kerg 2022 in what concerns relevancy screening: section 2.7, chapter 4, appendix B."""

from __future__ import annotations

from .document import Erratum

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="kerg2022-algorithm-1",
        place="Algorithm 1 of chapter 4, lines 6 and 7",
        printed="the state of step t - rho is screened at step t",
        correct="the state of step t - nu, which leaves the short buffer then; rho is the number of kept states",
        evidence="the score sums attention over the nu steps in the buffer; with nu in place of rho the stream keeps "
        "exactly the best scores of all that left, ties to the earlier (100 random runs)",
    ),
    Erratum(
        key="kerg2022-short-buffer",
        place="section 4.5",
        printed="the buffer at step t holds the states of steps t - nu to t - 1, and R only states of steps before t",
        correct="it holds t - nu + 1 to t, as the algorithm does; R holds states of steps up to t - nu",
        evidence="scores then have exactly nu terms, and a buffer as long as the sequence gives full attention "
        "(tests of nn.memory)",
    ),
    Erratum(
        key="kerg2022-half-sum",
        place="Eq. (4.4.2)",
        printed="s = h + c",
        correct="s = (h + c)/2, as the public code has it; the printed sum explodes with modReLU",
        evidence="128 units, orthogonal start, random one-hot inputs, nu = rho = 10: mean length of h after 10, 100, "
        "300 steps is 33, 5e9 and beyond single precision, against 1.9, 2.0, 2.0 with the half sum",
    ),
    Erratum(
        key="kerg2022-uniform-rate",
        place="Theorem 4.4.2, Proposition B.1.33, Theorem B.1.34",
        printed="under even attention gradients go like T^(lambda - 1) and c/T, so that they are at least of the order "
        "of 1/T for every normal V with spectral radius below 1",
        correct="they go like A T^(mu - 1), mu = lambda/(1 - lambda), without a further term: at least T^(-3/2) where "
        "A is not zero, and of the order of 1/T or more exactly if an eigenvalue has |lambda - 1/2| <= 1/2",
        evidence="eigenvalues -.5, -.3, -.8: T times the norm is 0.203, 0.146, 0.104 at T = 50, 200, 800; slopes of "
        "the exact recursion up to 200,000 steps agree with mu - 1 to 1e-3, and its level with A",
    ),
    Erratum(
        key="kerg2022-sparse-bound",
        place="Theorem 4.4.3, Theorem B.1.39",
        printed="under sparse attention the gradient is at least of the order of kappa^(-d)",
        correct="at least lambda^d kappa^(-(d + 1)) for an eigenvalue 0 < lambda <= 1 of V and d recurrent steps, "
        "which take d + 1 hops of attention",
        evidence="1000 random patterns: the corrected bound is never violated and reached; kappa^(-d) is violated in "
        "more than a quarter of the cases",
    ),
    Erratum(
        key="kerg2022-single-attention",
        place="Remark B.1.40, Eq. (B.1.291)",
        printed="p = lambda^d (1 - lambda^(c - d + 1))/(1 - lambda) where one state is attended to",
        correct="plus lambda^k, the path that takes recurrent steps alone",
        evidence="attention to one state followed step by step, real and complex eigenvalues, to 1e-13",
    ),
    Erratum(
        key="kerg2022-constant-memory",
        place="section 4.5",
        printed="the memory that relevancy screening needs is constant",
        correct="per step, when the network is only run; for a gradient it grows like the length of the sequence",
        evidence="128 units, nu = rho = 10, batch 10, a training step: 68 MB at 1000 and 271 MB at 4000 steps; gated, "
        "116 MB at 1000 and 233 MB at 2000",
    ),
)
