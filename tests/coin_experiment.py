"""An experiment by a stranger, written to the guide alone: how often coins fall heads. No torch, no closed form."""

from __future__ import annotations

import random

from separatrix.lab import Claim, Experiment, Params, Row, Summary, judge, with_column


class Settings(Params):
    chances: tuple[float, ...] = (0.3, 0.5, 0.7)
    n_throws: int = 500
    bad_coin: float = -1.0
    """The coin of this chance cannot be thrown."""


class Heads(Summary):
    worst: float


def expand(settings):
    for chance in settings.chances:
        for seed in settings.seeds:
            yield {"chance": chance, "n_throws": settings.n_throws, "bad_coin": settings.bad_coin, "seed": seed}


def run(cell):
    if cell.args["chance"] == cell.args["bad_coin"]:
        raise ValueError("the coin is bent")
    throws = random.Random(f"coins {cell.seed} {cell.args['chance']}")
    heads = sum(throws.random() < cell.args["chance"] for _ in range(cell.args["n_throws"]))
    return {"heads": heads, "share": heads / cell.args["n_throws"]}


def summarise(results):
    rows = [{"chance": cell.args["chance"], "seed": cell.seed, **payload} for cell, payload in results]
    return Heads(worst=max(abs(row["share"] - row["chance"]) for row in rows), tables={"Coins": rows})


def judge_coins(summary):
    rows = [
        Row(f"share of heads, chance {row['chance']}", row["share"], row["chance"], 0.1)
        for row in summary.table("Coins")
    ]
    return judge(f"the largest difference is {summary.worst:.3f}", rows)


def draw(summary):
    from separatrix.report import single_axes

    figure, ax = single_axes()
    ax.plot([row["chance"] for row in summary.table("Coins")], [row["share"] for row in summary.table("Coins")], "o")
    ax.set(xlabel="chance", ylabel="share of heads", title="Coins")
    return {"coins": figure}


COINS = Experiment(
    name="coins",
    title="How often coins fall heads",
    document="separatrix",
    place="tests",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(n_throws=5000), "paper": Settings(n_throws=50_000)},
    expand=expand,
    run=run,
    summarise=summarise,
    summary=Heads,
    claims=(
        Claim(
            id="coins-share",
            statement="The share of heads is near its chance.",
            measures="share of heads",
            test="0.1",
            judge=judge_coins,
            counterfeit=with_column("Coins", "share", lambda row: 1 - row["chance"] + 0.2),
        ),
    ),
    draw=draw,
)
