"""Kerg 2022 on relevancy screening (section 2.7, chapter 4, appendix B): errata."""

from __future__ import annotations

from separatrix.sources.document import Erratum

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
    Erratum(
        key="kerg2022-lemma-b12",
        place="Lemma B.1.2",
        printed="J_k = ds_{k+1}/dh_k",
        correct="J_k = dh_{k+1}/ds_k, as in Proposition 4.4.1",
        evidence="sums over paths of small networks: relative error above 1 with the printed one, 1e-15 with this one",
    ),
    Erratum(
        key="kerg2022-path-order",
        place="Eq. (B.1.18)",
        printed="after F_{i_{s+1}, i_s} follows F_{i_{s-1}, i_{s-2}}",
        correct="F_{i_s, i_{s-1}}: no factor is left out",
        evidence="with all factors the sum over paths is the derivative by autodiff to 1e-15",
    ),
    Erratum(
        key="kerg2022-d-index",
        place="Eqs. (B.1.80) to (B.1.84)",
        printed="D with indices (k+1, j) and (k+1, j+1), and D with a tilde with indices (k', 0) and k'",
        correct="D_{k+1,j} and D with a tilde and the index k' alone",
        evidence="E and F by autodiff are their weighted sums with R to 1e-15 under this naming",
    ),
    Erratum(
        key="kerg2022-lemma-b116",
        place="Lemma B.1.16, Eq. (B.1.101)",
        printed="the sum of [s_{t-1}, x_t, 1] dL/dh_t diag(phi'(a_t))",
        correct="phi'(a_{t-1}), and the outer product of diag(phi') dL/dh_t with [s_{t-1}, x_t, 1]",
        evidence="against autograd: relative error about 1 as printed, 1e-15 corrected",
    ),
    Erratum(
        key="kerg2022-attention-range",
        place="Eq. (2.7.3)",
        printed="attention over h_1 to h_n; alignment functions with values in R^n",
        correct="over h_1 to h_t; an alignment is one number for each state",
        evidence="n is the size of a state; a softmax over states needs one number each",
    ),
    Erratum(
        key="kerg2022-strict-chain",
        place="section 4.4.1, definition of a chain",
        printed="i_1 <= i_2 <= ... <= i_s",
        correct="i_1 < i_2 < ... < i_s, as in Proposition 4.4.1",
        evidence="chains with equal indices would need F_{i,i}, which is not defined",
    ),
    Erratum(
        key="kerg2022-omega-4",
        place="Remark B.1.22, Eqs. (B.1.143) and (B.1.144)",
        printed="the last term of omega(4) is -(S_4 + S_2^2)/8, and -(S_4 + 2 S_2^2)/8 in the next line",
        correct="-(2 S_4 + S_2^2)/8: pairs of pairs were counted twice",
        evidence="t = 2, k = 9: 0.209757 by enumeration and so corrected, 0.220012 and 0.182231 as printed",
    ),
    Erratum(
        key="kerg2022-psi",
        place="Eq. (B.1.160)",
        printed="psi is a sum over partitions, j_1 >= ... >= j_k",
        correct="over ordered compositions, as its own recursion (B.1.168) has it",
        evidence="t = 2, k = 9: omega(1) to omega(7) follow from ordered sums exactly; unordered ones are off by 0.018",
    ),
    Erratum(
        key="kerg2022-bound-gap",
        place="Remark B.1.29",
        printed="the difference of upper and lower bound of theta converges to zero",
        correct="it does not: for t = 1 it tends to 2 (s = 2) and grows like a logarithm (s = 3)",
        evidence="t = 1, s = 3: 16.9 at k = 100 and 30.9 at k = 10,000",
    ),
    Erratum(
        key="kerg2022-theta-00",
        place="Remark B.1.30, Eq. (B.1.215)",
        printed="theta_{l:k}(0) = 1 for l < k",
        correct="theta_{0:0}(0) = 1 is needed as well",
        evidence="in rational numbers every case with k = s fails without it and none with it",
    ),
    Erratum(
        key="kerg2022-oom-lengths",
        place="section 4.6.1",
        printed="MemRNN solves copy until T = 100 and denoise until 500, and runs out of memory beyond",
        correct="the tables have both until 1000; nothing runs out of memory where activations are computed again",
        evidence="bytes kept for the way back: T^2 with stored activations, T when computed again (kerg4-fig2)",
    ),
    Erratum(
        key="kerg2022-caption-b1",
        place="appendix B.3, caption of Fig. 1",
        printed="MemLSTM models for several nu and rho",
        correct="RelLSTM: MemLSTM has neither",
        evidence="a full memory has no buffer and no relevant set; the text around the figure speaks of screening",
    ),
    Erratum(
        key="kerg2022-theorem-2",
        place="section 4.7",
        printed="as expected from Theorem 2 (section 4.4)",
        correct="Theorem 4.4.3, on sparse attention",
        evidence="section 4.4 has no Theorem 2; 4.4.2 is on even attention, which RelLSTM does not have",
    ),
    Erratum(
        key="kerg2022-settings",
        place="appendix B.4, Tables 3 to 6",
        printed="rho = 10 and Adam for RelRNN on copy, windows of 125 characters",
        correct="the public code has rho = 15, RMSprop by default, windows of 150; ten places are one too few for "
        "ten symbols and the cue, which takes one",
        evidence="copy at delay 100: see kerg4-table1, which uses rho = 15",
    ),
)
