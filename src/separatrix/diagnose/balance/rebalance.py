"""Set the balance of a model's layer pairs without changing its function.

Which pairs move, in what order, and the guard around the model are here; how one pair moves is in ``exact_moves``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput, NotConverged, OutsideTheory, unknown_name
from separatrix.core.names import choose
from separatrix.core.result import Result

from ..model_call import Pick, prediction
from ..movement import relative_movement
from .certificate import certify
from .exact_moves import rescale_units, rotate_pair
from .guarded_write import write_guarded
from .pairs.laws import BALANCED_LAWS, Law, LayerPair, conserved_form, rotation_blocks
from .pairs.search import Pairs, SkippedLayer, find_pairs
from .probes import probe_inputs
from .profile import pair_balance, parameters_of

_TOLERANCE = 1e-11
"""Largest relative distance from the balance asked for at which the sweeps stop."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BalanceReport(Result):
    """What ``set_balance`` did.

    Attributes:
        balance: the balance of each pair that was set, before and after.
        movement: relative movement of each changed parameter.
        total_movement: relative movement of all changed parameters together.
        dead_units: hidden units without incoming or outgoing weight, which no factor can balance; left as they are.
        left: pairs and layers that were left as they are, with the reason.
        sweeps: passes over all pairs (more than one where pairs share a layer).
        residuals: how far the model was from the symmetry of each pair when it was run: the certificate of the change.
        output_change: largest change of the outputs over all probe inputs, relative to the largest output.
    """

    balance: dict[str, tuple[float, float]]
    movement: dict[str, float]
    total_movement: float
    dead_units: dict[str, tuple[int, ...]]
    left: tuple[SkippedLayer, ...]
    sweeps: int
    residuals: dict[str, float]
    output_change: float


def set_balance(
    model: nn.Module,
    balance: float | Mapping[str, float],
    pairs: Pairs = "auto",
    *,
    example_inputs: Any = None,
    rotary: str = "auto",
    on_refusal: Literal["raise", "leave"] = "raise",
    output: Pick = prediction,
    max_sweeps: int = 10_000,
) -> BalanceReport:
    """Give layer pairs a balance, in place, without changing the function the model computes.

    Homogeneous units (ReLU, LeakyReLU, gates of SwiGLU, convolution channels, gains of a norm) are rescaled one by
    one; linear pairs and attention heads (values and output, queries and keys, biases included) are rotated and
    stretched, as little as possible. All or nothing: if anything is refused, the model is unchanged.

    Nothing is written that was not certified. The model is run (in evaluation mode, its buffers and random streams left
    alone) and must have the symmetry of every pair that is moved, whatever its layers are called; then its outputs
    before and after must agree up to rounding. The certificate reaches as far as the probe inputs do: what a model does
    only on inputs of another kind, no run on these can show.

    Args:
        model: any ``torch.nn.Module``; its parameters are changed in place, in their own dtype.
        balance: lambda for all pairs, or by name of the pair (as ``balance_profile`` prints it); pairs not named stay.
        pairs: ``"auto"`` or explicit pairs, as in ``balance_profile``.
        example_inputs: a batch that the model takes, on which it is run. Without it inputs are made up if ``forward``
            takes exactly one argument; otherwise the change is refused.
        rotary: as in ``balance_profile``.
        on_refusal: ``"raise"``, or ``"leave"`` to leave pairs that cannot be changed and list them in the report.
        output: takes the model's output and returns the tensor that must not change; by default every floating tensor
            must not.
        max_sweeps: limit of passes where pairs share a layer.

    Returns:
        A report with the balance before and after, the movement of every weight, and dead units.

    Raises:
        InvalidInput: a pair whose function would change (GELU, tanh, shared weights, normalised queries ...), a model
            that could not be run to find out, unknown names, nothing to do.
        OutsideTheory: a balance that does not exist for the sizes of a linear pair.
        NotConverged: pairs that share layers did not reach the balance within ``max_sweeps``.

    Cost: O(n_h m) per homogeneous pair, O(n_h^2 m) per linear pair, times the number of sweeps; a few forward and
    backward passes.

    Example:
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> report = set_balance(net, 0.5)
        >>> round(report.balance["0 -> 2"][1], 5)
        0.5
    """
    choose("on_refusal", on_refusal, ("raise", "leave"))
    search = find_pairs(model, pairs, example_inputs=example_inputs, rotary=rotary)
    targets = _targets(search.pairs, balance)
    asked = [pair for pair in search.pairs if pair.name in targets]
    chosen, left = _choose(certify(model, asked, example_inputs, output=output), on_refusal)
    old = parameters_of(model, chosen)
    new = {name: tensor.clone() for name, tensor in old.items()}
    dead, sweeps = _sweep(chosen, targets, new, max_sweeps)
    change = write_guarded(model, new, probe_inputs(model, example_inputs), output, sweeps)
    return BalanceReport(
        balance={pair.name: (pair_balance(pair, old).balance, pair_balance(pair, new).balance) for pair in chosen},
        movement={name: relative_movement(old, new, [name]) for name in old},
        total_movement=relative_movement(old, new, old),
        dead_units={name: units for name, units in dead.items() if units},
        left=left + search.skipped,
        sweeps=sweeps,
        residuals={pair.name: pair.residual for pair in chosen},
        output_change=change,
    )


