"""Does training keep the balance of this model? One backward pass answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result
from separatrix.core.wording import folded

from ..losses import Loss, loss_function
from ..model_call import Pick, call_with, prediction
from .optimiser_law import OptimiserLaw, optimiser_law
from .pairs.laws import HOLDS_BELOW, Law, LayerPair, conserved_form, second_part
from .pairs.search import Pairs, SkippedLayer, find_pairs
from .profile import not_trained, parameters_of


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PairConservation(Result):
    """What one backward pass says of one pair.

    Attributes:
        name: first and second layer.
        law: the law expected for it.
        residual: rate of the conserved quantity along the gradient, relative to the second layer's share of it.
        holds: whether the residual is below the tolerance.
        predicted_drift: norm of the change that the next gradient step will make, ``lr^2`` times the form of the
            gradients; NaN without ``lr``.
        measured_drift: norm of the change that the step really makes (law and first-order rate included).
        drift_error: norm of the difference of the two changes, relative to the conserved quantity.
    """

    name: str
    law: Law
    residual: float
    holds: bool
    predicted_drift: float
    measured_drift: float
    drift_error: float
    note: str


@final
@dataclasses.dataclass(frozen=True, repr=False)
class ConservationCheck(Result):
    """The check of every pair, the loss it was made at, and what the optimiser keeps."""

    loss: float
    pairs: tuple[PairConservation, ...]
    skipped: tuple[SkippedLayer, ...]
    optimiser: OptimiserLaw

    def __getitem__(self, name: str) -> PairConservation:
        for pair in self.pairs:
            if pair.name == name:
                return pair
        raise KeyError(name)

    def __repr__(self) -> str:
        width = max([len(pair.name) for pair in self.pairs] + [4])
        lines = [f"ConservationCheck (loss {self.loss:.4g})", f"  {'pair':<{width}}  {'residual':>9}  holds  law"]
        for pair in self.pairs:
            note = f" ({pair.note})" if pair.note else ""
            holds = "yes" if pair.holds else "no"
            lines.append(f"  {pair.name:<{width}}  {pair.residual:>9.2g}  {holds:<5}  {pair.law.label}{note}")
        lines += [f"  left out: {layer.layer}: {layer.reason}" for layer in self.skipped]
        law = self.optimiser
        return folded("\n".join([*lines, f"  under {law.name}: {law.keeps.label}; {law.sentence}"]))


def conservation_check(
    model: nn.Module,
    loss: Loss,
    data: Any,
    pairs: Pairs = "auto",
    *,
    lr: float | None = None,
    optimiser: str | torch.optim.Optimizer = "gd",
    output: Pick = prediction,
    example_inputs: Any = None,
    rotary: str = "auto",
    tol: float = HOLDS_BELOW,
) -> ConservationCheck:
    r"""Check the conservation law of every layer pair by one backward pass.

    Along gradient flow :math:`\dot D = -2\,[p\,\mathrm{sym}(G_B B^\top) - \mathrm{sym}(G_A A^\top)]`. The residual is
    the norm of that bracket (restricted to the part that the law keeps) over the norm of its first term. A step of
    gradient descent changes D by exactly :math:`\eta^2 (p\,G_B G_B^\top - G_A G_A^\top)` when the law holds.

    Args:
        model: any model; it runs in the mode it is in (the laws of batch normalisation need training mode), and
            neither its parameters nor its buffers change.
        loss: ``"mse"``, ``"cross_entropy"`` or a function of prediction and target that returns a scalar.
        data: inputs and targets.
        pairs: as in ``balance_profile``.
        lr: a learning rate, to predict and measure the drift of one step of gradient descent.
        optimiser: as in ``balance_profile``; parameters that an optimiser of torch does not train stand still.
        output: takes the model's output and returns the prediction.
        example_inputs: as in ``balance_profile``.
        rotary: as in ``balance_profile``.
        tol: relative rate below which a law is said to hold.

    Returns:
        Per pair the residual and, with ``lr``, the drift of one step as predicted and as measured.

    Raises:
        InvalidInput: a loss that is not a finite scalar, no pairs at all, bad options.

    Cost: one forward and one backward pass.
    """
    if lr is not None:
        require_positive(lr, "lr")
    search = find_pairs(model, pairs, example_inputs=example_inputs, rotary=rotary)
    if not search.pairs:
        reasons = "; ".join(f"{layer.layer}: {layer.reason}" for layer in search.skipped) or "it has no layers"
        raise InvalidInput(f"no layer pair was found in the model ({reasons}). Name pairs explicitly with pairs=.")
    value, gradients = _gradients(model, loss_function(loss), data, output)
    tensors = parameters_of(model, search.pairs)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    still = {name: "is frozen" if name in frozen else "is not trained" for name in not_trained(model, optimiser)}
    gradients = {
        name: torch.zeros_like(value) if name in still or name not in gradients else gradients[name].to(torch.float64)
        for name, value in tensors.items()
    }
    checks = tuple(_check(pair, tensors, gradients, lr, tol, still) for pair in search.pairs)
    return ConservationCheck(value, checks, search.skipped, optimiser_law(optimiser))


def _gradients(
    model: nn.Module, loss: Callable[[Tensor, Any], Tensor], data: Any, output: Pick
) -> tuple[float, dict[str, Tensor]]:
    if not (isinstance(data, tuple | list) and len(data) == 2):
        raise InvalidInput("data must be a pair (inputs, targets).")
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    with torch.enable_grad():
        value = loss(output(call_with(model, buffers, data[0])), data[1])
        if value.ndim != 0 or not math.isfinite(float(value.detach())):
            raise InvalidInput(f"loss must be one finite number; got shape {tuple(value.shape)}, {value.detach()}.")
        found = torch.autograd.grad(value, list(named.values()), allow_unused=True)
    gradients = {name: gradient for name, gradient in zip(named, found, strict=True) if gradient is not None}
    return float(value.detach()), gradients


def _check(
    pair: LayerPair,
    tensors: dict[str, Tensor],
    gradients: dict[str, Tensor],
    lr: float | None,
    tol: float,
    still: dict[str, str],
) -> PairConservation:
    rate = conserved_form(pair, gradients, tensors).norm()
    residual = float(rate / _scale(pair, tensors, gradients))
    predicted = measured = error = float("nan")
    if lr is not None:
        before = conserved_form(pair, tensors, tensors)
        stepped = {name: tensors[name] - lr * gradients[name] for name in tensors}
        change = conserved_form(pair, stepped, stepped) - before
        promised = lr**2 * conserved_form(pair, gradients, gradients)
        predicted, measured = float(promised.norm()), float(change.norm())
        error = float((change - promised).norm() / before.norm().clamp_min(torch.finfo(before.dtype).tiny))
    fixed = [f"{name} {still[name]}" for name in pair.parameters if name in still]
    note = fixed[0] if fixed else pair.reason or pair.condition
    return PairConservation(pair.name, pair.law, residual, residual < tol, predicted, measured, error, note)


def _scale(pair: LayerPair, tensors: dict[str, Tensor], gradients: dict[str, Tensor]) -> Tensor:
    """The second layer's share of the rate; for the law of one layer the product of norms, since it has no partner."""
    if pair.first is None:
        scale = pair.second.read(gradients).norm() * pair.second.read(tensors).norm()
    else:
        scale = second_part(pair, gradients, tensors).norm()
    return scale.clamp_min(torch.finfo(scale.dtype).tiny)
