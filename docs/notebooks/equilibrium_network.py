# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # An equilibrium network, from the first matrix to the last update
#
# A deep equilibrium layer returns the state that its cell leaves alone. Whether there is one, how many steps it takes
# and whether training keeps it are questions about a matrix: its family and its scale. We forecast, solve, compare the
# forecast with the solve, and train.

# %%
import torch
from torch import nn

import separatrix
from separatrix import advise
from separatrix.core import spawn
from separatrix.dynamics import Anderson, Picard, find_equilibrium, spectral_radius
from separatrix.matrices.ensembles import GOE, Gaussian, Haar
from separatrix.nn import DEQ, TanhCell
from separatrix.theory import mean_field

quick = False  # narrow layers and few updates
width = 64 if quick else 256
generator = spawn(0, "notebook", "equilibrium")

# %% [markdown]
# ## A forecast before anything is solved
#
# Mean-field theory gives the spectral radius of the Jacobian at the equilibrium, for each family of matrices. Radius
# below one: plain iteration converges, by that factor a step. The symmetric family (GOE) reaches one first, because a
# unit hears its own echo there; usual theory, which takes weights as independent, misses it.

# %%
scales = torch.linspace(0.05, 0.9, 18, dtype=torch.float64)
for family in (GOE(), Gaussian(), Haar()):
    forecast = mean_field(family, "tanh", weight_var=scales, input_var=1.0)
    first = scales[(forecast.radius > 0.8).nonzero()[:1].flatten()].tolist()
    print(f"{family.name:9s} radius 0.8 at a variance of the weights of", [round(v, 2) for v in first] or "none here")
separatrix.plot(mean_field(GOE(), "tanh", weight_var=scales, input_var=1.0))

# %% [markdown]
# ## Does a network of finite width obey?
#
# One network per scale, solved by plain iteration, its Jacobian's radius measured at the equilibrium it found.

# %%
chosen = [0.1, 0.2, 0.3] if quick else [0.1, 0.2, 0.3, 0.4, 0.5]
x = torch.randn(8, width, generator=generator, dtype=torch.float64)
for weight_var in chosen:
    cell = TanhCell(width, ensemble="goe", weight_var=weight_var, generator=generator, dtype=torch.float64, bias=False)
    solution = find_equilibrium(lambda z, cell=cell: cell(z, x), Picard(tol=1e-8, max_steps=2000), torch.zeros_like(x))
    measured = spectral_radius(lambda z, cell=cell: cell(z, x), solution.value)
    predicted = float(mean_field(GOE(), "tanh", weight_var=weight_var, input_var=1.0).radius)
    print(
        f"weights' variance {weight_var}: radius {predicted:.3f} predicted, {float(measured.mean()):.3f} measured; "
        f"{int(solution.steps.max())} steps"
    )
solution

# %% [markdown]
# ## Advice
#
# Which family and scale for this activation and width? The advisor evaluates the theory for every family and picks the
# largest scale that keeps the radius in its target; the curves are what it looked at.

# %%
advice = advise.deq("tanh", width)
print(advice)
separatrix.plot(advice)

# %% [markdown]
# ## Train it
#
# Two noisy patterns, one equilibrium layer, one read-out. `layer.last` says after every call what the solver did; here
# we keep the number of steps and the radius, for training moves both.

# %%
n_updates = 5 if quick else 60
pattern = torch.randn(2, width, generator=generator)
cell = TanhCell(width, ensemble="haar", weight_var=0.64, generator=generator)
layer = DEQ(cell, solver=Anderson(tol=1e-4, max_steps=60))
readout = nn.Linear(width, 2)
with torch.no_grad():
    readout.weight.normal_(0, width**-0.5, generator=generator)
    readout.bias.zero_()
optimiser = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=2e-3)
history = []
for _ in range(n_updates):
    labels = torch.randint(0, 2, (32,), generator=generator)
    batch = 0.3 * pattern[labels] + torch.randn(32, width, generator=generator)
    loss = nn.functional.cross_entropy(readout(layer(batch)), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    state = layer.last.value.detach()
    radius = float(spectral_radius(lambda z, batch=batch: cell(z, batch), state).max())
    history.append((float(loss.detach()), int(layer.last.steps.max()), radius))
for when, (loss_then, steps, radius) in (("first", history[0]), ("last", history[-1])):
    print(f"{when} update: loss {loss_then:.3f}, {steps} steps of the solver, radius {radius:.2f}")

# %%
with separatrix.report.theme("light"):
    figure, ax = separatrix.report.single_axes(height=3)
    ax.plot([row[0] for row in history], label="loss")
    ax.plot([row[2] for row in history], label="spectral radius")
    ax.axhline(1, linestyle="--", linewidth=0.8, color=separatrix.report.ink())
    ax.set(xlabel="update", ylabel="loss, radius", ylim=(0, None))
    ax.legend()
figure

# %% [markdown]
# A radius that creeps towards one is the usual way in which equilibrium networks die. `bound_spectral_norm`,
# `jacobian_penalty` and `MonotoneDEQ` prevent it: *My DEQ does not converge* goes through them one by one.
