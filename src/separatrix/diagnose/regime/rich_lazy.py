"""Rich or lazy: did training change what the network represents, or only its read-out?"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_finite, require_integer
from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result
from separatrix.core.wording import folded

from ..losses import Loss, loss_for, target_vectors
from ..model_call import Pick, call_with, evaluation_mode, n_samples, prediction, real_tensors
from ..movement import relative_movement
from .batch_statistics import own_statistics, statistics_moved
from .equal_loss import MakeOptimiser, loss_of, state_of, train_to_loss
from .kernel import MAX_SAMPLES, full_distance, label_alignment
from .layer_change import LayerRegime, PairDrift, State, balance_drift, layer_table
from .measures import Bench, Probed, RegimePoint
from .verdict import RegimeVerdict

if TYPE_CHECKING:
    import pandas

_FEWEST = 4
"""Samples that the similarity of features needs."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RichLazy(Result):
    """What training changed, and what that means.

    Attributes:
        verdict: ``rich``, ``lazy`` or ``in between``, from the three measures that follow; ``no word`` if training has
            removed less than half of the loss.
        kernel_change: relative change of the full tangent kernel, all outputs with all outputs.
        feature_change: largest 1 - CKA (centred) over hidden layers.
        linearised_error: how badly the model linearised at the start predicts the end (0: perfectly).
        kernel_distance: 1 - cosine of the full kernels.
        movement: relative movement of all parameters.
        label_alignment_before: alignment of the kernel with the targets at the start (NaN if targets are not vectors).
        label_alignment_after: the same at the end.
        loss_before: training loss at the start.
        loss_after: at the end; compare networks only at equal loss.
        curve: the measures and the word at every loss that was looked at, the end last.
        layers: the same measures per module (kernels traced over outputs).
        balance: drift of the balance of each layer pair.
        n_samples: samples used for kernel and features.
        method: how the kernel was computed.
    """

    verdict: RegimeVerdict
    kernel_change: float
    feature_change: float
    linearised_error: float
    kernel_distance: float
    movement: float
    label_alignment_before: float
    label_alignment_after: float
    loss_before: float
    loss_after: float
    curve: tuple[RegimePoint, ...]
    layers: tuple[LayerRegime, ...]
    balance: tuple[PairDrift, ...]
    n_samples: int
    method: str

    def __repr__(self) -> str:
        lines = [f"RichLazy: {self.verdict.label}", f"  {self.verdict.sentence}"]
        lines.append(
            f"  loss {self.loss_before:.4g} -> {self.loss_after:.4g}, on {self.n_samples} samples, {self.method}"
        )
        lines.append(f"  kernel distance {self.kernel_distance:.3g}, parameter movement {self.movement:.3g}")
        lines.append(f"  label alignment {self.label_alignment_before:.3f} -> {self.label_alignment_after:.3f}")
        lines.append("  at loss   removed  kernel change  1-CKA  linearised error  word")
        for point in self.curve:
            measures = f"{point.kernel_change:>13.3f}  {point.feature_change:>5.3f}  {point.linearised_error:>16.3f}"
            lines.append(f"  {point.loss:<8.3g}  {point.drop:>7.2f}  {measures}  {point.word}")
        width = max([len(row.layer) for row in self.layers] + [5])
        lines.append(f"  {'layer':<{width}}  movement  kernel change  1-CKA  unbiased")
        for row in self.layers:
            cells = (row.movement, row.kernel_change, row.feature_change, row.feature_change_unbiased)
            shown = ["-" if math.isnan(value) else f"{value:.3f}" for value in cells]
            lines.append(f"  {row.layer:<{width}}  {shown[0]:>8}  {shown[1]:>13}  {shown[2]:>5}  {shown[3]:>8}")
        for drift in self.balance:
            lines.append(f"  balance {drift.pair}: {drift.before:.4g} -> {drift.after:.4g} ({drift.law})")
        return folded("\n".join(lines))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with a row per layer."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("to_frame needs pandas: install separatrix[frames].") from error
        return pandas.DataFrame([dataclasses.asdict(row) for row in self.layers])


