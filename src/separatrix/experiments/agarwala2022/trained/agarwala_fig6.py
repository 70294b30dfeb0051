"""agarwala2022, Figure 6: learning curves of equilibrium transformers, with two controls the document does not have.

In Table 1 the GOE block is four times narrower than the others, and the injected embeddings are fifty times smaller
than the state. Here all blocks are square, and the embeddings have the document's size or that of the state.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import within_interval
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Payload,
    Row,
    Summary,
    groups,
    interval_row,
    judge,
    with_column,
    with_interval_at,
)

from .transformer import (
    FAMILIES,
    LAPTOP,
    NAMES,
    SMOKE,
    TransformerSettings,
    gap_to_goe,
    is_full_size,
    judge_gaps,
    learning_curves,
    perplexities,
    row_of,
    shifted_gaps,
    train_cell,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE = "Square dense blocks"
GAPS = "Loss and decades of residual minus those of GOE, 95 % intervals"
LOSSES = "Loss with the smallest minus loss with the largest embeddings, 95 % intervals"
EFFECTS = "Largest difference between families, and effect of the embeddings' size"


class Settings(TransformerSettings):
    """The lines of the figure."""

    weight_scales: tuple[float, ...] = (1.0,)  # sqrt(V), where the document's families differ most
    embedding_stds: tuple[float, ...] = (0.02, 1.0)


class Measured(Summary):
    """Learning curves, and whether the training has the document's size."""

    curves: list[dict[str, Any]]
    text: str
    full_size: bool


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per family, scale, size of the embeddings and seed."""
    common = settings.model_dump(exclude={"seeds", "weight_scales", "embedding_stds"})
    for weight_scale in settings.weight_scales:
        for std in settings.embedding_stds:
            for family in FAMILIES:
                for seed in settings.seeds:
                    line = {"family": family, "weight_scale": weight_scale, "embedding_std": std}
                    yield {**common, **line, "square": True, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train one model."""
    return train_cell(cell)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row and a learning curve for each line, and the differences that the controls ask for."""
    found, first = perplexities(results, "family", "weight_scale", "embedding_std"), results[0][0].args
    rows = [
        dict(zip(("family", "weight_scale", "embedding_std"), key, strict=True)) | row_of(entries)
        for key, entries in found.items()
    ]
    gaps = [
        {"weight_scale": scale, "embedding_std": std, "family": other}
        | gap_to_goe(found, (other, scale, std), ("goe", scale, std))
        for scale, std in sorted({key[1:] for key in found})
        for other in ("haar", "gaussian")
    ]
    return Measured(
        tables={TABLE: rows, GAPS: gaps, EFFECTS: _effects(found), LOSSES: _losses_by_embeddings(found)},
        curves=learning_curves(results),
        text=first["text"],
        full_size=is_full_size(first),
    )


def _effects(found: Mapping[tuple[Any, ...], Mapping[int, Any]]) -> list[dict[str, Any]]:
    """For loss, residual (in decades) and radius: how much the family matters, how much the embeddings' size."""

    def mean(key: tuple[Any, ...], name: str) -> float:
        values = [entry[name] for entry in found[key].values()]
        return statistics.fmean([math.log10(max(v, 1e-9)) for v in values] if name == "residual" else values)

    rows = []
    for weight_scale in sorted({key[1] for key in found}):
        stds = sorted({key[2] for key in found})
        for name in ("test_loss", "residual", "radius_before"):
            table = {(f, std): mean((f, weight_scale, std), name) for f in FAMILIES for std in stds}
            between = [max(table[f, std] for f in FAMILIES) - min(table[f, std] for f in FAMILIES) for std in stds]
            moved = [abs(table[f, stds[-1]] - table[f, stds[0]]) for f in FAMILIES]
            rows.append(
                {"weight_scale": weight_scale, "quantity": name, "families_at_most": max(between)}
                | {"embeddings_at_least": min(moved), "embeddings_at_most": max(moved)}
            )
    return rows


def _losses_by_embeddings(found: Mapping[tuple[Any, ...], Mapping[int, Any]]) -> list[dict[str, Any]]:
    """Loss with the smallest embeddings minus that with the largest, seed by seed, with 95 % intervals."""
    from separatrix import training

    stds = sorted({key[2] for key in found})
    rows = []
    for family, scale in sorted({key[:2] for key in found}):
        small, large = (found[family, scale, std] for std in (stds[0], stds[-1]))
        gap = training.paired_difference(
            [entry["test_loss"] for entry in small.values()], [large[seed]["test_loss"] for seed in small]
        )
        rows.append({"family": family, "weight_scale": scale, "loss": gap.mean, "low": gap.low, "high": gap.high})
    return rows


def judge_width(summary: Measured) -> Judgement:
    """At equal width and the document's embeddings: is GOE still the best in the mean?"""
    return judge_gaps(_smallest_embeddings(summary), "loss", "nats")


def judge_residual(summary: Measured) -> Judgement:
    """At equal width and the document's embeddings: is GOE still closer to equilibria than independent entries?"""
    gaps = [gap for gap in _smallest_embeddings(summary) if gap["family"] == "gaussian"]
    return judge_gaps(gaps, "residual", "decades of residual")


def _smallest_embeddings(summary: Measured) -> list[dict[str, Any]]:
    gaps = summary.table(GAPS)
    least = min(gap["embedding_std"] for gap in gaps)
    return [gap for gap in gaps if gap["embedding_std"] == least]


