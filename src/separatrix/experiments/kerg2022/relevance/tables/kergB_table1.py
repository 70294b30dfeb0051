"""kerg2022, Table 1 of appendix B: agents with full and with screened memory in MiniGrid, small and large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    in_turn,
    interval_row,
    judge,
)

from .grid_runs import PAIRS, run_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REWARDS = "Mean reward of an episode, 95 % intervals over seeds"
GAPS = "RelLSTM minus MemLSTM, seed by seed, 95 % intervals"
MODELS = ("MemLSTM", "RelLSTM")
ALL = "all environments of MiniGrid"


class Settings(Params):
    """Environments by pair, and how agents learn; the defaults are the document's, where it says anything."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    pairs: tuple[str, ...] = tuple(name for name in PAIRS if name != "Corridor")
    models: tuple[str, ...] = MODELS
    n_frames: int = 5_000_000
    corridor_frames: int = 20_000
    n_episodes: int = 1000
    n_hidden: int = 64
    n_buffer: int = 5
    n_relevant: int = 5
    n_environments: int = 16
    n_steps: int = 128
    longest: int = 16  # steps that gradients go back; the document does not say
    batch_frames: int = 256
    lr: float = 1e-3


class Measured(Summary):
    """Rewards while learning, by pair and model."""

    curves: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per pair, model and seed."""
    common = settings.model_dump(exclude={"seeds", "pairs", "models", "corridor_frames"})
    for pair in settings.pairs:
        frames = {"n_frames": settings.corridor_frames} if pair == "Corridor" else {}
        for model in settings.models:
            for seed in settings.seeds:
                yield {**common, **frames, "pair": pair, "model": model, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train one agent and let it act."""
    return run_grid(cell)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means over episodes, spread over seeds; differences of the two models seed by seed."""
    from separatrix.core import plain
    from separatrix.training import paired_difference, spread

    means: dict[tuple[str, str, str], dict[int, float]] = {}
    curves = []
    for cell, payload in ((cell, plain(payload)) for cell, payload in results):
        pair, model = cell.args["pair"], cell.args["model"]
        curves.append({"pair": pair, "model": model, **payload["curve"]})
        for part in ("train", "test"):
            own = means.setdefault((pair, model, part), {})
            own[cell.seed] = sum(payload[part]) / len(payload[part])
    rows = []
    for (pair, model, part), by_seed in means.items():
        found = spread(list(by_seed.values()))
        names = {"pair": pair, "environment": PAIRS[pair][part == "test"], "part": part, "model": model}
        rows.append({**names, "mean": found.mean, "low": found.low, "high": found.high})
    gaps = []
    pairs = list(dict.fromkeys(key[0] for key in means))
    groups = {pair: [pair] for pair in pairs} | {ALL: [pair for pair in pairs if pair != "Corridor"]}
    for name, members in groups.items():
        for part in ("train", "test"):
            both = [tuple(means.get((pair, model, part)) for model in MODELS) for pair in members]
            if not both or any(one is None for pair in both for one in pair):
                continue
            full, screened = (_by_seed([pair[place] for pair in both]) for place in (0, 1))  # type: ignore[misc]
            gap = paired_difference(screened, full)
            gaps.append({"pair": name, "part": part, "gap": gap.mean, "low": gap.low, "high": gap.high})
    return Measured(curves=curves, tables={REWARDS: rows, GAPS: gaps})


def _by_seed(tables: Sequence[Mapping[int, float]]) -> list[float]:
    return [sum(table[seed] for table in tables) / len(tables) for seed in sorted(tables[0])]


def _rewards(summary: Measured, pair: str, part: str) -> list[Mapping[str, Any]]:
    return [row for row in summary.table(REWARDS) if (row["pair"], row["part"]) == (pair, part)]


def _words(rows: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{row['model']} {interval_of(row, share=True)} in {row['environment']}" for row in rows)


def earns(pair: str, part: str, above: float, models: Sequence[str] = MODELS) -> Callable[[Measured], Judgement]:
    """A rule: rewards of the models lie above a bound."""

    def judge_rewards(summary: Measured) -> Judgement:
        found = [row for row in _rewards(summary, pair, part) if row["model"] in models]
        rows = [
            interval_row(f"{row['model']} in {row['environment']}", row["mean"], (row["low"], row["high"]), above=above)
            for row in found
        ]
        return judge(_words(found), rows)

    return judge_rewards


def earns_more(pair: str, part: str, learned: float | None = None) -> Callable[[Measured], Judgement]:
    """A rule: RelLSTM earns more than MemLSTM; if asked for, only agents that learned the small environment tell."""

    def judge_gap(summary: Measured) -> Judgement:
        found = [row for row in summary.table(GAPS) if (row["pair"], row["part"]) == (pair, part)]
        rows = [
            interval_row("RelLSTM minus MemLSTM", row["gap"], (row["low"], row["high"]), above=0.0) for row in found
        ]
        if learned is not None:
            slow = [row for row in _rewards(summary, pair, "train") if row["mean"] < learned]
            told = [Row(f"{row['model']} learned", row["mean"], f"at least {learned}", agrees=None) for row in slow]
            rows = told or rows
        return judge(
            ", ".join(f"RelLSTM minus MemLSTM {interval_of(row, 'gap', signed=True)} ({pair})" for row in found), rows
        )

    return judge_gap


def _moved(table: str, column: str, value: float, pair: str, part: str) -> Any:
    def put(summary: Measured) -> Measured:
        """Also where that pair was not run."""
        rows = [dict(row) for row in summary.table(table)]
        here = [row for row in rows if (row["pair"], row["part"]) == (pair, part)]
        names = {"pair": pair, "part": part}
        if not here:
            here = (
                [names]
                if table == GAPS
                else [{**names, "environment": PAIRS[pair][part == "test"], "model": model} for model in MODELS]
            )
            rows += here
        for row in here:
            row |= {column: value, "low": value - 0.01, "high": value + 0.01}
        return summary.model_copy(update={"tables": {**summary.tables, table: rows}})

    return put


def _learned_with_gap(gap: float) -> Any:
    return in_turn(_moved(REWARDS, "mean", 0.93, "DoorKey", "train"), _moved(GAPS, "gap", gap, "DoorKey", "test"))


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Rewards while learning."""
    from separatrix.report.figures.recurrent.training import draw_model_curves

    return {
        pair: draw_model_curves(
            [
                {"model": curve["model"], "steps": curve["frames"], "values": curve["reward"]}
                for curve in summary.curves
                if curve["pair"] == pair
            ],
            label="reward of an episode",
        )
        for pair in dict.fromkeys(curve["pair"] for curve in summary.curves)
    }


