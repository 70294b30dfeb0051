"""Small causal transformers trained here, then read under caches that forget: policies at equal budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

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
    at_least,
    crossed,
    groups,
    judge,
    spans,
    with_column,
)

from ..worst_case import highest

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from separatrix.diagnose import CacheAudit
    from separatrix.nn import CausalTransformer
    from separatrix.tasks import KeyValues, Text

DATA = "tiny-shakespeare"
RECALL, TEXT = "Recall of values under caches", "Characters under caches"
NEEDLES, START = "Needles by place", "Untrained models"
POLICIES = ("window", "sinks", "heavy_hitter", "tova", "screening", "screening_share", "append_only")
SCORED = ("heavy_hitter", "tova", "screening", "screening_share", "append_only")
"""Policies that look at attention."""


class Settings(Params):
    """Sizes of both tasks; budgets are keys a head may hold, half of them the newest."""

    text: Literal["made", "tiny-shakespeare"] = "tiny-shakespeare"
    hidden_size: int = 64
    n_steps: int = 600
    batch_size: int = 32
    lr: float = 3e-3
    n_haystack: int = 32
    n_pairs: int = 4
    n_questions: int = 4
    n_names: int = 8
    """Different keys, values and fillers."""
    n_test: int = 100
    budgets: tuple[int, ...] = (8, 12, 20)
    main_budget: int = 12
    places: tuple[int, ...] = (1, 12, 24)
    needle_budgets: tuple[int, ...] = (12, 20)
    context: int = 64
    text_steps: int = 1000
    text_batch: int = 16
    n_windows: int = 32
    text_budgets: tuple[int, ...] = (8, 16, 32)


class Measured(Summary):
    """Budgets at which claims are judged."""

    main_budget: int
    text_budget: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per kind of model and seed."""
    for kind in ("untrained", "recall", "characters"):
        for seed in settings.seeds:
            yield {**settings.model_dump(exclude={"seeds"}), "kind": kind, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train, then audit every policy at every budget."""
    kinds: dict[str, Callable[[Cell], Payload]] = {
        "untrained": _run_untrained,
        "recall": _run_recall,
        "characters": _run_characters,
    }
    return kinds[cell.args["kind"]](cell)


def _task(args: Mapping[str, Any], paraphrased: float = 0.5) -> KeyValues:
    from separatrix import tasks

    names = args["n_names"]
    return tasks.KeyValues(args["n_haystack"], args["n_pairs"], args["n_questions"], names, names, names, paraphrased)


def _model(n_symbols: int, cell: Cell) -> CausalTransformer:
    from separatrix import nn

    generator = spawn(cell.seed, "cache-eviction", cell.args["kind"], "weights")
    return nn.CausalTransformer(n_symbols, cell.args["hidden_size"], 2, 4, 2, generator=generator)


def _fit(model: Any, batch_at: Any, loss: Any, n_steps: int, lr: float) -> str:
    from separatrix.training import TrainingSettings, train

    settings = TrainingSettings(
        n_steps=n_steps, lr=lr, schedule="cosine", warmup_steps=min(100, n_steps // 4), clip_norm=1.0
    )
    ending = train(model, batch_at, loss, settings).ending
    model.eval()
    return str(ending)


def _cache(policy: str, budget: int, marked: Tensor | None = None) -> Any:
    """A cache of a policy: half of the budget for the newest keys."""
    from separatrix import nn

    if policy == "oracle" and marked is not None:
        return nn.BoundedCache(budget - budget // 2, budget // 2, nn.GivenKeyScores(marked))
    name, share = policy.removesuffix("_share"), policy.endswith("_share")
    return nn.BoundedCache(budget - budget // 2, budget // 2, name, "share" if share else "none")


def _makers(policies: Sequence[str], budgets: Sequence[int], marked: Tensor | None = None) -> dict[str, Any]:
    def made(policy: str, budget: int) -> Callable[[], Any]:
        return lambda: _cache(policy, budget, marked)

    return {f"{policy}/{budget}": made(policy, budget) for policy in policies for budget in budgets}


def _rows(audit: CacheAudit) -> list[dict[str, Any]]:
    """Rows without times, which are no property of a policy."""
    rows = []
    for row in audit.rows:
        policy, _, budget = row.name.partition("/")
        kept = row.to_dict()
        for name in ("name", "tokens_per_second", "positions"):
            del kept[name]
        unbounded = {"unbounded_loss": audit.unbounded_loss, "unbounded_accuracy": audit.unbounded_accuracy}
        rows.append({"policy": policy, "budget": int(budget), **kept, **unbounded})
    return rows


def _run_untrained(cell: Cell) -> Payload:
    """Near-even attention: what screening keeps before anything was learned."""
    from separatrix import diagnose

    args, task = cell.args, _task(cell.args)
    tokens = task.sample(8, generator=spawn(cell.seed, "cache-eviction", "untrained", "tokens")).inputs
    makers = _makers(("screening", "screening_share", "sinks", "window"), (args["main_budget"],))
    return {"rows": _rows(diagnose.cache_audit(_model(task.n_inputs, cell), tokens, makers))}


def _run_recall(cell: Cell) -> Payload:
    import torch

    from separatrix import diagnose, tasks

    args, task = cell.args, _task(cell.args)
    model = _model(task.n_inputs, cell)
    ending = _fit(
        model,
        tasks.StreamedBatches(task, args["batch_size"], cell.seed),
        lambda m, batch: task.loss(m(batch.inputs).logits, batch),
        args["n_steps"],
        args["lr"],
    )
    test = task.sample(args["n_test"], generator=spawn(cell.seed, "cache-eviction", "recall", "test"))
    scored, marked = test.targets >= 0, torch.zeros_like(test.inputs, dtype=torch.bool).scatter(1, test.oracle, True)
    makers = _makers((*POLICIES, "oracle"), (*args["budgets"], task.length), marked)
    audit = diagnose.cache_audit(model, test.inputs, makers, scored=scored, marked=marked)
    return {"ending": ending, "rows": _rows(audit), "needles": _needles(cell, model)}


def _needles(cell: Cell, model: Any) -> list[dict[str, Any]]:
    """The needle is the pair of the first question; the others are in its way."""
    from separatrix import diagnose

    args = cell.args

    def problems(place: int, paraphrased: bool) -> tuple[Tensor, Tensor]:
        task = _task(args, float(paraphrased))
        generator = spawn(cell.seed, "cache-eviction", "needles", place, int(paraphrased))
        batch = task.sample_at(args["n_test"], place, generator=generator)
        first = batch.targets >= 0
        first[:, task.n_haystack + 2 :] = False
        return batch.inputs, first

    makers = {policy: (lambda budget, policy=policy: _cache(policy, budget)) for policy in POLICIES}
    table = diagnose.needle_table(model, problems, makers, places=args["places"], budgets=args["needle_budgets"])
    return [{"policy": row["cache"], **{k: v for k, v in row.items() if k != "cache"}} for row in table.rows]


def _text(cell: Cell) -> Text:
    from separatrix import tasks

    if cell.args["text"] != "made":
        return tasks.load_characters(cell.args["text"])
    made = tasks.made_up_text(6000, generator=spawn(cell.seed, "cache-eviction", "text"))
    return tasks.make_text("made", (made[:4000], made[4000:5000], made[5000:]))


def _run_characters(cell: Cell) -> Payload:
    import torch

    from separatrix import diagnose

    args, text = cell.args, _text(cell)
    length = args["context"]

    def windows(symbols: Tensor, count: int, *path: str | int) -> Tensor:
        generator = spawn(cell.seed, "cache-eviction", "windows", *path)
        starts = torch.randint(len(symbols) - length, (count, 1), generator=generator)
        return symbols[starts + torch.arange(length + 1)]

    def loss(model: Any, batch: Tensor) -> Tensor:
        logits = model(batch[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    model = _model(text.n_symbols, cell)
    ending = _fit(
        model,
        lambda step: windows(text.train, args["text_batch"], "train", step),
        loss,
        args["text_steps"],
        args["lr"],
    )
    tokens = windows(text.test, args["n_windows"], "test")[:, :-1]
    scored = torch.arange(length).ge(length // 2).expand(tokens.shape)
    audit = diagnose.cache_audit(model, tokens, _makers(POLICIES, (*args["text_budgets"], length)), scored=scored)
    return {"ending": ending, "rows": _rows(audit)}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per kind, seed, policy and budget."""
    from separatrix.core import plain

    titles = {"recall": RECALL, "characters": TEXT, "untrained": START}
    tables: dict[str, list[dict[str, Any]]] = {RECALL: [], NEEDLES: [], TEXT: [], START: []}
    for cell, payload in results:
        found = plain(payload)
        tables[titles[cell.args["kind"]]] += [{"seed": cell.seed, **row} for row in found["rows"]]
        tables[NEEDLES] += [{"seed": cell.seed, **row} for row in found.get("needles", [])]
    args = results[0][0].args
    return Measured(main_budget=args["main_budget"], text_budget=max(args["text_budgets"]), tables=tables)


def _chosen(summary: Measured, title: str, **wanted: Any) -> list[dict[str, Any]]:
    """Rows with the wanted values, not copied: who copies a row asks for every column, and some apply to few rows."""
    return [row for row in summary.table(title) if all(row[key] == value for key, value in wanted.items())]


def _seeds(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return sorted({row["seed"] for row in rows})


def _of(rows: Sequence[Mapping[str, Any]], policy: str, seed: int, column: str) -> float:
    return next(float(row[column]) for row in rows if (row["policy"], row["seed"]) == (policy, seed))


def judge_identical(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-identical``."""
    rows, worst = [], 0.0
    for title in (RECALL, TEXT):
        table = summary.table(title)
        longest = max(row["budget"] for row in table)
        for row in table:
            if row["budget"] == longest and row["policy"] != "append_only":  # which refuses keys although there is room
                worst = highest(worst, abs(row["loss_gap"]))
                rows.append(Row(f"{title}, {row['policy']}, seed {row['seed']}: loss gap", row["loss_gap"], 0.0, 1e-4))
    return judge(f"largest difference in loss {small(worst)} nats over {len(rows)} caches", rows)


LEARNED = 0.6
"""Accuracy that a model must have without any bound: one that learned nothing has nothing to forget."""


def _not_learned(rows: Sequence[Mapping[str, Any]], column: str = "unbounded_accuracy") -> list[Row]:
    """A row that cannot tell for every seed whose model did not learn the task."""
    reached = {row["seed"]: row[column] for row in sorted(rows, key=lambda row: -row[column])}  # the least of each
    return [
        Row(f"the model of seed {seed} learned", accuracy, f"at least {LEARNED:g}", agrees=None)
        for seed, accuracy in reached.items()
        if accuracy < LEARNED
    ]


def judge_oracle(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-oracle``."""
    found = _chosen(summary, RECALL, policy="oracle", budget=summary.main_budget)
    rows = [
        Row(f"accuracy lost, seed {row['seed']}", row["unbounded_accuracy"] - row["accuracy"], 0.0, 0.05)
        for row in found
    ]
    words = ", ".join(f"{row['accuracy']:.3f} of {row['unbounded_accuracy']:.3f}" for row in found)
    return judge(f"with {summary.main_budget} keys a head the oracle has {words}", _not_learned(found) or rows)


def judge_screening(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-screening``."""
    found = _chosen(summary, RECALL, budget=summary.main_budget)
    gains = {s: _of(found, "screening", s, "accuracy") - _of(found, "window", s, "accuracy") for s in _seeds(found)}
    rows = [Row(f"gain over the window, seed {s}", g, "at least 0.1", agrees=g >= 0.1) for s, g in gains.items()]
    return judge("gain " + ", ".join(f"{gain:+.3f}" for gain in gains.values()), _not_learned(found) or rows)


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def judge_gap(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-gap``."""
    found = _chosen(summary, RECALL, budget=summary.main_budget)
    rows, words = [], []
    for seed in _seeds(found):
        best = max(SCORED, key=lambda policy: _of(found, policy, seed, "accuracy"))
        gap = _of(found, "oracle", seed, "accuracy") - _of(found, best, seed, "accuracy")
        rows.append(Row(f"oracle above {_in_words(best)}, seed {seed}", gap, "at least 0.1", agrees=gap >= 0.1))
        words.append(f"{_in_words(best)} {_of(found, best, seed, 'accuracy'):.3f}, {gap:.3f} below the oracle")
    return judge("best policy: " + "; ".join(words), _not_learned(found) or rows)


def judge_paraphrase(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-paraphrase``."""
    found = _chosen(summary, NEEDLES, budget=summary.main_budget)
    rows, worst = [], 0.0
    for seed in _seeds(found):
        for policy in POLICIES:
            kept = []
            for wording in ("exact", "paraphrased"):
                own = [r for r in found if (r["seed"], r["policy"], r["wording"]) == (seed, policy, wording)]
                kept.append(sum(r["accuracy"] for r in own) / max(1e-9, sum(r["unbounded"] for r in own)))
            gap = kept[1] - kept[0]
            worst = highest(worst, abs(gap))
            rows.append(
                Row(f"{_in_words(policy)}, seed {seed}: part still found, paraphrased less exact", gap, 0.0, 0.1)
            )
    return judge(f"largest difference between the wordings {worst:.3f}", _not_learned(found, "unbounded") or rows)


def judge_startup(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-startup``."""
    rows, words = [], []
    for seed in _seeds(summary.table(START)):
        found = _chosen(summary, START, seed=seed)
        plain, share = (_of(found, policy, seed, "share_of_first") for policy in ("screening", "screening_share"))
        rows.append(Row(f"first keys under plain sums, seed {seed}", plain, "at least 0.9", agrees=plain >= 0.9))
        rows.append(Row(f"first keys under shares, seed {seed}", share, "at most 0.5", agrees=share <= 0.5))
        words.append(f"{plain:.3f} and {share:.3f}")
    return judge("share of the first positions, sums and shares: " + "; ".join(words), rows)


def judge_characters(summary: Measured) -> Judgement:
    """Decide ``separatrix-cache-characters``."""
    found = _chosen(summary, TEXT, budget=summary.text_budget)
    rows, words = [], []
    for seed in _seeds(found):
        best = min(SCORED, key=lambda policy: _of(found, policy, seed, "loss"))
        gap = _of(found, "window", seed, "loss") - _of(found, best, seed, "loss")
        rows.append(Row(f"window above {_in_words(best)}, seed {seed}", gap, "at most 0.02", agrees=gap <= 0.02))
        words.append(f"{gap:+.4f} above {_in_words(best)}")
    return judge("window in nats a character: " + "; ".join(words), rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Quality against the budget, and needles by place."""
    from separatrix.report.figures.attention.caches import draw_cache_quality, draw_needle_rows

    recall, text = summary.table(RECALL), summary.table(TEXT)
    short, few = ([r for r in rows if r["budget"] < max(q["budget"] for q in rows)] for rows in (recall, text))
    full = {}
    for rows, column in ((recall, "accuracy"), (text, "loss")):
        if rows:
            full[column] = sum(float(r[f"unbounded_{column}"]) for r in rows) / len(rows)
    return {"quality": draw_cache_quality(short, few, full), "needles": draw_needle_rows(summary.table(NEEDLES))}


def _policy(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: row["policy"] in names


_UNLEARNED = f"; a model below {LEARNED:g} without a bound tells nothing"

EXPERIMENT = Experiment(
    name="cache-eviction",
    title="Caches that forget, at equal budget",
    document="separatrix",
    place="explanation/one-idea-twice",
    version=1,
    scales={
        "smoke": Settings(
            text="made",
            hidden_size=16,
            n_steps=4,
            batch_size=8,
            n_haystack=9,
            n_pairs=2,
            n_questions=1,
            n_test=4,
            budgets=(6,),
            main_budget=6,
            places=(1,),
            needle_budgets=(6,),
            context=12,
            text_steps=3,
            text_batch=4,
            n_windows=4,
            text_budgets=(6,),
        ),
        "laptop": Settings(seeds=(0, 1)),
        "paper": Settings(seeds=(0, 1, 2, 3, 4), hidden_size=128, n_steps=20_000, text_steps=10_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    draw=draw,
    data=(DATA,),
    claims=(
        Claim(
            id="separatrix-cache-identical",
            statement="A cache that may hold the whole text changes nothing, under any policy that fills its places.",
            measures="loss under the cache less loss without one, both tasks",
            test="1e-4 nats",
            needs=(
                crossed(RECALL, "seed", "policy", "budget"),
                crossed(TEXT, "seed", "policy", "budget"),
                groups(RECALL, "policy", *POLICIES),
                groups(TEXT, "policy", *POLICIES),
                spans(RECALL, "budget", 8, 44),
                spans(TEXT, "budget", 8, 64),
            ),
            as_a_whole=(RECALL, TEXT),
            interchangeable=("seed",),
            judge=judge_identical,
            counterfeit=with_column(RECALL, "loss_gap", 0.01),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-oracle",
            statement="Recall of four pairs among 32 symbols needs no more than 12 keys a head, if the right stay.",
            measures="accuracy of an oracle that keeps the pairs, against no bound",
            test=f"0.05 at every seed{_UNLEARNED}",
            needs=(crossed(RECALL, "seed", "policy", "budget"), groups(RECALL, "policy", "oracle")),
            interchangeable=("seed",),
            judge=judge_oracle,
            counterfeit=with_column(RECALL, "accuracy", 0.1, _policy("oracle")),
            genuine=with_column(RECALL, "accuracy", lambda row: row["unbounded_accuracy"], _policy("oracle")),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-screening",
            statement="At equal budget relevancy screening recalls more than a window.",
            measures="accuracy of recall, screening less window, 12 keys a head",
            test=f"at least 0.1 at every seed{_UNLEARNED}",
            needs=(crossed(RECALL, "seed", "policy", "budget"), groups(RECALL, "policy", *POLICIES, "oracle")),
            as_a_whole=(RECALL,),
            judge=judge_screening,
            counterfeit=with_column(RECALL, "accuracy", 0.1, _policy("screening")),
            genuine=with_column(RECALL, "accuracy", 0.99, _policy("screening")),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-gap",
            statement="No policy that looks at past attention comes near the oracle, which knows what will be asked.",
            measures="accuracy of recall, oracle less the best of five policies, 12 keys a head",
            test=f"at least 0.1 at every seed{_UNLEARNED}",
            needs=(crossed(RECALL, "seed", "policy", "budget"), groups(RECALL, "policy", *POLICIES, "oracle")),
            as_a_whole=(RECALL,),
            judge=judge_gap,
            counterfeit=with_column(RECALL, "accuracy", 0.99, _policy(*SCORED)),
            genuine=with_column(RECALL, "accuracy", 0.2, _policy(*SCORED)),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-paraphrase",
            statement="Forgetting costs as much whether the needle is asked for by its name or by another.",
            measures="part of the needles still found, relative to no bound, paraphrased less exact",
            test=f"0.1 for every policy and seed{_UNLEARNED}",
            needs=(
                crossed(NEEDLES, "seed", "policy", "budget", "place", "wording"),
                groups(NEEDLES, "policy", *POLICIES),
                groups(NEEDLES, "wording", "exact", "paraphrased"),
                at_least(NEEDLES, 3, "place"),
            ),
            as_a_whole=(NEEDLES,),
            judge=judge_paraphrase,
            counterfeit=with_column(NEEDLES, "accuracy", 0.0, lambda row: row["wording"] == "paraphrased"),
            genuine=with_column(NEEDLES, "accuracy", lambda row: row["unbounded"]),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-startup",
            statement="Before training, screening by plain sums keeps the first positions, and by shares it does not: "
            "an attention sink made by the policy.",
            measures="part of the old keys held at the end that are the very first positions",
            test="sums at least 0.9, shares at most 0.5, every seed",
            needs=(crossed(START, "seed", "policy"), groups(START, "policy", "screening", "screening_share")),
            interchangeable=("seed",),
            judge=judge_startup,
            counterfeit=with_column(START, "share_of_first", 0.4, _policy("screening")),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cache-characters",
            statement="On characters a window of half the context is as good as any policy that looks at attention.",
            measures="loss a character in the second half of the context, window less the best of five policies",
            test="at most 0.02 nats at every seed",
            needs=(crossed(TEXT, "seed", "policy", "budget"), groups(TEXT, "policy", *POLICIES)),
            interchangeable=("seed",),
            judge=judge_characters,
            counterfeit=with_column(TEXT, "loss", lambda row: row["loss"] + 0.5, _policy("window")),
            genuine=with_column(TEXT, "loss", 1.5),
            scale="laptop",
        ),
    ),
)
