# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # For the engineer: my model trains badly
#
# A digit classifier that does not learn. There is no error message, the loss falls a little and stays. One call before
# the next training says what is wrong, where, how sure that is, and which line to change. We do what it says, one
# finding after the other, and train again.

# %%
import torch
from sklearn.datasets import load_digits
from torch import nn

import separatrix

quick = False  # one pass over the data instead of twenty
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
y = torch.tensor(digits.target)
train_x, train_y, test_x, test_y = x[:1400], y[:1400], x[1400:], y[1400:]

# %% [markdown]
# ## The model as it was handed over
#
# Ten layers, a softmax at the end "because we want probabilities", inputs from 0 to 16 as they come.


# %%
def as_handed_over():
    """Deep, narrow, with a softmax in front of a loss that has its own."""
    layers = [layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Sigmoid())]
    return nn.Sequential(*layers, nn.Linear(64, 10), nn.Softmax(dim=-1))


def fit(model, inputs, lr, n_epochs):
    """A plain loop; accuracy on digits it has not seen."""
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    order = torch.Generator().manual_seed(0)
    for _ in range(n_epochs):
        for rows in torch.randperm(1400, generator=order).split(100):
            loss = nn.functional.cross_entropy(model(inputs(train_x[rows])), train_y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        accuracy = (model(inputs(test_x)).argmax(-1) == test_y).float().mean()
    return float(loss.detach()), float(accuracy)


n_epochs = 1 if quick else 20
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    model = as_handed_over()
    loss, accuracy = fit(model, lambda batch: batch, 1e-3, n_epochs)
print(f"loss {loss:.3f}, accuracy {accuracy:.2f} (guessing: 0.10)")

# %% [markdown]
# ## Ask before training again
#
# A fresh copy, one batch, the loss. Nothing is trained, nothing of the model stays changed.

# %%
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    model = as_handed_over()
found = separatrix.check(model, train_x[:64], loss="cross_entropy", target=train_y[:64])
print(found)

# %% [markdown]
# The findings are objects too: for a test in continuous integration, `found.raise_if("fault")` fails the build.

# %%
for finding in found.findings:
    print(f"{finding.severity:8s} {finding.id:22s} {finding.where}")

# %% [markdown]
# ## Do what it says
#
# No softmax in front of the loss; an activation that keeps signals alive, with residual blocks and normalisation for
# depth; inputs scaled.


# %%
class Residual(nn.Module):
    """A block that adds to what it gets."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, state):
        return state + self.inner(state)


def mended():
    """The same depth, with ways for signals and gradients."""
    return nn.Sequential(nn.Linear(64, 64), *[Residual(64) for _ in range(4)], nn.LayerNorm(64), nn.Linear(64, 10))


with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    model = mended()
again = separatrix.check(model, train_x[:64] / 16, loss="cross_entropy", target=train_y[:64])
print(again)
assert not [finding for finding in again.findings if finding.severity == "fault"]

# %%
loss, accuracy = fit(model, lambda batch: batch / 16, 1e-3, n_epochs)
print(f"loss {loss:.3f}, accuracy {accuracy:.2f}")

# %% [markdown]
# ## Keep watching
#
# A run that starts well may die later. `watch` visits a training now and then at a few percent of its cost and warns
# when something changes against the run's own beginning.

# %%
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
with separatrix.diagnose.watch(model, optimiser, every=5) as watcher:
    for rows in torch.arange(1400).split(100):
        watcher.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(train_x[rows] / 16), train_y[rows])
        loss.backward()
        watcher.note(loss)
        watcher.optimizer.step()
print(len(watcher.visits), "visits;", "findings:", watcher.findings or "none")

# %%
separatrix.plot(again)

# %% [markdown]
# Where to go on: *What is wrong with my model?* lists what to pass, the command line and what one batch cannot show;
# *How often check is right* has the numbers, including the models nobody had thought of.
