"""What Table 1 and Figure 6 of agarwala2022 share: the settings and the training of one equilibrium language model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.wording import several
from separatrix.lab import Cell, Judgement, Params, Payload, interval_row, judge, with_interval_at

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.nn import EquilibriumLanguageModel
    from separatrix.tasks import Text

FAMILIES = ("goe", "haar", "gaussian")
_WIDTH, _STEPS = 700, 52000  # of the document
NAMES = {"goe": "GOE", "haar": "orthogonal", "gaussian": "independent"}


class TransformerSettings(Params):
    """Model, text and training; defaults are the document's, except that WikiText-2 stands in for WikiText-103."""

    text: Literal["made-up", "tiny-shakespeare", "wikitext2-reordered"] = "wikitext2-reordered"
    level: Literal["characters", "words"] = "words"
    width: int = _WIDTH  # section 4.2
    n_heads: int = 10  # not stated; heads of 70 are usual
    context: int = 128
    batch_size: int = 512
    solver_steps: int = 20  # Broyden steps, forward and backward
    tol: float = 1e-6
    dropout: float = 0.1
    n_steps: int = _STEPS  # warm-up of 2000, then a cosine over 50000
    warmup_steps: int = 2000
    lr: float = 1e-3
    clip_norm: float | None = 0.25
    n_curve: int = 50  # points of the learning curve
    n_test_batches: int = 20
    radius_products: int = 40  # Jacobian-vector products of each estimate of the spectral radius
    seeds: tuple[int, ...] = tuple(range(10))  # 10 seeds


SMOKE: dict[str, Any] = {
    "text": "made-up", "level": "characters", "width": 8, "n_heads": 2, "context": 8, "batch_size": 4,
    "solver_steps": 4, "tol": 1e-3, "dropout": 0.0, "n_steps": 6, "warmup_steps": 2, "lr": 1e-2, "clip_norm": None,
    "n_curve": 2, "n_test_batches": 1, "radius_products": 4, "seeds": (0, 1),
}  # fmt: skip
LAPTOP: dict[str, Any] = {
    "text": "tiny-shakespeare", "level": "characters", "width": 32, "n_heads": 4, "context": 16, "batch_size": 16,
    "solver_steps": 20, "tol": 1e-3, "dropout": 0.0, "n_steps": 2000, "warmup_steps": 100, "lr": 3e-3,
    "clip_norm": None, "n_curve": 10, "n_test_batches": 16,
}  # fmt: skip
"""A stress test in small: three times the document's learning rate and no clipping, so that instability can show."""


@functools.lru_cache(maxsize=1)
def _text(name: str, level: Literal["characters", "words"]) -> Text:
    from separatrix import core, tasks

    if name != "made-up":
        return tasks.load_text(name, level)
    parts = [tasks.made_up_text(n, generator=core.spawn(0, "made-up text", n)) for n in (20000, 2000, 4000)]
    return tasks.make_text(name, parts, level)


def build(args: Mapping[str, Any], seed: int, n_symbols: int) -> EquilibriumLanguageModel:
    """The model of one seed; all but the dense block is the same for every family."""
    from separatrix import core, dynamics, nn

    cell = nn.TransformerCell(
        args["width"],
        args["n_heads"],
        hidden=args["width"] if args["square"] else None,
        ensemble=args["family"],
        weight_var=args["weight_scale"] ** 2,
        dropout=args["dropout"],
        generator=core.spawn(seed, "agarwala-transformer", "cell"),
    )
    solver = dynamics.Broyden(tol=args["tol"], max_steps=args["solver_steps"])
    return nn.EquilibriumLanguageModel(
        cell,
        n_symbols=n_symbols,
        width=args["width"],
        context=args["context"],
        embedding_std=args["embedding_std"],
        solver=solver,
        backward_solver=solver,
        generator=core.spawn(seed, "agarwala-transformer", "embeddings"),
    )


