"""A small training problem for tests: a noisy regression whose loss draws from a stream, to be killed and resumed.

As a program: ``python short_training.py CHECKPOINT [SECONDS]`` trains with a pause after every step, prints the step
it has done, and at the end the history.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from separatrix.core import spawn
from separatrix.nn import VariationalDropout, renew_masks
from separatrix.tasks import ShuffledBatches
from separatrix.training import TrainingRun, TrainingSettings, train

X = torch.randn(64, 5, generator=spawn(0, "x"))
Y = X.sum(1, keepdim=True).sin()


def small_model(seed: int = 0) -> nn.Module:
    """Two layers with dropout, whose stream of masks must survive a resume."""
    first, last = nn.utils.skip_init(nn.Linear, 5, 8), nn.utils.skip_init(nn.Linear, 8, 1)  # nothing drawn globally
    model = nn.Sequential(first, nn.Tanh(), VariationalDropout(0.2, generator=spawn(seed, "masks")), last)
    for index, parameter in enumerate(model.parameters()):
        nn.init.normal_(parameter, std=0.5, generator=spawn(seed, "init", index))
    return model


def run(
    checkpoint: Path | None,
    *,
    n_steps: int = 40,
    save_every: int = 3,
    pause: float = 0.0,
    seed: int = 0,
    interrupt_at: int = -1,
) -> TrainingRun:
    """Train; the loss adds noise to the targets from its own stream."""
    noise = spawn(seed, "noise")
    calls: list[int] = []
    batches = ShuffledBatches(64, 16, seed, "order")

    def loss(model: nn.Module, index: Tensor) -> Tensor:
        renew_masks(model)
        target = Y[index] + 0.1 * torch.randn(len(index), 1, generator=noise)
        time.sleep(600 if pause and len(calls) == n_steps - 1 else pause)  # a paused run waits to be killed
        calls.append(1)
        if len(calls) == interrupt_at + 1:
            signal.raise_signal(signal.SIGINT)
        return (model(X[index]) - target).square().mean()

    def measure(model: nn.Module) -> dict[str, Tensor]:
        if pause:
            print("measured", flush=True)
        return {"error": (model(X) - Y).square().mean()}

    settings = TrainingSettings(
        n_steps=n_steps,
        lr=0.02,
        schedule="cosine",
        warmup_steps=4,
        clip_norm=1.0,
        measure_every=5,
        save_every=save_every,
    )
    return train(
        small_model(seed), batches, loss, settings, measure=measure, streams={"noise": noise}, checkpoint=checkpoint
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    result = run(Path(sys.argv[1]), pause=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    print(json.dumps({"resumed_at": result.resumed_at, "ending": result.ending, "history": result.history.records}))
