"""kerg2022, appendix B.3, Fig. 1: gradients over time for several sizes of the relevant set and of the buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Summary, judge

from ..models import named_backend
from .gradient_runs import SLOPES, beyond, changed, gradient_curve, in_words, mean_curves, slope_rows, within

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREAT = 1.0
"""Factors of ten over the sequence; as in Fig. 2 of chapter 4."""


class Settings(Params):
    """RelLSTM (printed as MemLSTM) on denoise."""

    seeds: tuple[int, ...] = (0, 1, 2)
    relevant: tuple[int, ...] = (3, 8, 18, 25)  # rho at nu = 15
    buffers: tuple[int, ...] = (3, 8, 18, 25)  # nu at rho = 15
    fixed: int = 15
    table: str = "denoise-found"
    delay: int = 1000
    n_items: int = 10
    n_hidden: int = 128
    batch_size: int = 10
    clip: float = 1.0
    n_steps: int = 20_000
    n_gradient: int = 10


class Compiled(Settings):
    """The same by compiled loops, several times faster (extra ``fast``)."""

    backend: str = "numba"


class Measured(Summary):
    """Mean curves over seeds, the last step first; the smallest and the other sizes."""

    curves: list[dict[str, Any]]
    smallest: tuple[str, str]
    others: tuple[list[str], list[str]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per size and seed."""
    common = settings.model_dump(exclude={"seeds", "relevant", "buffers", "fixed", "backend"})
    common |= named_backend(settings)
    common |= {"task": "denoise", "model": "RelLSTM", "tail_steps": 0, "n_valid": 50}
    common["measure_every"] = max(1, settings.n_steps // 4)
    pairs = [(settings.fixed, rho) for rho in settings.relevant] + [(nu, settings.fixed) for nu in settings.buffers]
    for n_buffer, n_relevant in dict.fromkeys(pairs):
        for seed in settings.seeds:
            yield {**common, "n_buffer": n_buffer, "n_relevant": n_relevant, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train, and follow gradients."""
    return gradient_curve(cell)


def _name(args: Mapping[str, Any]) -> str:
    return f"nu = {args['n_buffer']}, rho = {args['n_relevant']}"


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Changes of gradients by size."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    cells = [cell.args for cell, _ in results]
    fixed = max({args["n_buffer"] for args in cells}, key=[args["n_buffer"] for args in cells].count)
    by_rho = sorted((args for args in cells if args["n_buffer"] == fixed), key=lambda args: args["n_relevant"])
    held = {args["n_relevant"] for args in cells if args["n_buffer"] != fixed}
    by_nu = sorted((args for args in cells if args["n_relevant"] in held), key=lambda args: args["n_buffer"])
    names = [list(dict.fromkeys(map(_name, group))) for group in (by_rho, by_nu)]
    return Measured(
        curves=mean_curves(results, _name),
        smallest=(names[0][0], names[1][0]),
        others=(names[0][1:], names[1][1:]),
        tables={SLOPES: slope_rows(results, _name)},
    )


def judge_relevant(summary: Measured) -> Judgement:
    """Decide ``kerg2022-B-fig1-rho``: only the smallest set makes gradients unstable."""
    small, others = summary.smallest[0], summary.others[0]
    change = next(row["change"] for row in summary.table(SLOPES) if row["model"] == small)
    rows = beyond(summary, small, GREAT if change > 0 else -GREAT)
    rows += [row for name in others for row in within(summary, name, GREAT)]
    return judge(f"towards the first step gradients change by {in_words(summary, [small, *others])}", rows)


def judge_buffer(summary: Measured) -> Judgement:
    """Decide ``kerg2022-B-fig1-nu``: the size of the buffer matters little."""
    names = [summary.smallest[1], *summary.others[1]]
    rows = [row for name in names for row in within(summary, name, GREAT)]
    return judge(f"towards the first step gradients change by {in_words(summary, names)}", rows)


def _unstable(summary: Measured) -> Measured:
    made: Measured = changed(dict.fromkeys([*summary.others[0], *summary.others[1]], -3.0))(summary)
    return made


def _as_printed(summary: Measured) -> Measured:
    values = {**dict.fromkeys(summary.others[0], 0.1), **dict.fromkeys(summary.others[1], 0.1)}
    made: Measured = changed({**values, summary.smallest[1]: 0.5, summary.smallest[0]: -3.0})(summary)
    return made


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Curves of both panels."""
    from separatrix.report.figures.recurrent.screening import draw_gradient_norms

    def chosen(place: int) -> list[dict[str, Any]]:
        names = [summary.smallest[place], *summary.others[place]]
        return [curve for curve in summary.curves if curve["model"] in names]

    return {"gradients": draw_gradient_norms({"relevant set": chosen(0), "buffer": chosen(1)})}


EXPERIMENT = Experiment(
    name="kergB-fig1",
    title="Gradients over time for several sizes of relevant set and buffer",
    document="kerg2022",
    place="appendix B.3, Fig. 1",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            relevant=(1, 3),
            buffers=(1, 3),
            fixed=2,
            delay=6,
            n_items=2,
            n_hidden=8,
            n_steps=2,
            n_gradient=3,
        ),
        "laptop": Compiled(
            relevant=(1, 4, 8, 12),
            buffers=(1, 4, 8, 12),
            fixed=6,
            delay=80,
            n_items=4,
            n_hidden=32,
            n_steps=2000,
            batch_size=16,
        ),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-B-fig1-rho",
            statement="Only too small a relevant set makes gradients unstable; all larger ones leave them stable.",
            measures="log10 of the gradient norm, first tenth of the sequence minus the last before the answers",
            test="95 % interval over seeds beyond 1 for the smallest rho, between -1 and 1 for the others",
            judge=judge_relevant,
            counterfeit=_unstable,
            genuine=_as_printed,
            scale="laptop",
            erratum="kerg2022-caption-b1",
        ),
        Claim(
            id="kerg2022-B-fig1-nu",
            statement="The size of the buffer has little effect on gradients.",
            measures="the same over nu",
            test="95 % interval over seeds between -1 and 1 for every nu",
            judge=judge_buffer,
            counterfeit=_unstable,
            genuine=_as_printed,
            scale="laptop",
            erratum="kerg2022-caption-b1",
        ),
    ),
    draw=draw,
)
