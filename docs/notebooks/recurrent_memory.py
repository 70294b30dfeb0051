# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # How far back can a recurrent network see?
#
# Eigenvalues say where a state goes in the end; memory lives in what happens before. We compare an orthogonal matrix, a
# decaying one and a chain whose eigenvalues are all zero, in closed form, and then train two networks whose spectrum is
# a parameter on a task that needs memory.

# %%
import torch

import separatrix
from separatrix.core import spawn
from separatrix.diagnose import recurrent
from separatrix.matrices import delay_line, fisher_memory_curve, henrici, power_norms
from separatrix.nn import ExpRNN, NonNormalRNN, SequenceModel
from separatrix.tasks import Copy, StreamedBatches
from separatrix.training import ParameterGroup, TrainingSettings, train

quick = False  # few updates
n_units = 40
generator = spawn(0, "notebook", "memory")

# %% [markdown]
# ## Three matrices
#
# The chain hands its state from unit to unit and amplifies a little on the way. All its eigenvalues are zero, and yet
# states grow for forty steps before they vanish: it is as far from normal as a matrix can be.

# %%
rotation = torch.linalg.qr(torch.randn(n_units, n_units, generator=generator, dtype=torch.float64))[0]
matrices = {
    "rotation x 0.95": 0.95 * rotation,
    "rotation x 0.6": 0.6 * rotation,
    "chain": delay_line(n_units, sub=1.05),
}
for name, matrix in matrices.items():
    radius = float(torch.linalg.eigvals(matrix).abs().max())
    largest = float(power_norms(matrix, 60).max())
    departure = float(henrici(matrix, relative=True))
    print(f"{name:16s} radius {radius:.2f}, largest growth {largest:5.2f}, departure from normality {departure:.2f}")

# %% [markdown]
# ## What they remember
#
# The Fisher memory $J(k)$ is what the noisy state knows of the input $k$ steps ago. A normal network has a budget of
# one over all lags, however it is spent; the chain exceeds it many times.

# %%
source = torch.eye(n_units, dtype=torch.float64)[0]
with separatrix.report.theme("light"):
    figure, ax = separatrix.report.single_axes(height=3.2)
    for name, matrix in matrices.items():
        memory = fisher_memory_curve(matrix, source, n_steps=60)
        ax.plot(memory.curve.clamp(min=1e-8), label=f"{name}: total {float(memory.total):.2f}")
    ax.set(yscale="log", xlabel="lag k (steps)", ylabel="Fisher memory J(k)", ylim=(1e-5, None))
    ax.legend()
figure

# %% [markdown]
# ## A task that needs it
#
# `Copy` shows ten symbols, waits, and asks for them again. The orthogonal network (`ExpRNN`) keeps its spectrum on the
# unit circle by construction; the non-normal one adds a feed-forward part and has its eigenvalues as parameters.

# %%
task = Copy(delay=10)
batches = StreamedBatches(task, 20, 0)
runs = {}
for name, core, special in (
    ("orthogonal", ExpRNN(task.n_inputs, 64), "core.matrix.*"),
    ("non-normal", NonNormalRNN(task.n_inputs, 64), "core.matrix.basis.*"),
):
    model = SequenceModel(core, task.n_outputs)
    settings = TrainingSettings(
        n_steps=4 if quick else 300,
        lr=3e-3,
        optimiser="rmsprop",
        groups=(ParameterGroup(names=special, lr=3e-4),),
        clip_norm=10.0,
    )
    runs[name] = train(model, batches, lambda m, b: task.loss(m(b.inputs), b), settings)
    test = StreamedBatches(task, 50, 1)(0)
    accuracy = float(task.accuracy(model(test.inputs), test))
    print(f"{name}: loss {runs[name].history.last('loss') / task.baseline:.2f} of the baseline, recall {accuracy:.2f}")

# %%
with separatrix.report.theme("light"):
    figure, ax = separatrix.report.single_axes(height=3)
    for name, run in runs.items():
        steps, losses = run.history.column("loss")
        ax.plot(steps, [loss / task.baseline for loss in losses], label=name)
    ax.axhline(1, linestyle="--", linewidth=0.8, color=separatrix.report.ink())
    ax.set(xlabel="update", ylabel="loss / loss without memory", ylim=(0, None))
    ax.legend()
figure

# %% [markdown]
# ## Look inside
#
# `diagnose.recurrent` takes any recurrent network, ours or not: growth of small differences along a run, and how much
# of a gradient arrives how far back. An untrained LSTM, for comparison, loses its gradient quickly.

# %%
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(task.n_inputs, 24, batch_first=True)
report = recurrent(lstm, test.inputs[:1, : 12 if quick else 30])
for sentence in report.verdicts:
    print(sentence)
separatrix.plot(report)

# %% [markdown]
# Where to go on: *Transients, or why eigenvalues are not enough*, *Memory of non-normal matrices*, and the tutorial
# *Train a non-normal RNN* with a loop of your own.
