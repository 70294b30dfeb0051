# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # For the neuroscientist: a network that weighs evidence
#
# Noisy evidence arrives for one side or the other; at the end the network says which side had more. Models of decision
# making solve this with a line of states along which evidence is summed. Does a trained network do so? We train one,
# look for the states at which it rests, measure how long each direction remembers, and see what happens to the line
# when the input changes.

# %%
import torch
from torch import nn

import separatrix
from separatrix.core import spawn
from separatrix.diagnose import fixed_points, input_branch, recurrent

quick = False  # few updates and starts
n_units, n_steps = 24, 30
n_updates = 30 if quick else 700
generator = spawn(0, "notebook", "evidence")


# %%
def trials(n):
    """Noisy evidence (trial, step, 1), and the running sum that is to be held, squashed to -1 ... 1."""
    drift = 0.2 * (2.0 * torch.rand(n, 1, 1, generator=generator) - 1)
    evidence = drift + 0.4 * torch.randn(n, n_steps, 1, generator=generator)
    return evidence, torch.tanh(0.3 * evidence.cumsum(1))


# %% [markdown]
# ## A network of rate units
#
# An ordinary `nn.RNN` with tanh units; nothing below needs a network of ours.

# %%
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(1)
    rnn, readout = nn.RNN(1, n_units, batch_first=True), nn.Linear(n_units, 1)
parameters = [*rnn.parameters(), *readout.parameters()]
optimiser = torch.optim.Adam(parameters, lr=3e-3)
losses = []
for _ in range(n_updates):
    evidence, held = trials(64)
    loss = (readout(rnn(evidence)[0]) - held).square().mean()
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimiser.step()
    losses.append(float(loss.detach()))
evidence, held = trials(300)
with torch.no_grad():
    said = readout(rnn(evidence)[0])[:, -1, 0]
right = float((said.sign() == evidence.sum((1, 2)).sign()).float().mean())
print(f"error {losses[0]:.3f} -> {losses[-1]:.4f}; the side with more evidence was chosen in {right:.0%} of trials")

# %% [markdown]
# ## Where it rests without evidence
#
# An ideal integrator has a whole line of resting states. A trained network has, at best, a few points on it and a slow
# stretch between them; which of the two is told by certified fixed points and, apart from them, slow places.

# %%
visited = rnn(evidence)[0].detach()
points = fixed_points(rnn, torch.zeros(1), visited, n_starts=48 if quick else 400)
print(points.sentence)
values = readout(points.states.float()).detach()[:, 0]
for k in torch.argsort(values).tolist()[:8]:
    kind = "stable" if bool(points.stable[k]) else f"unstable in {int(points.n_unstable[k])} direction(s)"
    slow, next_slow = points.eigenvalues[k].abs()[:2].tolist()
    print(f"read-out {values[k]:+.2f}: {kind}; slowest eigenvalue {slow:.4f}, the next {next_slow:.3f}")

# %% [markdown]
# One eigenvalue near one and all others well below: one direction remembers, the rest forget at once. That gap is what
# "line attractor" means for a finite network. The time constant of the slow direction, $-1/\ln|\lambda|$, is its memory
# in steps.

# %%
separatrix.plot(points)

# %% [markdown]
# ## Bias it
#
# Take the resting state furthest to one side and add constant evidence for the other. `input_branch` follows the point
# through the input; where it meets another one and both vanish, the network must change its mind.

# %%
branch = input_branch(rnn, torch.tensor([[0.0], [0.01]]), points.states[values.argmin()], n_points=5 if quick else 41)
print(branch)

# %%
separatrix.plot(branch)

# %% [markdown]
# ## How long does it remember?
#
# Along real trials: the Lyapunov exponents say how fast small differences die out, the gradients how far back a change
# of the input is felt, and the Fisher memory how much the noisy state knows of earlier evidence.

# %%
report = recurrent(rnn, evidence[: 1 if quick else 4])
for sentence in report.verdicts:
    print(sentence)
separatrix.plot(report)

# %% [markdown]
# Where to go on: the notebook *How does a recurrent network remember three bits?* has discrete memories instead of a
# line; *Find the fixed points of my RNN* says how points are certified and what cannot be concluded from them.
