"""agarwala2022, Figure 5: test error on MNIST of tanh equilibrium networks, orthogonal against independent entries."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.wording import measured
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Summary,
    crossed,
    groups,
    interval_row,
    judge,
    spans,
    with_column,
    with_interval_at,
)

from ..family_names import named

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from separatrix.nn import EquilibriumClassifier

FAMILIES = ("gaussian", "haar")


ERRORS = "Test error over seeds"
PAIRS = "Orthogonal minus independent, 95 % interval"


class Settings(Params):
    """Data, scales and training. Batch, length of training, solver and scales are not stated in the document."""

    images: Literal["mnist", "digits"] = "mnist"
    pool: int = 1  # 784 pixels; 2 averages squares of 2 x 2 pixels to 196
    n_train: int = 60000
    n_test: int = 10000
    weight_scales: tuple[float, ...] = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0)
    n_steps: int = 4680  # ten epochs
    batch_size: int = 128
    lr: float = 1e-2  # section 4.1: Adam, beta1 = 0.9, learning rate 1e-2, tuned
    tol: float = 1e-3
    solver_steps: int = 30
    together: int = 5  # seeds trained side by side in one cell
    seeds: tuple[int, ...] = tuple(range(10))  # 10 seeds (caption)


class Measured(Summary):
    """Test errors seed by seed, and the size of the training."""

    errors: list[dict[str, Any]]
    images: str
    full_size: bool
    n_steps: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per family, scale and group of seeds."""
    common = settings.model_dump(exclude={"seeds", "weight_scales", "together"})
    groups = [
        settings.seeds[start : start + settings.together] for start in range(0, len(settings.seeds), settings.together)
    ]
    for family in FAMILIES:
        for weight_scale in settings.weight_scales:
            for group in groups:
                yield {**common, "family": family, "weight_scale": weight_scale, "group": group}


@functools.lru_cache(maxsize=1)
def load_images(images: str, pool: int, n_train: int, n_test: int) -> tuple[Tensor, Tensor, Tensor, Tensor, str]:
    """Training vectors and classes, test vectors and classes, digest of the files."""
    from separatrix import core, tasks

    if images == "digits":
        digits = tasks.load_digits(n_train, generator=core.spawn(0, "agarwala-fig5", "digits"))
        return digits.train_x, digits.train_y, digits.test_x[:n_test], digits.test_y[:n_test], ""
    mnist = tasks.load_mnist()
    train = tasks.pixel_vectors(mnist.train_images[:n_train], pool=pool)
    test = tasks.pixel_vectors(mnist.test_images[:n_test], pool=pool)
    return train, mnist.train_labels[:n_train], test, mnist.test_labels[:n_test], mnist.sha256


def build(family: str, weight_scale: float, width: int, args: Mapping[str, Any]) -> EquilibriumClassifier:
    """The classifiers of a group of seeds; all but W is the same for both families, so that seeds pair."""
    import torch

    from separatrix import core, dynamics, nn

    cells, heads = [], []
    for seed in args["group"]:
        generator = core.spawn(seed, "agarwala-fig5", family, "weights")
        cells.append(nn.TanhCell(width, ensemble=family, weight_var=weight_scale**2, generator=generator))
        head = torch.nn.utils.skip_init(torch.nn.Linear, width, 10)
        torch.nn.init.normal_(head.weight, std=width**-0.5, generator=core.spawn(seed, "agarwala-fig5", "head"))
        torch.nn.init.zeros_(head.bias)
        heads.append(head)
    solver = dynamics.Anderson(tol=args["tol"], max_steps=args["solver_steps"])
    return nn.EquilibriumClassifier(
        nn.SideBySide(cells, merged=True), nn.SideBySide(heads), solver=solver, backward_solver=solver
    )


def run(cell: Cell) -> Payload:
    """Train a group of seeds and test them."""
    args = cell.args
    train_x, train_y, test_x, test_y, digest = load_images(
        args["images"], args["pool"], args["n_train"], args["n_test"]
    )
    return {**train_group(args, (train_x, train_y), (test_x, test_y)), "data": digest}


