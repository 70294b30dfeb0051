# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # Where do tokens end?
#
# Repeat one self-attention layer for ever and its tokens flow over a sphere. Do they all agree, do they split into
# groups, do they go round for ever? Here we watch ten tokens from many starts, ask for a proof of where they ended,
# count *all* stable ends that the weights allow, and turn the temperature until the answer changes.

# %%
from collections import Counter

import torch

import separatrix
from separatrix.core import spawn
from separatrix.diagnose import beta_sweep, phase_diagram
from separatrix.dynamics import AttentionFlow, classify, integrate, random_tokens
from separatrix.theory import count_stable, stable_window

quick = False  # fewer starts and temperatures, to see that everything runs

# %% [markdown]
# ## One flow, many starts
#
# Two matrices decide: the coupling $M = Q^\top K$ says who attends to whom, the value matrix $V$ where attended tokens
# are pulled to. `integrate` follows a batch of starts, each with its own steps, until every one of them rests.

# %%
coupling = torch.tensor([[2.177, -0.374, -1.305], [-2.376, 1.363, 0.712], [2.747, -0.034, 1.789]], dtype=torch.float64)
value = torch.tensor([[1.019, 0.896, -0.307], [0.896, 0.167, 0.557], [-0.307, 0.557, -0.017]], dtype=torch.float64)
flow = AttentionFlow.from_coupling(coupling, value)

starts = random_tokens(10, 3, 20 if quick else 400, generator=spawn(0, "notebook", "starts"))
run = integrate(flow, starts, times=torch.linspace(0, 12, 60, dtype=torch.float64))
run

# %% [markdown]
# The distance from the last frame falls on straight lines of a logarithmic axis: the ends are reached exponentially,
# some of them after a plateau near a state that repels.

# %%
separatrix.plot(integrate(flow, starts[:12], times=torch.linspace(0, 12, 60, dtype=torch.float64)))

# %% [markdown]
# ## What did they reach?
#
# A small speed is no proof. `classify` polishes each end by Newton's method and takes the spectrum of all tokens on the
# sphere from derivatives: a name, a certificate, and how fast disturbances die out.

# %%
ends = classify(flow, integrate(flow, starts).final)
for label, count in Counter(end.coarse_label for end in ends).most_common():
    print(f"{count:4d} of {len(ends)} starts: {label}")
assert all(end.stable for end in ends)

# %%
clustering = next((end for end in ends if end.kind == "clustering"), ends[0])
separatrix.plot(clustering)

# %% [markdown]
# Same weights, different fates: consensus, two opposite groups, and a clustering that is neither. The flow is
# multistable.
#
# ## Count them all
#
# Simulation finds what it happens to reach. For consensus and opposite groups a closed form counts every stable state:
# how many of the $2^n$ sign patterns on each eigenvector of $V$ are stable. It does not share a line of code with the
# integrator.

# %%
count = count_stable(coupling, value, n_tokens=10)
print(count.per_eigenvector, "of", 2**10, "patterns on each eigenvector")
window = stable_window(coupling, value, 0, 10)
print("stable groups on the first eigenvector:", int(window.lowest), "to", int(window.highest), "of 10 tokens")
reached = sorted({end.sizes for end in ends if end.kind == "bipartite"})
print("groups that were reached:", reached)
assert all(int(window.lowest) <= sizes[0] <= int(window.highest) for sizes in reached)

# %% [markdown]
# ## Turn the temperature
#
# At small inverse temperature everybody attends to everybody and only consensus is left. The splits become stable one
# after another as attention sharpens; the curves below are the closed form.

# %%
betas = torch.linspace(0.1, 2.0, 6 if quick else 40, dtype=torch.float64)
diagram = phase_diagram(coupling, value, betas, 10, n_starts=4 if quick else 10, n_census=2 if quick else 4)
print(f"some split is stable above beta = {diagram.critical[0]:.4f}")
separatrix.plot(diagram)

# %% [markdown]
# The same threshold by another route: follow the opposite groups through the temperature and see where an eigenvalue
# crosses zero.

# %%
sweep = beta_sweep(coupling, value, betas[1:], 10)
for event in sweep.events():
    print(event)
separatrix.plot(sweep)

# %% [markdown]
# Where to go on: *Does my layer collapse?* does this for the layers of a model of yours, `separatrix run altafini-fig2`
# repeats it over random weights, with intervals, and *Equilibria of attention* derives the formulas.
