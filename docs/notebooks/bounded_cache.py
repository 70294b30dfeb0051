# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # What a bounded cache forgets
#
# A transformer that writes keeps a key of every token. This notebook bounds that cache on a small model which it
# trains to recall values by their keys, and looks at what each policy keeps, what it costs, and where it goes wrong.
# It needs nothing but torch; for models of Hugging Face the cache is `RelevanceCache`, with the same policies.

# %%
import torch

from separatrix.diagnose import cache_audit
from separatrix.nn import BoundedCache, CausalTransformer, GivenKeyScores, play_eviction
from separatrix.tasks import KeyValues, StreamedBatches
from separatrix.training import TrainingSettings, train

quick = False  # a few updates instead of a training that learns the task

# %% [markdown]
# ## Policies on given attention
#
# Twenty keys; the third and the eleventh draw ten times the attention of any other. There are three places for the
# newest keys and two beyond them.

# %%
logits = torch.zeros(1, 1, 20, 20)
logits[..., 2] = logits[..., 10] = torch.tensor(10.0).log()


def kept(policy: str, normalise: str = "none") -> list[int]:
    weights = play_eviction(logits, n_buffer=3, n_relevant=2, policy=policy, normalise=normalise)
    return (weights[0, 0, -1] > 0).nonzero().squeeze(1).tolist()


for policy in ("screening", "heavy_hitter", "tova", "sinks", "window", "append_only"):
    print(f"{policy:13s}", kept(policy))
print("screening by share", kept("screening", "share"))
assert kept("sinks") == [0, 1, 17, 18, 19]
assert kept("window") == [15, 16, 17, 18, 19]
assert kept("screening", "share")[:2] == [2, 10]

# %% [markdown]
# Screening as printed keeps the very first key: it came when there was nobody else to look at. Counted by share of an
# even look, the two that matter stay.

# %%
assert 0 in kept("screening")

# %% [markdown]
# ## A model that needs its cache
#
# Pairs of a key and a value lie among fillers; then some keys are asked for. Without the pair in the cache the answer
# is a guess.

# %%
task = KeyValues(n_haystack=24, n_pairs=4, n_questions=3, n_keys=8, n_values=8, n_fillers=8)
model = CausalTransformer(task.n_inputs, 48, 2, 4, 2, generator=torch.Generator().manual_seed(0))


def loss(network, batch):
    return task.loss(network(input_ids=batch.inputs).logits, batch)


settings = TrainingSettings(n_steps=20 if quick else 1500, lr=3e-3, clip_norm=1.0, schedule="cosine", warmup_steps=10)
run = train(model, StreamedBatches(task, 32, 0, "train"), loss, settings)
model.eval()
batch = StreamedBatches(task, 16, 0, "test")(0)
with torch.no_grad():
    accuracy = float(task.accuracy(model(input_ids=batch.inputs).logits, batch))
print(f"{run.n_done} updates, accuracy with everything in the cache {accuracy:.2f}")

# %% [markdown]
# ## The audit
#
# Every policy gets as many keys: half for the newest, half beyond. The oracle knows which positions will be asked for.
# `retention` is the attention of the unbounded model that falls on keys which were held, as a part of what the best
# choice of as many keys would hold.

# %%
budget = 12
marked = torch.zeros(batch.inputs.shape, dtype=torch.bool).scatter_(1, batch.oracle, value=True)


def cache_of(policy, normalise="none"):
    return lambda: BoundedCache(budget // 2, budget // 2, policy, normalise)


audit = cache_audit(
    model,
    batch.inputs,
    {
        "screening": cache_of("screening"),
        "screening by share": cache_of("screening", "share"),
        "heavy hitters": cache_of("heavy_hitter"),
        "window": cache_of("window"),
        "sinks": cache_of("sinks"),
        "oracle": lambda: BoundedCache(budget // 2, budget // 2, GivenKeyScores(marked.float())),
    },
    scored=batch.targets >= 0,
    marked=marked,
)
print(audit)

# %%
for name in ("screening", "screening by share", "window", "oracle"):
    row = audit.row(name)
    print(f"{name:20s} accuracy {row.accuracy:.2f}, of the pairs asked for {row.marked_kept:.2f} were held")
assert all(row.largest <= budget for row in audit.rows)
assert audit.row("oracle").marked_kept >= audit.row("window").marked_kept

# %% [markdown]
# A cache with room for everything changes nothing: that is the first thing to check on a model of one's own.

# %%
whole = cache_audit(model, batch.inputs[:2], {"all": lambda: BoundedCache(batch.inputs.shape[1], 0)})
assert abs(whole.row("all").loss - whole.unbounded_loss) < 1e-5
