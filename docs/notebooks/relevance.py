# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # What a bounded memory keeps
#
# A recurrent network that attends to its past needs not keep all of it. This notebook plays the screening of kerg2022
# on given weights, shows why the first states win before anything is learned, and looks at where gradients go.

# %%
import torch

from separatrix.diagnose import gradient_paths
from separatrix.nn import RelRNN, replay, startup_bias
from separatrix.tasks import Copy
from separatrix.theory import uniform_attention_exponent, uniform_attention_gradient

# %% [markdown]
# ## The algorithm on twelve weights
#
# Two places for the newest, two for the relevant. The strongest event (the sixth, weight 8) is lost: the first profited
# from the time when the memory was nearly empty. Scores relative to an even share mend it.

# %%
weights = [1, 1, 4, 1, 1, 8, 1, 1, 1, 2, 1, 6]
as_printed = replay(weights, n_buffer=2, n_relevant=2)
by_share = replay(weights, n_buffer=2, n_relevant=2, normalise="share")
print(as_printed.relevant[-1], by_share.relevant[-1])
assert as_printed.relevant[-1] == (1, 3)
assert by_share.relevant[-1] == (3, 6)

# %% [markdown]
# ## An untrained network keeps what came first
#
# On the copy task that happens to be right, which flatters it.

# %%
task = Copy(40)
batch = task.sample(8, generator=torch.Generator().manual_seed(0))
core = RelRNN(task.n_inputs, 32, n_buffer=10, n_relevant=10)
with torch.no_grad():
    core(batch.inputs)
bias = startup_bias(core.last.scores, core.last.relevant_index, 10)
print("first states score", bias.ratio.mean().item(), "times the others")
assert bias.ratio.min() > 1.5

# %% [markdown]
# ## Even attention and the length of a sequence
#
# Gradients under even attention go like a power of the length, and the power depends on the eigenvalue of the recurrent
# matrix: 1/T is no floor.

# %%
for eigenvalue in (0.5, 0.2, -0.5, -0.9):
    exponent = float(uniform_attention_exponent(eigenvalue))
    ratio = float(uniform_attention_gradient(eigenvalue, 1, 4000) / uniform_attention_gradient(eigenvalue, 1, 2000))
    print(eigenvalue, "T to the", round(exponent, 3), "measured", round(torch.tensor(ratio).log2().item(), 3))

# %% [markdown]
# ## Where gradients go
#
# Shares of the gradient by the number of recurrent steps on the way.

# %%
network = RelRNN(task.n_inputs, 16, 4, 4, dtype=torch.float64)
found = gradient_paths(network, batch.inputs[:2, :25].double(), n_degrees=30)
print(found.degree_norms[:6, 0])
assert found.remainder < 1e-12
