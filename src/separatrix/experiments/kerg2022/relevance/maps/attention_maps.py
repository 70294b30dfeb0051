"""What trained networks attend to: maps, how many states it amounts to, and how much of it meets the symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
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
    interval_row,
    judge,
    with_interval,
)

from ..models import arithmetic, named_backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

MEASURES = "Attention of trained networks, means over problems with 95 % intervals"


class Settings(Params):
    """One network per task; sizes of all of them."""

    kinds: tuple[str, ...]
    model: str = "MemRNN"
    n_hidden: int = 128
    delay: int = 100
    n_items: int = 10
    n_buffer: int = 0
    n_steps: int = 10_000
    batch_size: int = 10
    context: int = 125  # of characters
    text: str = "ptb-char"
    images: str = "mnist"
    pixels_per_step: int = 7
    n_problems: int = 50


class Compiled(Settings):
    """The same by compiled loops, several times faster (extra ``fast``)."""

    backend: str = "numba"


class Measured(Summary):
    """One map per task."""

    maps: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task and seed."""
    for kind in settings.kinds:
        for seed in settings.seeds:
            own = settings.model_dump(exclude={"seeds", "kinds", "backend"}) | named_backend(settings)
            yield {**own, "kind": kind, "seed": seed}


def run_map(cell: Cell) -> Payload:
    """Train a network and look at its attention on fresh problems."""
    kinds = {"copy": _recall, "denoise": _recall, "characters": _characters, "digits": _digits}
    with arithmetic(cell):
        return kinds[cell.args["kind"]](cell)