def rich_lazy(
    model: nn.Module,
    data: Any,
    *,
    loss: Loss | None = None,
    before: State | nn.Module | None = None,
    after: State | nn.Module | None = None,
    checkpoints: Sequence[State] = (),
    train_fn: Callable[[nn.Module], object] | None = None,
    target_loss: float | None = None,
    optimiser: str | MakeOptimiser = "sgd",
    lr: float | Literal["auto"] = "auto",
    drops: Sequence[float] = (0.25, 0.5, 0.75),
    max_steps: int = 20_000,
    max_samples: int = MAX_SAMPLES,
    chunk_size: int | Literal["auto"] = "auto",
    output: Pick = prediction,
    generator: torch.Generator | None = None,
) -> RichLazy:
    """Tell whether training was rich (features changed) or lazy (they did not), by how much, and from which loss on.

    The state after training comes from one of three places: ``after`` (a state or a trained copy), ``train_fn`` (called
    on a copy of the model, which it trains in place), or ``target_loss`` (a copy is trained to that loss on the full
    batch, the fair way to compare networks). The model itself is never changed.

    The word depends on the loss at which training stops: a network may be lazy at first and rich in the end. So the
    measures are given as a curve over the loss (at ``drops`` on the way to ``target_loss``, or ``checkpoints``),
    and no word is given while training has removed less than half of the loss. ``regime_curve`` does the same over
    several starts and shows the spread.

    Args:
        model: any model: dictionary inputs, tuple outputs and tied weights are fine. Evaluated without dropout. Batch
            normalisation gets, in each state, the statistics of that state's weights on the data.
        data: inputs and targets. Kernel and features use a random choice of ``max_samples`` of them.
        loss: ``"mse"`` (as torch has it), ``"half_mse"`` (half the squared error per sample), ``"cross_entropy"`` or a
            function; without one, cross entropy for class numbers and ``"mse"`` otherwise.
        before: state at the start of training; the model's own by default.
        after: state at its end.
        checkpoints: states on the way, in order, with ``after``.
        train_fn: trains the copy it is given.
        target_loss: loss to which a copy is trained.
        optimiser: for ``target_loss``, as in ``train_to_loss``.
        lr: learning rate for ``target_loss``; ``"auto"`` matches the stability of networks.
        drops: for ``target_loss``, fractions of the first loss after whose removal the curve has a point.
        max_steps: limit of steps for ``target_loss``.
        max_samples: at most 200.
        chunk_size: samples whose gradients are held at once.
        output: takes the model's output and returns the prediction.
        generator: for the sketch of outputs (more than 20 of them) and pairs of outputs (more than 4); a fixed stream
            by default.

    Returns:
        Verdict with its thresholds, global measures, the curve over the loss, and a table per layer.

    Raises:
        InvalidInput: not exactly one source of the state after training, states that do not fit or are not finite,
            a target loss that was not reached, or that the present loss does not exceed.

    Cost: a tangent kernel per state (backward passes: up to 20 outputs and 24 pairs of outputs, times samples), one
    Jacobian-vector product and a few forward passes each.
    """
    require_integer(max_samples, "max_samples", at_least=_FEWEST)
    start = _checked(model, state_of(model if before is None else before), "before")
    data = _as_data(data)
    loss = loss_for(loss, data[1])
    recipe = _Recipe(after, tuple(checkpoints), train_fn, target_loss, optimiser, lr, tuple(drops), max_steps)
    trail = [_checked(model, state, "after") for state in _trail(model, start, data, loss, recipe, output)]
    bench = Bench(
        model,
        data,
        loss=loss,
        output=output,
        max_samples=min(max_samples, MAX_SAMPLES),
        chunk_size=chunk_size,
        generator=generator,
        align=any(statistics_moved(model, start, state) for state in trail),
    )
    return _report(bench, start, trail)


def _report(bench: Bench, start: State, trail: Sequence[State]) -> RichLazy:
    """Measures of every state of the trail against the start, and the word for the last."""
    first = bench.probe(dict(start))
    ends = [bench.probe(dict(state)) for state in trail]
    compared = [bench.compare(first, end) for end in ends]
    (point, verdict), last = compared[-1], ends[-1]
    aligned = [_alignment(bench, probed) for probed in (first, last)]
    return RichLazy(
        verdict=verdict,
        kernel_change=point.kernel_change,
        feature_change=point.feature_change,
        linearised_error=point.linearised_error,
        kernel_distance=full_distance(first.kernel, last.kernel),
        movement=relative_movement(start, trail[-1], [name for name, _ in bench.model.named_parameters()]),
        label_alignment_before=aligned[0],
        label_alignment_after=aligned[1],
        loss_before=first.loss,
        loss_after=last.loss,
        curve=tuple(item for item, _ in compared),
        layers=layer_table(
            bench.model, first.state, last.state, [first.kernel, last.kernel], [first.features, last.features]
        ),
        balance=balance_drift(bench.model, start, trail[-1], bench.inputs, bench.output),
        n_samples=bench.count,
        method=f"kernel by {first.kernel.method}{', outputs sketched' if first.kernel.sketched else ''}",
    )


