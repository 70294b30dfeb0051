"""kerg2022, appendix A.6, Table 6 and Fig. 3: nnRNN with learned and with clamped moduli on characters."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import interval_of
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
    with_interval,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANTS: dict[str, Any] = {"learned": "learn", "clamped at 1": 1.0, "clamped at .958": 0.958}
TABLE = "Bits per character and gradients by variant, 95 % intervals over seeds"
GAPS = "Clamped minus learned, bits, seed by seed, 95 % interval"


class Settings(Params):
    """An nnRNN with three kinds of moduli on a text; a size of 0 is that of the document."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    table: str = "ptb-150"
    context: int = 150
    data: str = "ptb-char"
    rate: float = 1.0  # times the printed rates
    n_hidden: int = 0
    batch_size: int = 128
    n_epochs: int = 100
    n_steps: int = 0  # instead of epochs
    n_train: int = 0  # characters; 0 for all
    clip: float = 10.0
    measure_every: int = 0


class Measured(Summary):
    """Gradient norms on the way back and during training, means over seeds of their logarithms."""

    backward: list[dict[str, Any]]
    during: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per variant and seed."""
    kept = settings.model_dump(exclude={"seeds", "rate"})
    for variant, gamma in VARIANTS.items():
        for seed in settings.seeds:
            own = {"task": "characters", "model": "nnRNN", "lr_factor": settings.rate, "variant": variant}
            yield {**own, "gamma": gamma, "seed": seed, **kept}


def run(cell: Cell) -> Payload:
    """Train, then follow the gradient of the last loss of a window back through its states."""
    from .sequence_runs import first_window, run_cell

    trained = run_cell(cell)
    norms = _back_through_time(trained.model, *first_window(cell))
    payload = {name: trained.payload[name] for name in ("score", "accuracy", "ending", "n_parameters", "n_hidden")}
    training = [float(value) for value in trained.payload["gradients"][1]]
    return {**payload, "backward": norms, "during": training}


def _back_through_time(model: Any, symbols: Any, targets: Any) -> list[float]:
    """Base-ten logarithm of the gradient by the state k steps before the last loss, for k = 0, 1, ..."""
    import math

    import torch
    from torch.nn import functional

    core = model.core
    entering = model.embedding(symbols)
    states = [torch.zeros(1, len(symbols), core.hidden_size, requires_grad=True)]
    for step in entering.unbind(1):
        _, state = core(step.unsqueeze(1), states[-1])
        state.retain_grad()
        states.append(state)
    functional.cross_entropy(model.head(states[-1][0]), targets[:, -1]).backward()
    norms = [state.grad.norm(dim=-1).mean() for state in reversed(states[1:]) if state.grad is not None]
    model.zero_grad()
    return [math.log10(max(float(norm), 1e-30)) for norm in norms]


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Bits, gaps to the learned moduli, and what gradients did."""
    from separatrix.core import plain
    from separatrix.training import paired_difference, spread

    by_variant: dict[str, list[Payload]] = {}
    for cell, payload in results:
        by_variant.setdefault(cell.args["variant"], []).append(plain(payload))
    rows, gaps = [], []
    for variant, runs in by_variant.items():
        bits, growth = spread([p["score"] for p in runs]), spread([_rate(p["backward"]) for p in runs])
        spikes = max(max(p["during"]) / statistics.median(p["during"]) for p in runs)
        lost = sum(p["ending"] == "diverged" for p in runs)
        row = {"variant": variant, "bits": bits.mean, "bits_low": bits.low, "bits_high": bits.high}
        row |= {"growth": growth.mean, "low": growth.low, "high": growth.high}
        rows.append({**row, "largest_spike": spikes, "diverged": lost})
        if variant != "learned" and "learned" in by_variant:
            gap = paired_difference([p["score"] for p in runs], [p["score"] for p in by_variant["learned"]])
            gaps.append({"variant": variant, "gap": gap.mean, "low": gap.low, "high": gap.high})

    def means(column: str) -> list[dict[str, Any]]:
        return [
            {"model": name, "curve": [sum(v) / len(runs) for v in zip(*(p[column] for p in runs), strict=False)]}
            for name, runs in by_variant.items()
        ]

    return Measured(backward=means("backward"), during=means("during"), tables={TABLE: rows, GAPS: gaps})


def _rate(curve: Sequence[float]) -> float:
    """Growth of the gradient per step back, in natural logarithms, over the second half of the way."""
    half = len(curve) // 2
    return 2.302585 * (curve[-1] - curve[half]) / max(1, len(curve) - 1 - half)