EXPERIMENT = Experiment(
    name="kergB-table1",
    title="Agents with memory in small and large environments",
    document="kerg2022",
    place="appendix B.2, Table 1",
    version=1,
    scales={
        "smoke": Settings(
            seeds=(0, 1),
            pairs=("Corridor",),
            corridor_frames=64,
            n_episodes=8,
            n_hidden=8,
            n_environments=4,
            n_steps=16,
            batch_frames=32,
        ),
        "laptop": Settings(seeds=(0, 1, 2), pairs=("Corridor", "DoorKey"), n_frames=100_000, n_episodes=32, longest=8),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-B-table1-transfer",
            statement="In larger environments RelLSTM earns much more than MemLSTM, across several of them.",
            measures="reward of an episode in the larger environment, RelLSTM minus MemLSTM, mean over environments",
            test="95 % interval over seeds above 0",
            judge=earns_more(ALL, "test"),
            counterfeit=_moved(GAPS, "gap", -0.1, ALL, "test"),
            genuine=_moved(GAPS, "gap", 0.1, ALL, "test"),
            scale="paper",
        ),
        Claim(
            id="kerg2022-B-table1-DoorKey-transfer",
            statement="From DoorKey-5x5 to 16x16 RelLSTM transfers better than MemLSTM (printed: .44 against .31).",
            measures="reward of an episode of DoorKey-16x16, RelLSTM minus MemLSTM",
            test="95 % interval over seeds above 0; agents that did not learn the small one (.8) tell nothing",
            judge=earns_more("DoorKey", "test", learned=0.8),
            counterfeit=_learned_with_gap(-0.1),
            genuine=_learned_with_gap(0.1),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-B-table1-DoorKey",
            statement="Both learn the small environment with a door and its key (printed: .94 and .93).",
            measures="reward of an episode of DoorKey-5x5",
            test="95 % interval over seeds above .8 for both",
            judge=earns("DoorKey", "train", 0.8),
            counterfeit=_moved(REWARDS, "mean", 0.3, "DoorKey", "train"),
            genuine=_moved(REWARDS, "mean", 0.93, "DoorKey", "train"),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-B-table1-Memory",
            statement="In MemoryS7 RelLSTM learns what MemLSTM does not (printed: .94 against .40).",
            measures="reward of an episode of MemoryS7, RelLSTM minus MemLSTM",
            test="95 % interval over seeds above 0",
            judge=earns_more("Memory", "train"),
            counterfeit=_moved(GAPS, "gap", -0.2, "Memory", "train"),
            genuine=_moved(GAPS, "gap", 0.5, "Memory", "train"),
            scale="paper",
        ),
        Claim(
            id="screening-corridor",
            statement="An agent with bounded memory learns to take a turn by a cue it saw at the start.",
            measures="reward of RelLSTM in a corridor of 3 steps; who remembers nothing has .5",
            test="95 % interval over seeds above .9",
            judge=earns("Corridor", "train", 0.9, ("RelLSTM",)),
            counterfeit=_moved(REWARDS, "mean", 0.5, "Corridor", "train"),
            genuine=_moved(REWARDS, "mean", 0.99, "Corridor", "train"),
            document="separatrix",
            place="corridor of our own",
            scale="laptop",
        ),
    ),
    draw=draw,
)