def train_group(args: Mapping[str, Any], train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """Train the seeds of ``args["group"]`` side by side on one set of images and measure them on another."""
    import torch
    from torch.nn import functional

    from separatrix import tasks, training

    (train_x, train_y), (test_x, test_y) = train, test
    model = build(args["family"], args["weight_scale"], train_x.shape[1], args)
    orders = [
        tasks.ShuffledBatches(len(train_x), args["batch_size"], seed, "agarwala-fig5", "order")
        for seed in args["group"]
    ]

    def batch_at(step: int) -> tuple[Tensor, Tensor]:
        index = torch.stack([order(step) for order in orders])
        return train_x[index], train_y[index]

    def loss(model: EquilibriumClassifier, batch: tuple[Tensor, Tensor]) -> Tensor:
        logits = model(batch[0])
        return functional.cross_entropy(logits.mT, batch[1], reduction="none").mean(1)

    def measure(model: EquilibriumClassifier) -> dict[str, Any]:
        wrong = model(test_x.expand(len(orders), *test_x.shape)).argmax(-1) != test_y
        assert model.deq.last is not None
        residual = model.deq.last.relative.reshape(len(orders), -1)
        return {
            "test_error": wrong.double().mean(1).tolist(),
            "residual": residual.median(1).values.tolist(),
            "converged": (residual <= args["tol"]).double().mean(1).tolist(),
        }

    settings = training.TrainingSettings(n_steps=args["n_steps"], lr=args["lr"])
    trained = training.train(model, batch_at, loss, settings, measure=measure)
    names = ("test_error", "residual", "converged")
    payload: dict[str, Any] = {name: _each(trained.history.last(name), len(orders)) for name in names}
    losses = [_each(value, len(orders)) for value in trained.history.column("loss")[1]]
    return {**payload, "loss": losses, "diverged_at": [-1 if at is None else at for at in trained.diverged_at]}


def _each(value: Any, n: int) -> list[float]:
    return [value] if n == 1 else list(value)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Errors over seeds for each family and scale, and the difference of the families seed by seed."""
    from separatrix import training

    errors: dict[tuple[str, float], dict[int, float]] = {}
    others: dict[tuple[str, float], list[tuple[float, float, int]]] = {}
    for cell, payload in results:
        key = (cell.args["family"], cell.args["weight_scale"])
        errors.setdefault(key, {}).update(zip(cell.args["group"], payload["test_error"], strict=True))
        rest = zip(payload["residual"], payload["converged"], payload["diverged_at"], strict=True)
        others.setdefault(key, []).extend(rest)
    rows = []
    for (family, weight_scale), found in errors.items():
        values = training.spread(list(found.values()))
        residuals, converged, diverged = zip(*others[family, weight_scale], strict=True)
        rows.append(
            {"family": family, "weight_scale": weight_scale, "n_seeds": values.n}
            | {"mean_error": values.mean, "median_error": values.median, "std": values.std}
            | {"least": values.least, "greatest": values.greatest, "half_width": values.half_width}
            | {"median_residual": training.spread(residuals).median, "converged": training.spread(converged).mean}
            | {"diverged": sum(at >= 0 for at in diverged)}
        )
    pairs = []
    for weight_scale in sorted({scale for _, scale in errors}):
        haar, gaussian = (errors[family, weight_scale] for family in ("haar", "gaussian"))
        gap = training.paired_difference([haar[s] for s in haar], [gaussian[s] for s in haar])
        pairs.append({"weight_scale": weight_scale, "haar_minus_gaussian": gap.mean, "low": gap.low, "high": gap.high})
    first = results[0][0].args
    return Measured(
        tables={ERRORS: rows, PAIRS: pairs},
        errors=[
            {"family": family, "weight_scale": scale, "values": list(found.values())}
            for (family, scale), found in errors.items()
        ],
        images=first["images"],
        full_size=first["images"] == "mnist" and first["pool"] == 1,
        n_steps=first["n_steps"],
    )


def judge_orthogonal(summary: Measured) -> Judgement:
    """Orthogonal better at the larger scales, by more than the seeds leave open."""
    pairs = summary.table(PAIRS)
    large = [row for row in pairs if row["weight_scale"] >= 1]
    rows = [
        interval_row(
            f"orthogonal minus independent test error at sqrt(V) = {row['weight_scale']:g}",
            row["haar_minus_gaussian"],
            (row["low"], row["high"]),
            below=0.0,
        )
        for row in large
    ]
    better, worse = sum(row["high"] < 0 for row in pairs), sum(row["low"] > 0 for row in pairs)
    evidence = (
        f"of {len(pairs)} scales orthogonal is better at {better}, worse at {worse}, and at the others the 95 % "
        "interval of the difference contains zero"
    )
    return judge(evidence, rows)


def judge_sensitive(summary: Measured) -> Judgement:
    """Error at the smallest scale against the largest, for each family."""
    table = summary.table(ERRORS)
    rows, words = [], []
    for family in FAMILIES:
        own = sorted((row for row in table if row["family"] == family), key=lambda row: row["weight_scale"])
        if len(own) < 2:
            continue
        small, large = own[0], own[-1]
        gap = large["mean_error"] - small["mean_error"]
        room = large["half_width"] + small["half_width"]
        name = f"{named(family)}: rise of the mean error from sqrt(V) = {small['weight_scale']:g}"
        name += f" to {large['weight_scale']:g}"
        rows.append(interval_row(name, gap, (gap - room, gap + room), above=0.0))
        words.append(f"{named(family)} {_error(small)} to {_error(large)}")
    return judge("; ".join(words), rows)


def _error(row: Mapping[str, Any]) -> str:
    return measured(row["mean_error"], row["half_width"])


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Test error against the scale."""
    from separatrix.report.figures.learning.training import draw_error_by_scale

    return {"test-error": draw_error_by_scale(summary.table(ERRORS), summary.errors)}


EXPERIMENT = Experiment(
    name="agarwala-fig5",
    title="MNIST with tanh equilibrium networks: family and scale of the initial matrix",
    document="agarwala2022",
    place="section 4.1, Fig. 5",
    version=2,
    scales={
        "smoke": Settings(
            images="digits", n_train=1000, n_test=200, weight_scales=(0.3, 1.5), n_steps=10, batch_size=32,
            solver_steps=15, together=2, seeds=(0, 1),
        ),
        # 1e-2 ruins both families at this size (errors of 0.07 to 0.82 over five seeds at sqrt(V) = 0.3): there the
        # document's tuning would have chosen less
        "laptop": Settings(
            pool=2, weight_scales=(0.3, 1.0, 2.0, 3.0), n_steps=470, lr=1e-3,
        ),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig5-orthogonal",
            statement="at large scales orthogonal matrices give a lower test error than independent entries",
            measures="difference of the test errors, seed by seed, at sqrt(V) of 1 and more",
            test="every 95 % interval over seeds below zero; refuted if one lies above, else undecided",
            judge=judge_orthogonal,
            counterfeit=with_interval_at(PAIRS, "haar_minus_gaussian", 0.5),
            genuine=with_interval_at(PAIRS, "haar_minus_gaussian", -0.5),
            scale="laptop",
        ),
        Claim(
            id="separatrix-fig5-sensitive",
            document="separatrix",
            statement="the test error depends on the initial scale: it is higher at the largest than at the smallest",
            measures="mean test error at the largest and at the smallest scale",
            test="the rise, give or take both 95 % half-widths, above zero; refuted if below, else undecided",
            needs=(
                crossed(ERRORS, "family", "weight_scale"),
                spans(ERRORS, "weight_scale", 0.3, 3.0),
                groups(ERRORS, "family", "gaussian", "haar"),
            ),
            as_a_whole=(ERRORS,),
            judge=judge_sensitive,
            counterfeit=with_column(ERRORS, "mean_error", lambda row: 1 / (1 + row["weight_scale"])),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("mnist",),
)  # fmt: skip