def judge_faster(summary: Measured) -> Judgement:
    """Orthogonal against independent weights: the mean test loss over the course of training, seed by seed."""
    from separatrix import training

    area = {
        (curve["family"], curve["weight_scale"], curve["embedding_std"], curve["seed"]): statistics.fmean(
            curve["losses"]
        )
        for curve in summary.curves
    }
    rows, words = [], []
    for scale, std in sorted({key[1:3] for key in area}):
        seeds = sorted({key[3] for key in area if key[1:3] == (scale, std)})
        gap = training.paired_difference(
            *([area[family, scale, std, seed] for seed in seeds] for family in ("haar", "gaussian"))
        )
        name = f"orthogonal minus independent, sqrt(V) = {scale:g}, embeddings {std:g}"
        rows.append(interval_row(name, gap.mean, (gap.low, gap.high), below=0.0))
        words.append(f"{within_interval(gap.mean, gap.low, gap.high, signed=True)} nats at embeddings {std:g}")
    return judge(f"difference of the mean loss over training: {', '.join(words)}", rows)


def _with_curves(orthogonal: float) -> Callable[[Measured], Measured]:
    """Curves at a loss of two, those of orthogonal weights at another."""

    def losses(row: Mapping[str, Any]) -> list[float]:
        base = orthogonal if row["family"] == "haar" else 2.0
        return [base + 0.001 * row["seed"] for _ in row["losses"]]

    return with_column("curves", "losses", losses)


_IN_WORDS = {"residual": "residual in decades", "radius_before": "radius before training"}


def judge_injection(summary: Measured) -> Judgement:
    """Stability of the solve: embeddings' size against family."""
    gaps = [row for row in summary.table(EFFECTS) if row["quantity"] in ("residual", "radius_before")]
    rows = [
        Row(
            f"{_IN_WORDS[row['quantity']]}: least effect of the embeddings' size, sqrt(V) = {row['weight_scale']:g}",
            row["embeddings_at_least"],
            f"above {row['families_at_most']:.3f}, the largest effect of the family",
            "",
            agrees=row["embeddings_at_least"] > row["families_at_most"],
        )
        for row in gaps
    ]
    words = [
        f"{_IN_WORDS[row['quantity']]}: embeddings {row['embeddings_at_least']:.2f} to "
        f"{row['embeddings_at_most']:.2f}, families at most {row['families_at_most']:.2f}"
        for row in gaps
    ]
    return judge("; ".join(words), rows)


def judge_injection_loss(summary: Measured) -> Judgement:
    """Test loss: embeddings of the size of the state against the document's."""
    gaps = summary.table(LOSSES)
    rows = [
        interval_row(
            f"{NAMES[gap['family']]} at sqrt(V) = {gap['weight_scale']:g}: small minus large embeddings, nats",
            gap["loss"],
            (gap["low"], gap["high"]),
            above=0.0,
        )
        for gap in gaps
    ]
    words = ", ".join(
        f"{NAMES[gap['family']]} {within_interval(gap['loss'], gap['low'], gap['high'], signed=True)}" for gap in gaps
    )
    return judge(f"loss with small minus loss with large embeddings: {words}", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Learning curves."""
    from separatrix.report.figures.learning.training import draw_learning_curves

    return {"learning-curves": draw_learning_curves(summary.curves, panels="embedding_std")}


EXPERIMENT = Experiment(
    name="agarwala-fig6",
    title="Equilibrium transformer: learning curves with equal blocks and two sizes of embeddings",
    document="agarwala2022",
    place="section 4.2, Fig. 6",
    version=1,
    scales={
        "smoke": Settings(**SMOKE),
        "laptop": Settings(**LAPTOP, seeds=tuple(range(4))),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig6-faster",
            statement="orthogonal weights converge faster than independent ones",
            measures="mean test loss over the learning curve, seed by seed, dense blocks of one width",
            test="95 % interval below zero for every size of the embeddings; refuted if one lies above, else undecided",
            judge=judge_faster,
            counterfeit=_with_curves(3.0),
            genuine=_with_curves(1.0),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-fig6-width",
            statement="GOE keeps its lead when the dense blocks of all families have the same width",
            measures="difference of the test losses with square blocks, seed by seed",
            test="every 95 % interval above zero; refuted if one lies below, else undecided",
            judge=judge_width,
            counterfeit=shifted_gaps(GAPS, "loss", -1.0),
            genuine=shifted_gaps(GAPS, "loss", 1.0),
            scale="laptop",
        ),
        Claim(
            id="separatrix-fig6-residual",
            document="separatrix",
            statement="with square blocks too, GOE layers end closer to an equilibrium than independent ones",
            measures="median relative residual of the solver at the end, in decades, seed by seed",
            test="the 95 % interval lies above zero (refuted: below; undecided: it contains zero)",
            judge=judge_residual,
            counterfeit=shifted_gaps(GAPS, "residual", -5.0),
            genuine=shifted_gaps(GAPS, "residual", 5.0),
            scale="laptop",
        ),
        Claim(
            id="separatrix-fig6-injection",
            document="separatrix",
            statement=(
                "the size of the injected embeddings governs the stability of the layer more than the "
                "matrix family does"
            ),
            measures="median residual in decades after training, spectral radius before, both as means over seeds",
            test="the least effect of the size exceeds the largest effect of the family",
            needs=(groups(EFFECTS, "quantity", "residual", "radius_before"),),
            judge=judge_injection,
            counterfeit=with_column(EFFECTS, "embeddings_at_least", 0.0),
            scale="laptop",
        ),
        Claim(
            id="separatrix-fig6-injection-loss",
            document="separatrix",
            statement="with embeddings of the size of the state every family reaches a lower test loss",
            measures="test loss with the document's embeddings minus that with unit ones, seed by seed",
            test="95 % intervals above zero; refuted if one lies below, else undecided",
            judge=judge_injection_loss,
            counterfeit=with_interval_at(LOSSES, "loss", -1.0),
            genuine=with_interval_at(LOSSES, "loss", 1.0),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "wikitext2-reordered"),
)