def judge_growth(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-fig3-backward``."""
    rows = [
        interval_row(f"growth a step back, {row['variant']}", row["growth"], (row["low"], row["high"]), below=0.02)
        for row in summary.table(TABLE)
    ]
    words = ", ".join(f"{row['variant']} {row['growth']:+.4f}" for row in summary.table(TABLE))
    return judge(f"growth a step back: {words}", rows)


def judge_training(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-fig3-training``."""
    rows = [
        Row(
            f"largest gradient over the median, {row['variant']}",
            row["largest_spike"],
            "below 100",
            agrees=row["largest_spike"] < 100,
        )
        for row in summary.table(TABLE)
    ]
    rows += [Row(f"runs that diverged, {row['variant']}", row["diverged"], 0) for row in summary.table(TABLE)]
    worst = max(row["largest_spike"] for row in summary.table(TABLE))
    lost = sum(row["diverged"] for row in summary.table(TABLE))
    return judge(f"the largest gradient of a run is at most {worst:.1f} times its median; {lost} runs diverged", rows)


def _gap(summary: Measured, variant: str) -> Mapping[str, Any]:
    (row,) = (row for row in summary.table(GAPS) if row["variant"] == variant)
    return row


def judge_unit(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-table6-unit``."""
    row = _gap(summary, "clamped at 1")
    rows = [interval_row("bits, clamped at 1 minus learned", row["gap"], (row["low"], row["high"]), below=0.0)]
    return judge(f"clamped at 1 minus learned {interval_of(row, 'gap', signed=True)} bits", rows)


def judge_same(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-table6-same``."""
    row = _gap(summary, "clamped at .958")
    ends = (row["low"], row["high"])
    rows = [
        interval_row("bits, clamped at .958 minus learned", row["gap"], ends, below=0.03),
        interval_row("bits, clamped at .958 minus learned", row["gap"], ends, above=-0.03),
    ]
    return judge(f"clamped at .958 minus learned {interval_of(row, 'gap', signed=True)} bits", rows)


def _moved(title: str, low: float, high: float, variant: str | None = None) -> Any:
    return with_interval(title, low, high, None if variant is None else {"variant": variant})


def draw(summary: Measured) -> Mapping[str, Figure]:
    """On the way back, and during training."""
    from separatrix.report.figures.recurrent.training import draw_over_steps

    return {
        "backward": draw_over_steps(
            summary.backward,
            "log10 of the gradient",
            across="steps back",
            caption="""Size of the gradient against the number of steps it travelled back, for learned and for
            clamped moduli of the eigenvalues. The steeper the fall, the shorter the memory.""",
        ),
        "training": draw_over_steps(
            summary.during,
            "gradient norm",
            across="training step",
            caption="""Norm of the gradient at every training step, for learned and for clamped moduli of the
            eigenvalues. Look for bursts, which make a run unstable.""",
        ),
    }


EXPERIMENT = Experiment(
    name="kergA-fig3",
    title="Gradients and bits of nnRNN with learned and clamped moduli",
    document="kerg2022",
    place="appendix A.6, Table 6 and Fig. 3",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            context=8,
            data="made-up",
            n_hidden=10,
            batch_size=8,
            n_steps=6,
            n_train=2000,
            measure_every=3,
        ),
        "laptop": Settings(
            context=80,
            data="tiny-shakespeare",
            rate=2.0,
            n_hidden=64,
            batch_size=20,
            n_steps=300,
            n_train=50_000,
            measure_every=75,
        ),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-A-fig3-backward",
            statement="On the way back gradients grow at most polynomially, with clamped and with learned moduli.",
            measures="growth of the gradient per step back over the second half of a window, after training",
            test="95 % intervals over seeds below .02 a step",
            needs=(groups(TABLE, "variant", "learned", "clamped at 1", "clamped at .958"),),
            judge=judge_growth,
            counterfeit=_moved(TABLE, 0.1, 0.2),
            genuine=_moved(TABLE, -0.02, 0.0),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-A-fig3-training",
            statement="Throughout training gradient norms behave nicely.",
            measures="largest gradient norm of a run over its median, and runs that diverged",
            test="below 100 in every run, and none diverged",
            needs=(groups(TABLE, "variant", "learned", "clamped at 1", "clamped at .958"),),
            judge=judge_training,
            counterfeit=with_column(TABLE, "largest_spike", 1e4),
            genuine=with_column(TABLE, "largest_spike", 5.0),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-A-table6-unit",
            statement="Runs with moduli clamped at one that converge need fewer bits than those with learned moduli.",
            measures="test bits, clamped minus learned, seed by seed",
            test="95 % interval below 0",
            needs=(groups(GAPS, "variant", "clamped at 1"),),
            judge=judge_unit,
            counterfeit=_moved(GAPS, 0.05, 0.1, "clamped at 1"),
            genuine=_moved(GAPS, -0.1, -0.05, "clamped at 1"),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-A-table6-same",
            statement="Moduli clamped at .958 do as well as learned ones.",
            measures="test bits, clamped minus learned, seed by seed",
            test="95 % interval within .03 of 0",
            needs=(groups(GAPS, "variant", "clamped at .958"),),
            judge=judge_same,
            counterfeit=_moved(GAPS, 0.1, 0.2, "clamped at .958"),
            genuine=_moved(GAPS, -0.01, 0.01, "clamped at .958"),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "ptb-char"),
)
