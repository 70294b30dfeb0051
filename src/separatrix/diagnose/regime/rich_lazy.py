"""Rich or lazy: did training change what the network represents, or only its read-out?"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_finite, require_integer
from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result

from ..losses import Loss, target_vectors
from ..model_call import Pick, call_with, evaluation_mode, n_samples, prediction, take
from ..movement import relative_movement
from .equal_loss import loss_of, state_of, train_to_loss
from .features import hidden_features
from .kernel import MAX_SAMPLES, TangentKernel, kernel_distance, label_alignment, relative_change, tangent_kernel
from .layer_change import LayerRegime, PairDrift, State, balance_drift, layer_table
from .linearised import linearised_prediction
from .verdict import RegimeVerdict, verdict_of

if TYPE_CHECKING:
    import pandas


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RichLazy(Result):
    """What training changed, and what that means.

    Attributes:
        verdict: ``rich``, ``lazy`` or ``in between``, from the three measures that follow.
        kernel_change: relative change of the traced tangent kernel.
        feature_change: largest 1 - CKA (centred) over hidden layers.
        linearised_error: how badly the model linearised at the start predicts the end (0: perfectly).
        kernel_distance: 1 - cosine of the kernels.
        movement: relative movement of all parameters.
        label_alignment_before: alignment of the kernel with the targets at the start (NaN if targets are not vectors).
        label_alignment_after: the same at the end.
        loss_before: training loss at the start.
        loss_after: at the end; compare networks only at equal loss.
        layers: the same measures per module.
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
        width = max([len(row.layer) for row in self.layers] + [5])
        lines.append(f"  {'layer':<{width}}  movement  kernel change  1-CKA  unbiased")
        for row in self.layers:
            cells = (row.movement, row.kernel_change, row.feature_change, row.feature_change_unbiased)
            shown = ["-" if math.isnan(value) else f"{value:.3f}" for value in cells]
            lines.append(f"  {row.layer:<{width}}  {shown[0]:>8}  {shown[1]:>13}  {shown[2]:>5}  {shown[3]:>8}")
        for drift in self.balance:
            lines.append(f"  balance {drift.pair}: {drift.before:.4g} -> {drift.after:.4g} ({drift.law})")
        return "\n".join(lines)

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
    loss: Loss = "mse",
    before: State | nn.Module | None = None,
    after: State | nn.Module | None = None,
    train_fn: Callable[[nn.Module], object] | None = None,
    target_loss: float | None = None,
    lr: float | Literal["auto"] = "auto",
    max_steps: int = 20_000,
    max_samples: int = MAX_SAMPLES,
    chunk_size: int | Literal["auto"] = "auto",
    output: Pick = prediction,
    generator: torch.Generator | None = None,
) -> RichLazy:
    """Tell whether training was rich (features changed) or lazy (they did not), and by how much.

    The state after training comes from one of three places: ``after`` (a state or a trained copy), ``train_fn`` (called
    on a copy of the model, which it trains in place), or ``target_loss`` (a copy is trained by full-batch gradient
    descent to that loss, the fair way to compare networks). The model itself is never changed.

    Args:
        model: any model: dictionary inputs, tuple outputs and tied weights are fine. Evaluated without dropout.
        data: inputs and targets. Kernel and features use the first ``max_samples`` of them.
        loss: ``"mse"`` (half the squared error per sample), ``"cross_entropy"`` or a function.
        before: state at the start of training; the model's own by default.
        after: state at its end.
        train_fn: trains the copy it is given.
        target_loss: loss to which a copy is trained.
        lr: learning rate for ``target_loss``; ``"auto"`` matches the stability of networks.
        max_steps: limit of steps for ``target_loss``.
        max_samples: at most 200.
        chunk_size: samples whose gradients are held at once.
        output: takes the model's output and returns the prediction.
        generator: for the sketch of outputs (more than 20 of them); a fixed stream by default.

    Returns:
        Verdict with its thresholds, global measures, and a table per layer.

    Raises:
        InvalidInput: not exactly one source of the state after training, states that do not fit or are not finite,
            a target loss that was not reached.

    Cost: two tangent kernels (backward passes: outputs x samples), one Jacobian-vector product, a few forward passes.
    """
    require_integer(max_samples, "max_samples", at_least=4)
    start = _checked(model, state_of(model if before is None else before), "before")
    inputs, targets = _as_data(data)
    end = _checked(
        model, _end(model, start, (inputs, targets), loss, after, train_fn, target_loss, lr, max_steps, output), "after"
    )
    count = min(max_samples, n_samples(inputs))
    sample, labels = take(inputs, slice(0, count)), take(targets, slice(0, count))
    kernels = _kernels(model, sample, (start, end), output, chunk_size, generator)
    features = [hidden_features(model, state, sample, output) for state in (start, end)]
    line = linearised_prediction(model, sample, start, end, output=output)
    layers = layer_table(model, start, end, kernels, features)
    change = float(relative_change(kernels[0].kernel, kernels[1].kernel))
    moved = max([row.feature_change for row in layers if not math.isnan(row.feature_change)], default=float("nan"))
    aligned = [
        _alignment(model, state, sample, labels, kernel, output)
        for state, kernel in zip((start, end), kernels, strict=True)
    ]
    return RichLazy(
        verdict=verdict_of(change, moved, line.error),
        kernel_change=change,
        feature_change=moved,
        linearised_error=line.error,
        kernel_distance=float(kernel_distance(kernels[0].kernel, kernels[1].kernel)),
        movement=relative_movement(start, end, [name for name, _ in model.named_parameters()]),
        label_alignment_before=aligned[0],
        label_alignment_after=aligned[1],
        loss_before=loss_of(model, start, (inputs, targets), loss, output),
        loss_after=loss_of(model, end, (inputs, targets), loss, output),
        layers=layers,
        balance=balance_drift(model, start, end, sample, output),
        n_samples=count,
        method=f"kernel by {kernels[0].method}{', outputs sketched' if kernels[0].sketched else ''}",
    )


