"""Chooses four thresholds of ``separatrix.check`` and ``watch`` on one half of the seeds and reports them on the other.

    python benchmarks/check_thresholds.py

The rules stand here before anything is run:

- ``unscaled_input.features``: of the ratios 1, 3, 10, ..., 1000 between the deviations of features, the first at which
  the mean accuracy of a short training by SGD falls by .05 below that of equal features, and the ratio before it: their
  geometric mean.
- ``trained.other``: the share of weights (in matrices of at least 8 x 8) that are of no family that initialisers draw
  from. The middle between the largest share of fresh networks and the smallest of trained ones; if they overlap, the
  share with the fewest errors.
- ``watch.rate``: how far the rate of a recurrent layer rises over a training. The middle between the largest rise of
  ordinary trainings and the smallest of those whose recurrent matrix grows until gradients do.
- ``lazy.note``: .8 of the smallest value of healthy recipes of the bench, so that none is told; what share of networks
  with an output scale of 300 that finds is reported.

Results go to benchmarks/results/check_thresholds.json.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import separatrix  # noqa: E402
from check_recipes import scores as bench  # noqa: E402
from separatrix.diagnose.detectors.layers.time import layer_rate  # noqa: E402
from separatrix.diagnose.findings.thresholds import threshold  # noqa: E402
from separatrix.diagnose.recording.weight_family import family_of  # noqa: E402

RATIOS = (1, 3, 10, 30, 100, 300, 1000)


def train(model: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]], optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def teacher(seed: int, ratio: float = 1.0) -> Callable[[], tuple[Tensor, Tensor]]:
    """Four classes by a fixed random network of all twelve features; half of these are then made smaller."""
    generator = torch.Generator().manual_seed(1000 + seed)
    first, last = torch.randn(12, 24, generator=generator), torch.randn(24, 4, generator=generator)
    scale = torch.cat([torch.ones(6), torch.full((6,), 1 / ratio)])

    def batch() -> tuple[Tensor, Tensor]:
        x = torch.randn(64, 12, generator=generator)
        return x * scale, (torch.tanh(x @ first) @ last).argmax(-1)

    return batch


def mlp(seed: int, width: int = 48) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


def uneven(seed: int, ratio: float) -> float:
    model, batch = mlp(seed), teacher(seed, ratio)
    train(model, batch, torch.optim.SGD(model.parameters(), lr=0.1), 200)
    with torch.no_grad():
        return float(
            torch.stack([(model(x).argmax(-1) == y).float().mean() for x, y in (batch() for _ in range(8))]).mean()
        )


def features(seeds: tuple[int, ...]) -> dict[str, float]:
    return {str(ratio): sum(uneven(seed, ratio) for seed in seeds) / len(seeds) for ratio in RATIOS}


def choose_features(curve: dict[str, float]) -> float:
    bad = [ratio for ratio in RATIOS if curve[str(ratio)] < curve["1"] - 0.05]
    return math.sqrt(bad[0] * RATIOS[RATIOS.index(bad[0]) - 1]) if bad else float(RATIOS[-1])


def other_share(model: nn.Module) -> float:
    matrices = [value for value in model.parameters() if value.ndim >= 2 and min(value.flatten(1).shape) >= 8]
    size = sum(value.numel() for value in matrices)
    return sum(value.numel() for value in matrices if family_of(value) == "other") / size


class Last(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.rnn, self.head = kind(4, 24, batch_first=True), nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def recall(seed: int) -> Callable[[], tuple[Tensor, Tensor]]:
    """Which of four signals came six steps before the end."""
    generator = torch.Generator().manual_seed(2000 + seed)

    def batch() -> tuple[Tensor, Tensor]:
        x = 0.3 * torch.randn(32, 16, 4, generator=generator)
        y = torch.randint(0, 4, (32,), generator=generator)
        x[torch.arange(32), 10, y] += 2
        return x, y

    return batch


def trained_shares(seeds: tuple[int, ...]) -> tuple[list[float], list[float]]:
    fresh, trained = [], []
    for seed in seeds:
        cases: list[tuple[nn.Module, Any, float]] = [
            (mlp(seed), teacher(seed), 3e-3), (mlp(seed + 500, 96), teacher(seed), 3e-3),
            (Last(nn.GRU, seed), recall(seed), 1e-2), (Last(nn.LSTM, seed), recall(seed), 1e-2),
        ]  # fmt: skip
        for model, batch, rate in cases:
            fresh.append(other_share(model))
            train(model, batch, torch.optim.Adam(model.parameters(), lr=rate), 300)
            trained.append(other_share(model))
    return fresh, trained


def choose_other(fresh: list[float], trained: list[float]) -> float:
    if max(fresh) < min(trained):
        return (max(fresh) + min(trained)) / 2
    grid = [k / 100 for k in range(100)]
    return min(grid, key=lambda at: (sum(x > at for x in fresh) + sum(x <= at for x in trained), abs(at - 0.5)))


def rate_rise(kind: type[nn.RNNBase], seed: int, growth: float) -> tuple[float, float]:
    """Rate at the beginning, and the largest later one."""
    model, batch = Last(kind, seed), recall(seed)
    x, _ = batch()
    optimizer, rates = torch.optim.Adam(model.parameters(), lr=3e-3), []
    for _ in range(8):
        found = layer_rate(model.rnn, x, 0)
        rates.append(found.mean if found is not None else math.nan)
        train(model, batch, optimizer, 15)
        with torch.no_grad():
            model.rnn.weight_hh_l0.mul_(growth)
    return rates[0], max(rates[1:])


def rises(seeds: tuple[int, ...]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    fine = [rate_rise(kind, seed, 1.0) for kind in (nn.RNN, nn.GRU, nn.LSTM) for seed in seeds]
    grown = [rate_rise(nn.RNN, seed, 1.35) for seed in seeds]
    return fine, grown


class Scaled(nn.Module):
    """Neurons in pairs of opposite outgoing weights, so that the output starts at zero, times a scale."""

    def __init__(self, scale: float, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.head, self.scale = nn.Linear(12, 256), nn.Linear(256, 4, bias=False), scale
        with torch.no_grad():
            self.first.weight[128:], self.first.bias[128:] = self.first.weight[:128], self.first.bias[:128]
            self.head.weight[:, 128:] = -self.head.weight[:, :128]

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.head(torch.tanh(self.first(x)))


def laziness(seeds: tuple[int, ...]) -> tuple[list[float], list[float]]:
    names = [name for name, recipe in bench.RECIPES.items() if recipe.fault is None]
    fine = [one.measures["lazy"] for one in bench.scores(seeds[:2], names) if "lazy" in one.measures]
    planted = []
    for seed in seeds:
        x, y = teacher(seed)()
        found = separatrix.check(Scaled(300.0, seed), x, loss="cross_entropy", target=y)
        planted.append(found.measures.get("lazy", math.nan))
    return fine, planted


def main() -> None:
    torch.set_num_threads(1)
    answer: dict[str, Any] = {"choosing": list(bench.CHOOSING), "testing": list(bench.TESTING)}
    path = HERE / "results" / "check_thresholds.json"

    def write() -> None:
        path.write_text(json.dumps(answer, indent=1) + "\n")
        print(json.dumps(answer), flush=True)

    curve, again = features(bench.CHOOSING), features(bench.TESTING)
    answer["features"] = {"chosen": choose_features(curve), "accuracy, choosing": curve, "accuracy, testing": again}
    write()
    (fresh, trained), (fresh_, trained_) = trained_shares(bench.CHOOSING), trained_shares(bench.TESTING)
    at = choose_other(fresh, trained)
    answer["trained.other"] = {
        "chosen": at, "fresh, choosing": [min(fresh), max(fresh)], "trained, choosing": [min(trained), max(trained)],
        "testing": {"fresh called trained": sum(x > at for x in fresh_), "trained called fresh": sum(x <= at for x in trained_),
                    "of each": len(fresh_)},
    }  # fmt: skip
    write()
    (fine, grown), (fine_, grown_) = rises(bench.CHOOSING), rises(bench.TESTING)
    at = (max(b - a for a, b in fine) + min(b - a for a, b in grown)) / 2
    told = [b > max(a + at, threshold("time_growth", "fault")) for a, b in (*fine_, *grown_)]
    answer["watch.rate"] = {
        "chosen": at, "largest rise of ordinary trainings": max(b - a for a, b in fine),
        "smallest of growing ones": min(b - a for a, b in grown),
        "testing": {"ordinary told": sum(told[: len(fine_)]), "of": len(fine_), "growing told": sum(told[len(fine_) :]),
                    "of growing": len(grown_)},
    }  # fmt: skip
    write()
    (fine_l, lazy), (fine_l2, lazy2) = laziness(bench.CHOOSING), laziness(bench.TESTING)
    at = 0.8 * min(fine_l)
    answer["lazy"] = {
        "chosen": at, "healthy, choosing": [min(fine_l), max(fine_l), len(fine_l)], "lazy, choosing": lazy,
        "testing": {"healthy told": sum(x < at for x in fine_l2), "of": len(fine_l2),
                    "lazy told": sum(x < at for x in lazy2), "of lazy": len(lazy2)},
    }  # fmt: skip
    write()


if __name__ == "__main__":
    main()