def _targets(pairs: tuple[LayerPair, ...], balance: float | Mapping[str, float]) -> dict[str, float]:
    names = [pair.name for pair in pairs]
    given = dict(balance) if isinstance(balance, Mapping) else dict.fromkeys(names, balance)
    for name, value in given.items():
        if name not in names:
            raise unknown_name("layer pair", name, names)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidInput(f"balance must be a finite number; got {value!r} for {name!r}.")
    return {name: float(value) for name, value in given.items()}


def _choose(pairs: tuple[LayerPair, ...], on_refusal: str) -> tuple[tuple[LayerPair, ...], tuple[SkippedLayer, ...]]:
    """Pairs that will be set, and those that will be left; a refusal is raised before anything is changed."""
    chosen, left = [], []
    for pair in pairs:
        law = pair.checked_law
        if law in BALANCED_LAWS:
            chosen.append(pair)
            continue
        reason = pair.reason or pair.unchecked or f"its law is the {pair.law.label}, which has no balance to set"
        if on_refusal == "raise" and law in (Law.NOTHING, Law.UNCHECKED):
            raise InvalidInput(_refusal(pair, reason))
        left.append(SkippedLayer(pair.name, reason))
    if not chosen:
        reasons = "; ".join(f"{layer.layer}: {layer.reason}" for layer in left) or "none was found"
        raise InvalidInput(f"there is no layer pair whose balance can be set ({reasons}).")
    return tuple(chosen), tuple(left)


def _refusal(pair: LayerPair, reason: str) -> str:
    if pair.checked_law is Law.UNCHECKED:
        return f"the balance of {pair.name!r} was not set, since nothing is written unchecked: {reason}."
    return (
        f"the balance of {pair.name!r} cannot be set without changing the function: {reason}. The model is "
        "unchanged. Pass on_refusal='leave' to set the other pairs, or name them with pairs=."
    )


def _sweep(
    pairs: tuple[LayerPair, ...], targets: dict[str, float], tensors: dict[str, Tensor], max_sweeps: int
) -> tuple[dict[str, tuple[int, ...]], int]:
    """Set pair after pair, in place on copies, until all have their balance (pairs that share a layer disturb it)."""
    error = math.inf
    for sweep in range(1, max_sweeps + 1):
        dead = {pair.name: _set_pair(pair, targets[pair.name], tensors) for pair in pairs}
        error = max(_error(pair, targets[pair.name], tensors, dead[pair.name]) for pair in pairs)
        if error <= _TOLERANCE:
            return dead, sweep
    raise NotConverged(
        f"the balance of pairs that share layers was not reached: relative distance {error:.1e} after {max_sweeps} "
        "sweeps. The model is unchanged. Try a smaller |balance| or raise max_sweeps."
    )


def _set_pair(pair: LayerPair, target: float, tensors: dict[str, Tensor]) -> tuple[int, ...]:
    """Set one pair on copies of the parameters; returns the dead units."""
    assert pair.first is not None
    first, second = pair.first.read(tensors), pair.second.read(tensors)
    if pair.law is Law.FULL:
        try:
            first, second = rotate_pair(first, second, target)
        except OutsideTheory as error:
            raise OutsideTheory(f"pair {pair.name!r}: {error} The model is unchanged.") from None
        dead: tuple[int, ...] = ()
    else:
        first, second, is_dead = rescale_units(first, second, target, pair.degree, _unit_of(pair))
        dead = tuple(int(unit) for unit in is_dead.nonzero()[:, 0])
    pair.first.write_(tensors, first)
    pair.second.write_(tensors, second)
    return dead


def _unit_of(pair: LayerPair) -> Tensor:
    """The number of the factor that each row gets: its own, or one for rows that are rotated together."""
    rows = torch.arange(pair.n_hidden)
    if pair.law is not Law.ROTATION_PAIRS:
        return rows
    blocks = rotation_blocks(rows.to(torch.float64), pair.rotation).to(torch.int64)
    unit_of = torch.empty_like(rows)
    unit_of[blocks] = torch.arange(blocks.shape[0]).unsqueeze(-1).expand_as(blocks)
    return unit_of


def _error(pair: LayerPair, target: float, tensors: dict[str, Tensor], dead: tuple[int, ...]) -> float:
    """Largest entry of D - target I over the scale of the weights, dead units left out."""
    assert pair.first is not None
    quantity = conserved_form(pair, tensors, tensors)
    scale = max(float(side.read(tensors).square().sum(-1).max()) for side in (pair.first, pair.second))
    if pair.law is Law.FULL:
        gap = quantity - target * torch.eye(pair.n_hidden, dtype=quantity.dtype)
    else:
        gap = quantity - (2 * target if pair.law is Law.ROTATION_PAIRS else target)
        gap = gap[~torch.isin(_unit_of(pair).unique(), _unit_of(pair)[list(dead)])]
    return float(gap.abs().max()) / max(scale, abs(target), 1e-300) if gap.numel() else 0.0
