"""kerg2022, section 5.6: what dot products and the normalisation do without any training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    condition,
    in_turn,
    judge,
    with_column,
)

SCORES = "Untrained encoders on pairs of glyphs"
KINDS = ("raw", "normalised")


class Settings(Params):
    """Random encoders, and problems of nine objects."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_problems: int = 300


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per encoder."""
    for seed in settings.seeds:
        yield {"n_problems": settings.n_problems, "seed": seed}


def run(cell: Cell) -> Payload:
    """How often a different object is at least as similar as the equal one, and what decides same or different."""
    import torch

    from separatrix import nn, tasks

    task = tasks.make_task("identity_rules", holdout=0, seed=cell.seed)
    network = nn.CoRelNet(9, 4, encoder="frozen", generator=spawn(cell.seed, "kerg5", "text"))
    index, _ = task.train_batch(cell.args["n_problems"], generator=spawn(cell.seed, "kerg5", "problems"))
    with torch.no_grad():
        encoded = network.objects(task.images, index)
        same = tasks.ideal_relations(task, index).bool()
        wrong = {kind: _violations(z, same) for kind, z in zip(KINDS, (encoded, network.norm(encoded)), strict=True)}
        pairs = tasks.make_task("same_diff", holdout=0, seed=cell.seed)
        two, label = pairs.train_batch(cell.args["n_problems"], generator=spawn(cell.seed, "kerg5", "pairs"))
        couple = nn.temporal_context_norm(network.features(pairs.images)[two])
        size = couple.abs().amax((1, 2))
    return {"wrong": wrong, "same_size": float(size[label == 0].max()), "different_size": float(size[label == 1].min())}


def _violations(z: Any, same: Any) -> float:
    """Share of rows with a repeated object in which another object scores at least as high as the repetition."""
    import torch

    scores = z @ z.mT
    own = torch.eye(z.shape[1], dtype=torch.bool)
    inf = torch.tensor(torch.inf)
    repeated = torch.where(same & ~own, scores, inf).amin(-1)
    other = torch.where(~same, scores, -inf).amax(-1)
    asked = torch.isfinite(repeated)
    return float((other[asked] >= repeated[asked]).double().mean())


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """A row per encoder."""
    rows = [
        {
            "seed": cell.seed,
            "raw": float(payload["wrong"]["raw"]),
            "normalised": float(payload["wrong"]["normalised"]),
            "same": float(payload["same_size"]),
            "different": float(payload["different_size"]),
        }
        for cell, payload in results
    ]
    return Summary(tables={SCORES: rows})


def judge_dot_products(summary: Summary) -> Judgement:
    """Always: no row at all in which a different object scores as high."""
    table = summary.table(SCORES)
    rows = [Row(f"share of rows violated, raw features, seed {row['seed']}", row["raw"], 0.0) for row in table]
    after = [Row(f"share of rows violated, normalised, seed {row['seed']}", row["normalised"], 0.0) for row in table]
    mean, most = sum(row["raw"] for row in table) / len(table), max(row["normalised"] for row in table)
    words = f"raw features violate it in {mean:.0%} of rows, normalised ones in {most:.2%}"
    return judge(words, rows, condition("it holds after the normalisation over positions, which is its cause", after))


def judge_pairs(summary: Summary) -> Judgement:
    """Equal images become zeros, different ones signs of one over the root of two: no encoder decides it."""
    rows = []
    for row in summary.table(SCORES):
        rows.append(Row(f"greatest entry of equal pairs, seed {row['seed']}", row["same"], 0.0, 1e-3))
        rows.append(
            Row(f"least greatest entry of different pairs, seed {row['seed']}", row["different"], 0.5**0.5, 1e-3)
        )
    same, different = ([row[name] for row in summary.table(SCORES)] for name in ("same", "different"))
    return judge(
        f"equal pairs have entries of at most {small(max(same, default=0.0))}, different ones one of at least "
        f"{min(different, default=0.0):.4f}, for encoders at their random start",
        rows,
    )


EXPERIMENT = Experiment(
    name="kerg5-text",
    title="What dot products and the normalisation do without any training",
    document="kerg2022",
    place="section 5.6",
    version=1,
    scales={
        "smoke": Settings(),
        "laptop": Settings(seeds=tuple(range(20)), n_problems=1000),
        "paper": Settings(seeds=tuple(range(20)), n_problems=10_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch5-dot-product",
            statement="A dot product always scores identical objects higher than different ones.",
            measures="share of positions at which a different object is at least as similar as a repetition",
            test="zero for every encoder",
            judge=judge_dot_products,
            counterfeit=in_turn(with_column(SCORES, "raw", 0.5), with_column(SCORES, "normalised", 0.4)),
            erratum="kerg2022-dot-product",
        ),
        Claim(
            id="separatrix-relational-pairs",
            statement="Of two pictures the normalisation over positions alone tells whether they are the same.",
            measures="entries of the normalised features of equal and of different pairs",
            test="0 and one over the root of two, to 1e-3, for every encoder",
            interchangeable=("seed",),
            judge=judge_pairs,
            counterfeit=with_column(SCORES, "same", 0.7),
            document="separatrix",
        ),
    ),
)