def _recall(cell: Cell) -> Payload:
    from separatrix import tasks

    from ..memory_runs import train_cell

    args = cell.args
    table = f"{args['kind']}-found"
    own = {"task": args["kind"], "table": table, "tail_steps": 0, "clip": 1.0, "n_valid": 50}
    own |= {"n_buffer": args["n_buffer"] or None, "n_relevant": 0, "measure_every": max(1, args["n_steps"] // 2)}
    inner = Cell(cell.experiment, cell.version, {**args, **own}, cell.seed, cell.entry)
    options = {"log_attention": True} if args["model"].startswith("Mem") else {}
    trained = train_cell(inner, **options)
    batch = tasks.StreamedBatches(trained.task, args["n_problems"], cell.seed, "map")(0)
    found = _measured(trained.model, batch.inputs, batch.oracle)
    return {**found, "accuracy": trained.payload["curve"]["accuracy"][-1]}


def _characters(cell: Cell) -> Payload:
    import torch
    from torch.nn import functional

    from separatrix import tasks
    from separatrix.training import TrainingSettings, train

    from ...trained.character_model import CharacterModel
    from ...trained.sequence_runs import load_text

    args = cell.args
    text = load_text(args["text"], 40_000)
    n_embedding = min(32, text.n_symbols)
    core = _full_core(n_embedding, cell)
    model = CharacterModel(core, text.n_symbols, spawn(cell.seed, "kerg4", "read-out"))
    batches = tasks.ContiguousBatches(text.train, args["batch_size"], args["context"])

    def loss(network: Any, batch: Any) -> Tensor:
        logits, _ = network(batch[0])  # memory and state begin anew with each window
        return functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())

    settings = TrainingSettings(n_steps=args["n_steps"], lr=2e-3, clip_norm=1.0)
    train(model, batches, loss, settings)
    model.eval()
    windows = text.test[: args["n_problems"] * args["context"]].view(-1, args["context"])
    with torch.no_grad():
        model(windows)
    return _of_trace(core.last.trace, None)


def _digits(cell: Cell) -> Payload:
    import torch
    from torch.nn import functional

    from separatrix import nn, tasks
    from separatrix.training import TrainingSettings, train

    from ...trained.sequence_runs import load_images

    args = cell.args
    data = load_images(args["images"], 5000)

    def grouped(x: Tensor) -> Tensor:
        length = x.shape[1] // args["pixels_per_step"] * args["pixels_per_step"]
        return x[:, :length].reshape(len(x), -1, args["pixels_per_step"])

    core = _full_core(args["pixels_per_step"], cell)
    model = nn.SequenceModel(core, data.n_classes, "last", generator=spawn(cell.seed, "kerg4", "read-out"))
    batches = tasks.ShuffledBatches(len(data.train_y), args["batch_size"], cell.seed, "kerg4", "order")
    settings = TrainingSettings(n_steps=args["n_steps"], lr=2e-3, clip_norm=1.0)
    train(
        model,
        batches,
        lambda m, rows: functional.cross_entropy(m(grouped(data.train_x[rows])), data.train_y[rows]),
        settings,
    )
    model.eval()
    with torch.no_grad():
        model(grouped(data.test_x[: args["n_problems"]]))
    return _of_trace(core.last.trace, None)


def _full_core(n_inputs: int, cell: Cell) -> Any:
    from separatrix import nn

    generator = spawn(cell.seed, "kerg4", "weights")
    return nn.MemRNN(n_inputs, cell.args["n_hidden"], log_attention=True, generator=generator)


def _measured(model: Any, inputs: Tensor, oracle: Tensor) -> Payload:
    import torch

    with torch.no_grad():
        model(inputs)
    last = model.core.last
    found = _of_trace(last.trace, oracle)
    if last.scores is not None:
        marks = torch.zeros(last.scores.shape, dtype=torch.bool).scatter_(1, oracle, value=True)
        n_buffer = last.trace.indices.shape[2]
        settled = torch.arange(last.scores.shape[1]) >= n_buffer  # the first have few rivals, whatever they hold
        inside = marks & settled
        others = ~marks & settled
        inside[:, inside.shape[1] - n_buffer :] = False
        others[:, others.shape[1] - n_buffer :] = False
        rows = [
            float(scores[a].mean() - scores[b].mean())
            for scores, a, b in zip(last.scores, inside, others, strict=True)
            if bool(a.any()) and bool(b.any())
        ]
        found["score_gaps"] = rows
    return found


def _of_trace(trace: Any, oracle: Tensor | None) -> Payload:
    """A map, and per problem: effective number of attended states over those there are, and mass on the symbols."""
    import torch

    weights, indices = trace.weights.double(), trace.indices
    batch, n_steps, _ = weights.shape
    maps = torch.zeros(batch, n_steps, n_steps + 1, dtype=torch.float64)
    maps.scatter_add_(2, torch.where(indices < 0, n_steps, indices).long(), weights)
    maps = maps[..., :n_steps]
    there = (indices >= 0).sum(-1)
    effective = torch.exp(torch.special.entr(weights).sum(-1)) / there
    late = slice(n_steps // 2, None)
    found: Payload = {
        "map": torch.round(maps[0], decimals=3),
        "marked": [] if oracle is None else oracle[0].tolist(),
        "effective": effective[:, late].mean(1).tolist(),
    }
    if oracle is not None:
        answers = slice(n_steps - oracle.shape[1], None)
        mass = maps.gather(2, oracle.unsqueeze(1).expand(-1, n_steps, -1)).sum(-1)[:, answers]
        even = oracle.shape[1] / there[:, answers].double()
        found["mass_over_even"] = (mass / even).mean(1).tolist()
    return found


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means over problems; the map of the first seed."""
    from separatrix.core import plain
    from separatrix.training import spread

    results = [(cell, plain(payload)) for cell, payload in results]
    rows, maps = [], []
    for kind in dict.fromkeys(cell.args["kind"] for cell, _ in results):
        own = [payload for cell, payload in results if cell.args["kind"] == kind]
        for quantity in ("effective", "mass_over_even", "score_gaps"):
            values = [value for payload in own for value in payload.get(quantity, ())]
            if values:
                found = spread(values)
                rows.append(
                    {"task": kind, "quantity": quantity, "mean": found.mean, "low": found.low, "high": found.high}
                )
        if "accuracy" in own[0]:
            accuracy = sum(payload["accuracy"] for payload in own) / len(own)
            rows.append({"task": kind, "quantity": "accuracy", "mean": accuracy, "low": None, "high": None})
        maps.append({"title": kind, "map": own[0]["map"], "marked": own[0]["marked"]})
    return Measured(maps=maps, tables={MEASURES: rows})


_QUANTITIES = {
    "effective": "effective share of the states",
    "mass_over_even": "mass on the symbols over an even one",
    "score_gaps": "gap of the scores",
}


def measured_side(quantity: str, *, learned: float = 0.0, **side: float) -> Callable[[Measured], Judgement]:
    """A rule: the interval of a quantity lies on one side for every task that has it.

    A network whose accuracy is below ``learned`` tells nothing of trained ones.
    """

    def judge_side(summary: Measured) -> Judgement:
        found = [row for row in summary.table(MEASURES) if row["quantity"] == quantity]
        accuracy = {row["task"]: row["mean"] for row in summary.table(MEASURES) if row["quantity"] == "accuracy"}
        rows = [
            interval_row(f"{_QUANTITIES[quantity]}, {row['task']}", row["mean"], (row["low"], row["high"]), **side)
            if accuracy.get(row["task"], 1.0) >= learned
            else Row(f"accuracy, {row['task']}", accuracy[row["task"]], f"at least {learned}", agrees=None)
            for row in found
        ]
        return judge(", ".join(f"{_QUANTITIES[quantity]} {interval_of(row)} ({row['task']})" for row in found), rows)

    return judge_side


def moved_to(quantity: str, value: float) -> Any:
    """A counterfeit or a genuine summary: the quantity elsewhere."""
    spread = 0.02 * max(abs(value), 0.1)
    return with_interval(MEASURES, value - spread, value + spread, {"quantity": quantity}, middle="mean")


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The maps side by side."""
    from separatrix.report.figures.recurrent.screening import draw_attention_maps

    return {"attention": draw_attention_maps(summary.maps)}


def map_experiment(
    run: Callable[[Cell], Payload],
    figure: int,
    title: str,
    scales: Mapping[str, Settings],
    claim: Claim,
    data: tuple[str, ...] = (),
) -> Experiment:
    """A figure of appendix B with one claim; ``run`` stands in the file of the experiment, by which cells find it."""
    return Experiment(
        name=f"kergB-fig{figure}",
        title=title,
        document="kerg2022",
        place=f"appendix B.4, Fig. {figure}",
        version=1,
        scales=dict(scales),  # type: ignore[arg-type]
        expand=expand,
        run=run,
        summarise=summarise,
        claims=(claim,),
        draw=draw,
        data=data,
    )


def is_dense(figure: int, what: str) -> Claim:
    """Attention is spread over most of the states there are."""
    return Claim(
        id=f"kerg2022-B-fig{figure}",
        statement=f"Attention on {what} is dense.",
        measures="exp of the entropy of the weights over the number of states there are, later half of the steps",
        test="95 % interval over problems above .5",
        judge=measured_side("effective", above=0.5),
        counterfeit=moved_to("effective", 0.1),
        genuine=moved_to("effective", 0.9),
        place="section 4.6.2",
        scale="laptop",
    )


def marks_symbols(figure: int, task: str) -> Claim:
    """Within a window alone, states with a symbol are attended to more."""
    return Claim(
        id=f"kerg2022-B-fig{figure}",
        statement=f"While in the buffer, states with a symbol get more attention than others ({task}).",
        measures="score of states with a symbol minus that of others, once the buffer is full",
        test="95 % interval over problems above 0",
        judge=measured_side("score_gaps", above=0.0),
        counterfeit=moved_to("score_gaps", -0.5),
        genuine=moved_to("score_gaps", 0.5),
        scale="laptop",
    )