@final
@dataclasses.dataclass(frozen=True)
class _Recipe:
    """Where the states after training come from."""

    after: State | nn.Module | None
    checkpoints: tuple[State, ...]
    train_fn: Callable[[nn.Module], object] | None
    target_loss: float | None
    optimiser: str | MakeOptimiser
    lr: float | Literal["auto"]
    drops: tuple[float, ...]
    max_steps: int


def _as_data(data: Any) -> tuple[Any, Any]:
    if not (isinstance(data, tuple | list) and len(data) == 2):
        raise InvalidInput("data must be a pair (inputs, targets).")
    inputs, targets = data
    n = n_samples(inputs)
    if any(tensor.is_meta for _, tensor in real_tensors(data)) or getattr(targets, "is_meta", False):
        raise InvalidInput("data must hold numbers; got tensors on the meta device.")
    if n < _FEWEST:
        raise InvalidInput(f"data must hold at least {_FEWEST} samples, to tell what they have in common; got {n}.")
    if isinstance(targets, Tensor) and (targets.ndim == 0 or len(targets) != n):
        raise InvalidInput(f"targets must be as many as the {n} samples of the inputs; got {tuple(targets.shape)}.")
    return inputs, targets


def _checked(model: nn.Module, state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    own = model.state_dict()
    for key, tensor in own.items():
        if key not in state or state[key].shape != tensor.shape:
            came = tuple(state[key].shape) if key in state else "nothing"
            raise InvalidInput(f"{name} must fit the model: {key!r} needs shape {tuple(tensor.shape)}, got {came}.")
    for key, _ in model.named_parameters():
        require_finite(state[key], f"{name}[{key!r}]")
    return {key: state[key] for key in own}


def _trail(
    model: nn.Module, start: dict[str, Tensor], data: tuple[Any, Any], loss: Loss, recipe: _Recipe, output: Pick
) -> list[dict[str, Tensor]]:
    """States on the way and at the end of training, from whichever source was given."""
    if sum(source is not None for source in (recipe.after, recipe.train_fn, recipe.target_loss)) != 1:
        raise InvalidInput(
            "give exactly one of after=, train_fn= and target_loss=: where the trained state comes from."
        )
    if recipe.checkpoints and recipe.after is None:
        raise InvalidInput("checkpoints= are states on the way to after=: give the last one there.")
    if recipe.after is not None:
        return [*(state_of(state) for state in recipe.checkpoints), state_of(recipe.after)]
    trained = copy.deepcopy(model)
    trained.load_state_dict(start)
    if recipe.train_fn is not None:
        recipe.train_fn(trained)
        return [state_of(trained)]
    return _trained(trained, data, loss, recipe, output)


def _trained(
    model: nn.Module, data: tuple[Any, Any], loss: Loss, recipe: _Recipe, output: Pick
) -> list[dict[str, Tensor]]:
    """States on the way between the first loss and the target, and at the target."""
    target = recipe.target_loss
    assert target is not None
    if any(not 0 < drop < 1 for drop in recipe.drops):
        raise InvalidInput(f"drops must lie in (0, 1); got {recipe.drops}.")
    first = first_loss(model, data, loss, output)
    run = train_to_loss(
        model,
        data,
        target,
        loss=loss,
        optimiser=recipe.optimiser,
        lr=recipe.lr,
        levels=[first * (1 - drop) for drop in recipe.drops],
        max_steps=recipe.max_steps,
        output=output,
    )
    if run.outcome is not Outcome.CONVERGED:
        raise InvalidInput(
            f"target_loss {target} was not reached ({run.outcome.label}): loss {run.loss:.4g} after {run.steps} "
            "steps. Raise max_steps or ask for a larger loss."
        )
    passed = {step: state for step, _, state in run.passed}  # one step may pass several levels
    return list({**passed, run.steps: run.state}.values())


def first_loss(model: nn.Module, data: tuple[Any, Any], loss: Loss | None, output: Pick) -> float:
    """The loss before training, with the batch statistics of the data if the model is in training mode."""
    state = state_of(model)
    return loss_of(model, own_statistics(model, state, data[0]) if model.training else state, data, loss, output)


def _alignment(bench: Bench, probed: Probed) -> float:
    with torch.no_grad(), evaluation_mode(bench.model):
        shown = bench.output(call_with(bench.model, probed.state, bench.inputs))
    try:
        vectors = target_vectors(bench.targets, shown)
    except InvalidInput:
        return float("nan")  # a loss of the user's own may take targets that are no vectors
    return label_alignment(probed.kernel.kernel, vectors.reshape(len(vectors), -1))