def _kernels(
    model: nn.Module,
    sample: Any,
    states: tuple[dict[str, Tensor], dict[str, Tensor]],
    output: Pick,
    chunk_size: int | Literal["auto"],
    generator: torch.Generator | None,
) -> list[TangentKernel]:
    """Kernels before and after, with the same sketch of the outputs."""
    beginning = None if generator is None else generator.get_state()
    kernels = []
    for state in states:
        if generator is not None and beginning is not None:
            generator.set_state(beginning)
        kernels.append(
            tangent_kernel(model, sample, state=state, output=output, chunk_size=chunk_size, generator=generator)
        )
    return kernels


def _as_data(data: Any) -> tuple[Any, Any]:
    if not (isinstance(data, tuple | list) and len(data) == 2):
        raise InvalidInput("data must be a pair (inputs, targets).")
    return data[0], data[1]


def _checked(model: nn.Module, state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    own = model.state_dict()
    for key, tensor in own.items():
        if key not in state or state[key].shape != tensor.shape:
            came = tuple(state[key].shape) if key in state else "nothing"
            raise InvalidInput(f"{name} must fit the model: {key!r} needs shape {tuple(tensor.shape)}, got {came}.")
    for key, _ in model.named_parameters():
        require_finite(state[key], f"{name}[{key!r}]")
    return {key: state[key] for key in own}


def _end(
    model: nn.Module,
    start: dict[str, Tensor],
    data: tuple[Any, Any],
    loss: Loss,
    after: State | nn.Module | None,
    train_fn: Callable[[nn.Module], object] | None,
    target_loss: float | None,
    lr: float | Literal["auto"],
    max_steps: int,
    output: Pick,
) -> dict[str, Tensor]:
    """The state after training, from whichever source was given."""
    if sum(source is not None for source in (after, train_fn, target_loss)) != 1:
        raise InvalidInput(
            "give exactly one of after=, train_fn= and target_loss=: where the trained state comes from."
        )
    if after is not None:
        return state_of(after)
    trained = copy.deepcopy(model)
    trained.load_state_dict(start)
    if train_fn is not None:
        train_fn(trained)
        return state_of(trained)
    assert target_loss is not None
    run = train_to_loss(trained, data, target_loss, loss=loss, lr=lr, max_steps=max_steps, output=output)
    if run.outcome is not Outcome.CONVERGED:
        raise InvalidInput(
            f"target_loss {target_loss} was not reached ({run.outcome.label}): loss {run.loss:.4g} after {run.steps} "
            "steps. Raise max_steps or ask for a larger loss."
        )
    return run.state


def _alignment(model: nn.Module, state: State, inputs: Any, targets: Any, kernel: TangentKernel, output: Pick) -> float:
    with torch.no_grad(), evaluation_mode(model):
        shown = output(call_with(model, state, inputs))
    try:
        vectors = target_vectors(targets, shown)
    except InvalidInput:
        return float("nan")  # a loss of the user's own may take targets that are no vectors
    return label_alignment(kernel.kernel, vectors.flatten(1))