def train_cell(cell: Cell) -> Payload:
    """Train one model and measure it: losses in nats a symbol, residual of the solver, spectral radius."""
    import torch
    from torch.nn import functional

    from separatrix import tasks, training

    args = cell.args
    text = _text(args["text"], args["level"])
    model = build(args, cell.seed, text.n_symbols)
    batches = tasks.ContiguousBatches(text.train, args["batch_size"], args["context"], shift=args["context"] // 2)
    rows = min(4 * args["batch_size"], len(text.test) // (2 * args["context"]))  # a short text has fewer
    tests = tasks.ContiguousBatches(text.test, rows, args["context"])

    def loss(model: EquilibriumLanguageModel, batch: tuple[Tensor, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())

    def measure(model: EquilibriumLanguageModel) -> dict[str, float]:
        n_batches = min(args["n_test_batches"], tests.per_epoch)
        losses, residuals = [], []
        for k in range(n_batches):
            losses.append(loss(model, tests(k)))
            assert model.deq.last is not None
            residuals.append(model.deq.last.relative.median())
        return {"test_loss": float(torch.stack(losses).mean()), "residual": float(torch.stack(residuals).mean())}

    settings = training.TrainingSettings(
        n_steps=args["n_steps"],
        lr=args["lr"],
        beta2=0.99,  # as in the code the document builds on
        schedule="cosine",
        warmup_steps=args["warmup_steps"],
        clip_norm=args["clip_norm"],
        measure_every=max(1, args["n_steps"] // args["n_curve"]),
    )
    radius_before = radius(model, tests(0)[0][:4], args["radius_products"])
    trained = training.train(model, batches, loss, settings, measure=measure)
    steps, curve = trained.history.column("test_loss")
    return {
        "steps": [step + 1 for step in steps],
        "curve": curve,
        "test_loss": curve[-1],
        "residual": trained.history.last("residual"),
        "radius_before": radius_before,
        "radius_after": radius(model, tests(0)[0][:4], args["radius_products"]),
        "greatest_gradient": max(trained.history.column("gradient_norm")[1], default=0.0),
        "diverged_at": -1 if trained.diverged_at[0] is None else trained.diverged_at[0],
        "data": text.sha256,
    }


def radius(model: EquilibriumLanguageModel, tokens: Tensor, n_products: int) -> float:
    """Median spectral radius of the layer at the points the solver returns."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from separatrix import dynamics

    model.eval()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no forward derivative
        injected = model.embed(tokens)
        state = model.deq(injected)

        def layer(z: Tensor) -> Tensor:
            return model.deq.cell(z.reshape(injected.shape), injected).flatten(1)

        found = dynamics.spectral_radius(layer, state.flatten(1), power=n_products, krylov=n_products // 2)
    model.train()
    return float(found.median())


def is_full_size(args: Mapping[str, Any]) -> bool:
    """Whether a model is as wide, and trained as long, as the document's."""
    return bool(args["width"] >= _WIDTH and args["n_steps"] >= _STEPS)


def gap_to_goe(found: Mapping[Any, Mapping[int, Any]], key: Any, goe: Any) -> dict[str, float]:
    """Loss (nats) and residual (decades) of one setting minus those of GOE, seed by seed, with 95 % intervals."""
    import math

    from separatrix import training

    def values(setting: Any) -> tuple[list[float], list[float]]:
        entries = [found[setting][seed] for seed in found[goe]]
        return [e["test_loss"] for e in entries], [math.log10(max(e["residual"], 1e-9)) for e in entries]

    loss, residual = map(training.paired_difference, values(key), values(goe))
    return {
        "loss": loss.mean, "loss_low": loss.low, "loss_high": loss.high,
        "residual": residual.mean, "residual_low": residual.low, "residual_high": residual.high,
    }  # fmt: skip


def judge_gaps(gaps: Sequence[Mapping[str, Any]], quantity: str, unit: str) -> Judgement:
    """Is GOE lower in every comparison, by more than the seeds leave open? One comparison with GOE higher refutes."""
    rows = [
        interval_row(
            f"{NAMES[gap['family']]} minus GOE at sqrt(V) = {gap['weight_scale']:g}, {unit}",
            gap[quantity],
            (gap[f"{quantity}_low"], gap[f"{quantity}_high"]),
            above=0.0,
        )
        for gap in gaps
    ]
    lower, higher = sum(row.agrees is True for row in rows), sum(row.agrees is False for row in rows)
    evidence = (
        f"of {several(len(rows), 'comparison')} GOE is lower in {lower} and higher in {higher}; in the others the 95 % "
        "interval contains zero"
    )
    return judge(evidence, rows)


def resampled_interval(statistic: Callable[..., float], *samples: Sequence[float]) -> tuple[float, float]:
    """A 95 % percentile interval of a statistic of seeds, each sample drawn anew 2000 times with replacement."""
    import numpy

    draws = numpy.random.default_rng(0)
    values = [statistic(*(draws.choice(sample, len(sample)) for sample in samples)) for _ in range(2000)]
    low, high = numpy.percentile(values, (2.5, 97.5))
    return float(low), float(high)


def shifted_gaps(table: str, quantity: str, to: float) -> Callable[[Any], Any]:
    """A counterfeit in which every difference from GOE is ``to``, with intervals as wide as those measured."""
    return with_interval_at(table, quantity, to, prefix=f"{quantity}_")


def perplexities(results: Sequence[tuple[Cell, Payload]], *keys: str) -> dict[tuple[Any, ...], dict[int, Any]]:
    """Payloads by the named arguments and the seed, with the perplexity added."""
    import math

    found: dict[tuple[Any, ...], dict[int, Any]] = {}
    for cell, payload in results:
        entry = {**payload, "perplexity": math.exp(payload["test_loss"])}
        found.setdefault(tuple(cell.args[key] for key in keys), {})[cell.seed] = entry
    return found


def learning_curves(results: Sequence[tuple[Cell, Payload]]) -> list[dict[str, Any]]:
    """Steps and test losses of every model, with what tells it apart."""
    names = ("family", "weight_scale", "embedding_std")
    return [
        {name: cell.args[name] for name in names}
        | {"seed": cell.seed, "steps": payload["steps"], "losses": payload["curve"]}
        for cell, payload in results
    ]


def row_of(found: Mapping[int, Any]) -> dict[str, Any]:
    """The columns of a table that tell of one setting over its seeds."""
    from separatrix import training

    values = training.spread([entry["perplexity"] for entry in found.values()])
    losses = training.spread([entry["test_loss"] for entry in found.values()])
    return {
        "n_seeds": values.n,
        "min": values.least,
        "mean": values.mean,
        "max": values.greatest,
        "mean_loss": losses.mean,
        "std_loss": losses.std,
        "half_width": losses.half_width,
        "residual": training.spread([entry["residual"] for entry in found.values()]).median,
        "radius_before": training.spread([entry["radius_before"] for entry in found.values()]).median,
        "radius_after": training.spread([entry["radius_after"] for entry in found.values()]).median,
        "diverged": sum(entry["diverged_at"] >= 0 for entry in found.values()),
    }
