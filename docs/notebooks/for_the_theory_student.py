# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # For the student of theory: check a theorem yourself
#
# You read a formula in a paper. Is it right, in which generality, and would a simulation have told? This is how every
# formula of the package was treated before it was let in; here we do it with three, and two of them turn out to be
# misprinted or too general.

# %%
import torch

import separatrix
from separatrix.core import spawn
from separatrix.dynamics import AttentionFlow
from separatrix.experiments import catalogue
from separatrix.lab import ledger, shipped_publications
from separatrix.matrices import balanced_pair
from separatrix.matrices.ensembles import GOE
from separatrix.sources import find_document
from separatrix.theory import BalancedFlow, bipartite_spectrum, mean_response

quick = False  # fewer random cases
generator = spawn(0, "notebook", "theory")

# %% [markdown]
# ## A spectrum, against automatic differentiation
#
# Ten tokens in two opposite groups on an eigenvector of $V$ rest. The closed form of the spectrum needs two numbers per
# eigenvalue, whatever the number of tokens. The other route: the Jacobian of the flow at that state, by automatic
# differentiation, all $n(d-1)$ directions of it, and a dense eigenvalue solver.

# %%
worst = 0.0
for _ in range(3 if quick else 30):
    d, n_first, n_second = 3, int(torch.randint(1, 6, (1,), generator=generator)), 4
    basis = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))[0]
    value = basis @ torch.diag(torch.tensor([2.0, 0.5, -1.0], dtype=torch.float64)) @ basis.mT
    coupling = torch.randn(d, d, generator=generator, dtype=torch.float64)
    closed = bipartite_spectrum(coupling, value, 0, n_first, n_second).expand()
    direction = torch.linalg.eigh(value).eigenvectors[:, -1]
    signs = torch.tensor([1.0] * n_first + [-1.0] * n_second, dtype=torch.float64)
    flow = AttentionFlow.from_coupling(coupling, value)
    dense = torch.linalg.eigvals(flow.jacobian(signs[:, None] * direction))
    gap = (closed.real.sort().values - dense.real.sort().values).abs().max()
    worst = max(worst, float(gap))
print(f"largest difference of a real part: {worst:.1e}")
assert worst < 1e-6

# %% [markdown]
# Agreement to rounding in random cases does not replace a proof. It says that this formula, as it stands in this file,
# is the formula of this flow.
#
# ## A mean, against sampling with an interval
#
# A linear equilibrium network answers $x$ with $z = (I - W)^{-1}x$. The paper states that on average $z = x$, for every
# rotation-invariant family of $W$. Draw symmetric matrices and look at $\chi = \operatorname{tr}(I - W)^{-1}/N$, with a
# standard error:

# %%
n, n_draws, weight_var = 200, 4 if quick else 40, 0.1
draws = []
for _ in range(n_draws):
    w = GOE().sample(n, weight_var=weight_var, generator=generator)
    draws.append(float(torch.linalg.inv(torch.eye(n, dtype=w.dtype) - w).trace() / n))
sampled = torch.tensor(draws)
mean, error = float(sampled.mean()), float(sampled.std() / n_draws**0.5)
corrected = float(mean_response(GOE(), weight_var))
print(f"sampled {mean:.4f} ± {error:.4f}; as printed 1; corrected {corrected:.4f}")

# %% [markdown]
# A symmetric matrix returns to each unit what the unit sent out, so the mean response exceeds one. The corrected value
# is $2/(1 + \sqrt{1 - 4V})$.
#
# ## What is printed, what is true
#
# Misprints and errors are data here: place, what is printed, what is correct, and the numbers that decided.

# %%
document = find_document("agarwala2022")
erratum = next(erratum for erratum in document.errata if erratum.key == "agarwala2022-eq9")
print(document.citation())
print(f"{erratum.place}\n  printed:  {erratum.printed}\n  correct:  {erratum.correct}\n  evidence: {erratum.evidence}")

# %% [markdown]
# ## A statement that is too general
#
# "A large balance makes learning lazy." With as many hidden units as outputs it does; with fewer it makes learning
# *late*. One counter-example is enough, and it can be drawn.

# %%
task = torch.randn(5, 2, dtype=torch.float64, generator=generator)
times = torch.logspace(-4, 3, 120, dtype=torch.float64)
with separatrix.report.theme("light"):
    figure, ax = separatrix.report.single_axes(height=3.2)
    for n_hidden in (5, 3):
        w1, w2 = balanced_pair(300.0, 2, n_hidden, 5, generator=generator)
        flow = BalancedFlow(w1, w2, task)
        loss = flow.loss(times)
        ax.plot(times, loss / loss[0], label=f"{n_hidden} hidden units")
    ax.set(xscale="log", xlabel="time", ylabel="loss / first loss", ylim=(0, None))
    ax.legend()
figure

# %% [markdown]
# ## The ledger
#
# Every statement, figure and table of the four documents is a claim with a verdict computed from stored runs. What does
# the ledger say of the mean we have just sampled?

# %%
experiments = catalogue()
experiment = experiments["agarwala-theorems"]
for entry in ledger([experiment], None, None, shipped_publications(experiments)):
    if entry.claim.erratum == erratum.key:
        print(f"{entry.claim.id}: {entry.judgement.verdict.label}")
        print(f"  stated:   {entry.claim.statement}\n  measured: {entry.judgement.evidence}")

# %% [markdown]
# Where to go on: `separatrix claims` prints all of them, `separatrix show NAME` how one was decided, and *Add a closed
# form* how yours gets in: a function, its place in the source, and a test that reaches the number by another road.
