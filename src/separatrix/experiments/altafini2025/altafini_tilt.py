"""altafini2025, conclusion: does one pass through a trained layer tilt tokens towards the principal eigenvector?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.random import spawn
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    interval_row,
    judge,
    with_column,
    with_interval_at,
)

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.diagnose import AttentionLayer

DATA = "minilm-l6-attention"
TABLE = "Tilt of one pass"


class Settings(Params):
    """Layers of a trained sentence encoder, or generated ones; sets of random tokens."""

    source: Literal["generated", "minilm-l6-attention"] = "minilm-l6-attention"
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 384  # of generated layers
    n_tokens: int = 48
    n_sets: int = 24
    n_rotated: int = 16  # layers with the same singular values, values rotated at random


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per layer."""
    for seed in settings.seeds:
        for layer in range(settings.n_layers):
            yield {"seed": seed, "layer": layer, **settings.model_dump(exclude={"seeds", "n_layers"})}


def run(cell: Cell) -> Payload:
    """For every set of tokens, what a pass adds to their energy on the principal line (or plane)."""
    import torch

    from separatrix import dynamics

    layer, path = _layer(cell), ("altafini-tilt", cell.args["layer"])
    tokens = dynamics.random_tokens(
        cell.args["n_tokens"], layer.dim, cell.args["n_sets"], generator=spawn(cell.seed, *path, "tokens")
    )
    generator, rotated = spawn(cell.seed, *path, "rotations"), []
    for _ in range(cell.args["n_rotated"]):
        rotation = torch.linalg.qr(torch.randn(layer.dim, layer.dim, generator=generator, dtype=torch.float64)).Q
        rotated.append(float(_tilt(dataclasses.replace(layer, value=layer.value @ rotation), tokens).mean()))
    return {"tilt": _tilt(layer, tokens), "rotated": rotated}


def _tilt(layer: AttentionLayer, tokens: Tensor) -> Tensor:
    """Mean over tokens of the squared share on the principal line after one residual pass, less that before.

    Where the principal pair is complex it is the share on their plane, halved, so that lines and planes compare.
    """
    import torch

    from separatrix import diagnose

    basis = diagnose.dominant_subspace(layer.value_sum, 1)
    after = torch.nn.functional.normalize(tokens + layer.flow().pull(tokens), dim=-1)
    return ((after @ basis).square().mean(-1) - (tokens @ basis).square().mean(-1)).mean(-1)


def _layer(cell: Cell) -> AttentionLayer:
    import torch

    from separatrix import diagnose, tasks

    args = cell.args
    if args["source"] != "generated":
        path = tasks.locate(args["source"]).paths["weights"]
        return diagnose.attention_layers(path, n_heads=args["n_heads"]).layers[args["layer"]]
    generator, d = spawn(cell.seed, "altafini-tilt", "generated", args["layer"]), args["dim"]
    parts = ("self.query", "self.key", "self.value", "output.dense")
    state = {
        f"encoder.layer.0.attention.{part}.weight": torch.randn(d, d, generator=generator) / d**0.5 for part in parts
    }
    return diagnose.attention_layers(state, n_heads=args["n_heads"]).layers[0]


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """The tilt of each layer with its interval over sets of tokens, beside those of rotated layers."""
    import torch

    from separatrix import training

    rows = []
    for cell, payload in results:
        own = training.spread(payload["tilt"].tolist())
        rotated = torch.tensor(payload["rotated"], dtype=torch.float64)
        rows.append(
            {
                "layer": cell.args["layer"],
                "seed": cell.seed,
                "tilt": own.mean,
                "low": own.mean - own.half_width,
                "high": own.mean + own.half_width,
                "rotated": float(rotated.mean()),
                "least of rotated": float(rotated.min()),
                "greatest of rotated": float(rotated.max()),
            }
        )
    return Summary(tables={TABLE: rows})


