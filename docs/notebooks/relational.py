# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # Answers from relations alone
#
# Five shapes in training, ninety-five in the test. What of a network's accuracy about the ninety-five is owed to its
# relations, what to the normalisation before them, and what to the task?

# %%
import torch

from separatrix.nn import CoRelNet, RelationalTransformer, temporal_context_norm
from separatrix.tasks import ideal_relations, make_task, shortcut_accuracy
from separatrix.training import RelationalSettings, examine_relational, oracle_answers, train_relational

quick = False

# %% [markdown]
# ## A problem
#
# A row by a rule, the beginning of a second row, four choices: a problem is nine indices of pictures.

# %%
task = make_task("identity_rules", holdout=95, seed=0)
problems = task.problems("test", 3, generator=torch.Generator().manual_seed(0))
for row, label, pattern in zip(
    problems.index.tolist(), problems.label.tolist(), problems.pattern.tolist(), strict=True
):
    print(problems.names[pattern], row, "answer", label)

# %% [markdown]
# ## What an untrained network sees
#
# Similarities of a random encoder, normalised over positions, are already the ideal relation: equal objects are told
# from different ones before anything is learned. With raw features they are not.

# %%
network = CoRelNet(task.seq_len, task.n_answers, encoder="frozen")
with torch.no_grad():
    seen = network.objects(task.images, problems.index)
    same = ideal_relations(task, problems.index).bool()
    for name, z in (("raw", seen), ("normalised", temporal_context_norm(seen))):
        alike = z @ z.mT
        print(name, "least of equal pairs", round(alike[same].min().item(), 1), "greatest of different ones",
              round(alike[~same].max().item(), 1))  # fmt: skip
assert alike[same].min() > alike[~same].max()

# %% [markdown]
# ## A random encoder is enough; a transformer is not
#
# Both answer every problem about the five shapes they were shown in the end. Look at the others.

# %%
steps = RelationalSettings(n_steps=20 if quick else 400, n_test=500 if quick else 4000, n_curve=100, measure_every=20)
runs = {}
for name, model in (("CoRelNet", network), ("Transformer", RelationalTransformer(task.seq_len, task.n_answers))):
    runs[name] = train_relational(model, task, steps)
    print(name, "training", runs[name].train_accuracy, "unseen", runs[name].last.accuracy)

# %% [markdown]
# ## What training does not show, no relation tells
#
# Without two of its words, identity rules of four never shows the second place alone. A decoder that is told which
# objects are equal then fails on the one word that needs it.

# %%
missing = make_task("identity_rules4_missing")
told = oracle_answers(missing, n_steps=20 if quick else 1500, n_test=600)
print(told.by_pattern)

# %% [markdown]
# ## A game that needs no geometry
#
# "Between" asks whether the middle one of three in a line stands between two equals. That some two are equal is enough.

# %%
for name in ("game_between", "game_between_strict"):
    print(name, shortcut_accuracy(make_task(name), 2000).best)

# %% [markdown]
# ## All of it in one call

# %%
pairs = make_task("same_diff")
short = RelationalSettings(n_steps=10 if quick else 200, n_test=500, n_curve=100)
found = examine_relational(lambda seed: CoRelNet(2, 2), pairs, short, seeds=(0, 1), oracle_steps=20 if quick else 200)
print(found)
assert len(found.findings) > 1
