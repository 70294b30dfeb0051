# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # Rich or lazy: an exactly solvable network, then yours
#
# A linear network of two layers can be solved exactly when its weights are balanced. Nothing else decides as much about
# its learning as the balance: how the weight is shared between the two layers. We look at the exact solution, compare
# it with gradient descent, and then turn the same knob on a ReLU network.

# %%
import copy

import torch
from torch import nn

import separatrix
from separatrix.core import spawn
from separatrix.diagnose import balance_profile, compare_regimes, rich_lazy, set_balance
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow, classify_regime, ntk_distance

quick = False  # fewer steps
generator = spawn(0, "notebook", "rich and lazy")

# %% [markdown]
# ## The exact course of learning
#
# A task of rank two, three balances, the same initial function. `BalancedFlow` evaluates the solution at any time: it
# does not integrate.

# %%
task = torch.diag(torch.tensor([3.0, 1.0], dtype=torch.float64))
start = 0.05 * torch.randn(2, 2, dtype=torch.float64, generator=generator)
times = torch.linspace(0, 4, 160, dtype=torch.float64)
with separatrix.report.theme("light"):
    figure, ax = separatrix.report.single_axes(height=3.2)
    for balance in (0.01, 1.0, 30.0):
        w1, w2 = balanced_pair(balance, 2, 2, 2, product=start, generator=generator)
        exact = BalancedFlow(w1, w2, task)
        ax.plot(times, exact.loss(times), label=f"balance {balance:g}")
    ax.set(yscale="log", xlabel="time (learning rate times steps)", ylabel="loss", ylim=(1e-4, None))
    ax.legend()
figure

# %% [markdown]
# The small balance waits and then learns one mode after the other; the large one falls along a straight line, as a
# linear model would. In between lies everything else.
#
# ## Is the exact solution right?
#
# Gradient descent with a small rate must follow it. That is another route to the same numbers.

# %%
w1, w2 = balanced_pair(1.0, 2, 2, 2, product=start, generator=generator)
exact = BalancedFlow(w1, w2, task)
rate, n_steps = (0.01, 100) if quick else (0.001, 3000)
a, b = w1.clone(), w2.clone()
for _ in range(n_steps):
    error = b @ a - task
    a, b = a - rate * b.mT @ error, b - rate * error @ a.mT
difference = float((b @ a - exact.product(rate * n_steps)).abs().max())
print(f"after {n_steps} steps of {rate}: largest difference of an entry {difference:.1e}")
assert difference < 20 * rate

# %% [markdown]
# ## Which balance is lazy?
#
# "A large balance is lazy" is true only where the heavy layer reaches every direction. Five outputs, a heavy second
# layer: with five hidden units it is lazy, with three it is only late.

# %%
wide_task = torch.randn(5, 2, dtype=torch.float64, generator=generator)
for n_hidden in (5, 3):
    w1, w2 = balanced_pair(1000.0, 2, n_hidden, 5, generator=generator)
    flow = BalancedFlow(w1, w2, wide_task)
    moved = ntk_distance(*flow.representations(0.0), *flow.representations(1e9), torch.eye(2, dtype=torch.float64))
    found = classify_regime(2, n_hidden, 5, 1000.0, torch.linalg.svdvals(wide_task))
    print(f"{n_hidden} hidden units: {found.regime.label}; the tangent kernel moved by {float(moved):.1e}")

# %% [markdown]
# ## The same knob on a network of yours
#
# Balance survives in ReLU networks, unit by unit, and can be changed without changing the function. Here a small
# network with a task that needs features.

# %%
x = torch.randn(60, 6, generator=generator)
y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], dim=1)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.normal_(0.0, 0.1, generator=generator)
print(balance_profile(model))

# %% [markdown]
# Two copies, one with a heavy first layer, one balanced; the same outputs to rounding, trained to the same loss. The
# verdict compares each with its own linearisation.

# %%
runs = {}
for name, balance in (("heavy first layer", -4.0), ("balanced", 0.0)):
    changed = copy.deepcopy(model)
    report = set_balance(changed, balance, example_inputs=x)
    print(f"{name}: outputs changed by {report.output_change:.0e}")
    runs[name] = rich_lazy(changed, (x, y), target_loss=0.5 if quick else 0.25)
print(compare_regimes(runs))

# %%
runs["balanced"]

# %% [markdown]
# Where to go on: *What balance really does* for the theory, *Is my network rich or lazy?* for every number above, and
# `separatrix run linear-regime-map` for the map over sizes and balances.