def judge_tilt(summary: Summary) -> Judgement:
    """Decide ``altafini2025-conjecture-tilt``."""
    rows = [
        interval_row(f"gain of energy, layer {row['layer']}", row["tilt"], (row["low"], row["high"]), above=0.0)
        for row in summary.table(TABLE)
    ]
    shown = ", ".join(f"{row['tilt']:+.4f}" for row in summary.table(TABLE))
    return judge(f"energy on the principal line gained in one pass, by layer: {shown}", rows)


def judge_ordinary(summary: Summary) -> Judgement:
    """Decide ``separatrix-tilt-ordinary``."""
    rows, words = [], []
    for row in summary.table(TABLE):
        most, name = row["greatest of rotated"], f"gain of energy, layer {row['layer']}"
        rows.append(Row(name, row["tilt"], f"at most {most:.4g}", "the greatest of rotated", row["tilt"] <= most))
        words.append(f"{row['tilt']:.4f} (rotated {row['least of rotated']:.4f} to {most:.4f})")
    return judge(f"gains by layer: {', '.join(words)}", rows)


def judge_average(summary: Summary) -> Judgement:
    """Decide ``separatrix-tilt-average``."""
    from separatrix import training

    table = summary.table(TABLE)
    gap = training.paired_difference([row["tilt"] for row in table], [row["rotated"] for row in table])
    row = interval_row("gain of a layer less that of its rotated copies", gap.mean, (gap.low, gap.high), below=0.0)
    words = ", ".join(f"{row['tilt']:.4f} against {row['rotated']:.4f}" for row in table)
    return judge(f"gains of layers and of rotated copies: {words}", [row])


EXPERIMENT = Experiment(
    name="altafini-tilt",
    title="One pass through a trained attention layer: the tilt towards the principal eigenvector",
    document="altafini2025",
    place="sections 1 and 8",
    version=2,
    scales={
        "smoke": Settings(source="generated", n_layers=2, n_heads=2, dim=16, n_tokens=8, n_sets=6, n_rotated=4),
        "laptop": Settings(),
        "paper": Settings(n_sets=100, n_rotated=100),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    data=(DATA,),
    claims=(
        Claim(
            id="altafini2025-conjecture-tilt",
            statement="A pass through a trained attention layer tilts tokens towards the principal eigenvector.",
            measures="squared share of tokens on the principal line (half that on a plane), after one pass less before",
            test="every layer's 95 % interval over sets of tokens above zero; refuted if one lies below",
            needs=(groups(TABLE, "layer", 0, 1, 2, 3, 4, 5),),
            judge=judge_tilt,
            counterfeit=with_interval_at(TABLE, "tilt", -0.01),
            genuine=with_interval_at(TABLE, "tilt", 0.01),
            scale="laptop",
        ),
        Claim(
            id="separatrix-tilt-ordinary",
            document="separatrix",
            place="explanation/do-real-layers-collapse",
            statement="The tilt of a trained layer is no larger than that of layers with values rotated at random.",
            measures="the same gain in rotated layers, which have the same singular values",
            test="no layer gains more than every one of its rotated copies",
            judge=judge_ordinary,
            counterfeit=with_column(TABLE, "tilt", lambda row: 2 * row["greatest of rotated"] + 0.01),
            genuine=with_column(TABLE, "tilt", lambda row: row["least of rotated"]),
            scale="laptop",
        ),
        Claim(
            id="separatrix-tilt-average",
            document="separatrix",
            place="explanation/do-real-layers-collapse",
            statement="On average trained layers tilt tokens less than layers with values rotated at random.",
            measures="the same gain in rotated layers, which have the same singular values, layer by layer",
            test="95 % interval of the mean difference over layers below zero; refuted if above, else undecided",
            judge=judge_average,
            counterfeit=with_column(TABLE, "tilt", lambda row: 2 * row["greatest of rotated"]),
            genuine=with_column(TABLE, "tilt", lambda row: 0.5 * row["least of rotated"]),
            scale="laptop",
        ),
    ),
)
