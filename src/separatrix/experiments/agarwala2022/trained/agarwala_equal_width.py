"""agarwala2022, Table 1 at its smaller scales with dense blocks of one width: does GOE keep its lead?

In the table the GOE block is square and the others are four times wider. ``agarwala-fig6`` takes that difference away
at sqrt(V) = 1, where the document's families differ most; here it is taken away at the two smaller scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import within_interval
from separatrix.lab import Cell, Claim, Experiment, Judgement, Payload, Summary, in_turn, judge, with_column

from .transformer import (
    FAMILIES,
    LAPTOP,
    SMOKE,
    TransformerSettings,
    gap_to_goe,
    judge_gaps,
    learning_curves,
    perplexities,
    row_of,
    train_cell,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE = "Square dense blocks at small scales"
GAPS = "Loss and decades of residual minus those of GOE, 95 % intervals"


class Settings(TransformerSettings):
    """The two smaller scales of the table."""

    weight_scales: tuple[float, ...] = (0.1, 0.3)  # sqrt(V)
    embedding_std: float = 0.02  # as for Table 1


class Measured(Summary):
    """Learning curves of every model."""

    curves: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per scale, seed and family, so that a run that stops early has whole seeds."""
    common = settings.model_dump(exclude={"seeds", "weight_scales"})
    for seed in settings.seeds:
        for weight_scale in settings.weight_scales:
            for family in FAMILIES:
                yield {**common, "family": family, "square": True, "weight_scale": weight_scale, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train one model."""
    return train_cell(cell)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row for each family and scale, and the differences from GOE seed by seed."""
    found = perplexities(results, "family", "weight_scale")
    rows = [{"family": family, "weight_scale": scale, **row_of(own)} for (family, scale), own in found.items()]
    gaps = [
        {"weight_scale": scale, "family": other, **gap_to_goe(found, (other, scale), ("goe", scale))}
        for scale in sorted({scale for _, scale in found})
        for other in FAMILIES
        if other != "goe"
    ]
    return Measured(tables={TABLE: rows, GAPS: gaps}, curves=learning_curves(results))


def judge_width(summary: Measured) -> Judgement:
    """Is GOE the best in the mean, at each scale against each other family?"""
    found = judge_gaps(summary.table(GAPS), "loss", "nats")
    words = ", ".join(
        f"{gap['family']} at {gap['weight_scale']:g}: "
        f"{within_interval(gap['loss'], gap['loss_low'], gap['loss_high'], signed=True)}"
        for gap in summary.table(GAPS)
    )
    return judge(f"{found.evidence}; {words} nats", found.rows)


def _moved(to: float) -> Callable[[Measured], Measured]:
    """Every difference from GOE is ``to``, give or take a tenth of it."""
    columns = {"loss": to, "loss_low": to - 0.1 * abs(to), "loss_high": to + 0.1 * abs(to)}
    return in_turn(*(with_column(GAPS, name, value) for name, value in columns.items()))


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Learning curves."""
    from separatrix.report.figures.learning.training import draw_learning_curves

    return {"learning-curves": draw_learning_curves(summary.curves, panels="weight_scale")}


EXPERIMENT = Experiment(
    name="agarwala-equal-width",
    title="Equilibrium transformer at small scales with dense blocks of one width",
    document="agarwala2022",
    place="section 4.2, Table 1",
    version=1,
    scales={
        "smoke": Settings(**SMOKE),
        "laptop": Settings(**LAPTOP, seeds=tuple(range(10, 16))),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-table1-equal-width",
            document="separatrix",
            statement="at small scales GOE has the lowest perplexity also when all dense blocks have the same width",
            measures="difference of the test losses with square blocks, seed by seed, sqrt(V) of 0.1 and 0.3",
            test="every 95 % interval above zero; refuted if one lies below, else undecided",
            judge=judge_width,
            counterfeit=_moved(-0.1),
            genuine=_moved(0.1),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "wikitext2-reordered"),
)
