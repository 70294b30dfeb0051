# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How does a recurrent network remember three bits?
#
# We train a small network to hold three bits, then take it apart: where does it rest, which of these points attract and
# which are saddles, how chaotic is it, and what does its motion look like. It takes a few seconds. Open it in Jupyter
# with `jupytext --to ipynb memory_of_three_bits.py`, or run it as a script.

# %%
import torch
from torch import nn

import separatrix
from separatrix.core import spawn
from separatrix.diagnose import fixed_points, recurrent

quick = False  # a few updates only, to see that everything runs
n_bits, n_units, n_steps = 3, 16, 40
n_updates = 20 if quick else 800
generator = spawn(0, "three bits")

# %% [markdown]
# ## The task
#
# Now and then a channel receives a pulse of +1 or -1. The output must hold the sign of the last pulse on each channel.


# %%
def flip_flops(n_sequences):
    """Pulses (sequence, step, bit), and what is to be held."""
    shape = (n_sequences, n_steps, n_bits)
    signs = 2.0 * torch.randint(0, 2, shape, generator=generator) - 1
    pulses = signs * (torch.rand(shape, generator=generator) < 0.2)
    pulses[:, 0] = signs[:, 0]
    held = [pulses[:, 0]]
    for step in range(1, n_steps):
        held.append(torch.where(pulses[:, step] == 0, held[-1], pulses[:, step]))
    return pulses, torch.stack(held, dim=1)


# %% [markdown]
# ## Training
#
# An ordinary `nn.RNN` in an ordinary loop; nothing below needs a network of ours.

# %%
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    rnn, readout = nn.RNN(n_bits, n_units, batch_first=True), nn.Linear(n_units, n_bits)
parameters = [*rnn.parameters(), *readout.parameters()]
optimiser = torch.optim.Adam(parameters, lr=5e-3)
losses = []
for _ in range(n_updates):
    pulses, held = flip_flops(64)
    loss = (readout(rnn(pulses)[0]) - held).square().mean()
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimiser.step()
    losses.append(float(loss.detach()))
print(f"mean squared error: {losses[0]:.3f} before, {losses[-1]:.4f} after {n_updates} updates")

# %% [markdown]
# ## Where it rests
#
# Without pulses a memory must stay. The search starts from states that the network visits on the task; every point it
# reports is certified: its residual is small absolutely and relatively, and so is its estimated error.

# %%
pulses, held = flip_flops(64)
visited = rnn(pulses)[0].detach()
points = fixed_points(rnn, torch.zeros(n_bits), visited, n_starts=64 if quick else 512)
print(points.sentence)

# %% [markdown]
# A network that solved the task has a stable point for each of the eight memories, and between them saddles: one
# unstable direction on the edge between two memories, two on a face, three in the middle.

# %%
memories = torch.sign(readout(points.states.to(torch.float32)).detach())
for k in range(min(8, len(points.states))):
    kind = "stable" if bool(points.stable[k]) else f"unstable in {int(points.n_unstable[k])} directions"
    slowest = float(points.eigenvalues[k, 0].abs())
    print(f"{memories[k].int().tolist()}: {kind}, largest |eigenvalue| {slowest:.3f}")

# %% [markdown]
# ## The picture
#
# Fixed points among the visited states in the plane of their first two principal components; arrows show how states of
# that plane move in one step without pulses.

# %%
ax = separatrix.plot(points)
ax.set_title("three bits: memories, saddles and the motion between them")
ax.figure

# %% [markdown]
# ## Exponents
#
# On the task itself: do small differences grow? A memory forgets its past on purpose: each pulse overwrites a bit, so
# the exponents are negative, and the slowest of them tell for how long a difference survives.

# %%
report = recurrent(rnn, pulses[: 1 if quick else 2])
for sentence in report.verdicts:
    print(sentence)
separatrix.plot(report).figure

# %% [markdown]
# Where to go on: `diagnose.input_branch` follows a point while the input changes, and the how-to pages *Find the fixed
# points of my RNN* and *Look inside my RNN* explain every number above.
