"""The balance of every layer pair of a model: how unequal the two sides are, and what training will keep of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_finite
from separatrix.core.errors import MissingExtra
from separatrix.core.result import Result

from ..model_call import Pick, prediction
from ..optimisers import learning_rate
from .certificate import certify
from .optimiser_law import OptimiserLaw, optimiser_law
from .pairs.laws import Law, LayerPair, conserved_form, mean_balance, spectrum
from .pairs.search import Pairs, SkippedLayer, find_pairs

if TYPE_CHECKING:
    import pandas

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PairBalance(Result):
    """The balance of one pair.

    Attributes:
        name: first and second layer.
        law: which part of D gradient flow keeps, found true by running the model; ``Law.UNCHECKED`` where it could not
            be run, ``Law.NOTHING`` where only a part of the pair is trained. ``pair.law`` is what the function of the
            model has, whoever is trained.
        law_residual: how far the model was from the law when it was run; NaN where there was nothing to check.
        n_hidden: hidden units of the pair.
        balance: lambda* = Tr(D) / n_h. For the laws of one normalised layer its squared norm (mean per neuron).
        spread: root mean square distance of D from lambda* I, per hidden unit.
        quantiles: minimum, quartiles and maximum of the eigenvalues of D (full law) or of its diagonal.
        balance_residual: 0 if D = lambda* I wherever the weights act, of order 1 for random weights.
        quantity: what the law keeps: the matrix D, its diagonal, traces of rotation pairs, or norms.
        note: what the law assumes, or what destroys it.
    """

    name: str
    law: Law
    law_residual: float
    n_hidden: int
    balance: float
    spread: float
    quantiles: Float[Tensor, " q"]
    balance_residual: float
    between: str
    note: str
    quantity: Tensor = dataclasses.field(repr=False)
    pair: LayerPair = dataclasses.field(repr=False)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BalanceProfile(Result):
    """All pairs of a model with their balance, the layers in no pair with the reason, and the optimiser's effect."""

    pairs: tuple[PairBalance, ...]
    skipped: tuple[SkippedLayer, ...]
    optimiser: OptimiserLaw

    def __getitem__(self, name: str) -> PairBalance:
        for pair in self.pairs:
            if pair.name == name:
                return pair
        raise KeyError(name)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary per pair."""
        return [
            {
                "pair": pair.name,
                "law": pair.law.label,
                "law residual": pair.law_residual,
                "units": pair.n_hidden,
                "balance": pair.balance,
                "spread": pair.spread,
                "lowest": float(pair.quantiles[0]),
                "median": float(pair.quantiles[2]),
                "highest": float(pair.quantiles[-1]),
                "residual": pair.balance_residual,
                "between": pair.between,
                "note": pair.note,
            }
            for pair in self.pairs
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with a row per pair."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("to_frame needs pandas: install separatrix[frames].") from error
        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        width = max([len(pair.name) for pair in self.pairs] + [4])
        pairs, left = len(self.pairs), len(self.skipped)
        counted = f"{pairs} pair{'s' * (pairs != 1)}, {left} layer{'s' * (left != 1)} in no pair"
        lines = [f"BalanceProfile ({counted})"]
        lines.append(f"  {'pair':<{width}}  {'units':>5}  {'balance':>10}  {'spread':>9}  {'residual':>8}  law")
        for pair in self.pairs:
            note = f" ({pair.note})" if pair.note else ""
            lines.append(
                f"  {pair.name:<{width}}  {pair.n_hidden:>5}  {pair.balance:>10.4g}  {pair.spread:>9.3g}  "
                f"{pair.balance_residual:>8.2g}  {pair.law.label}{note}"
            )
        lines += [f"  left out: {layer.layer}: {layer.reason}" for layer in self.skipped]
        return "\n".join([*lines, f"  under {self.optimiser.name}: {self.optimiser.keeps.label}"])


def balance_profile(
    model: nn.Module,
    pairs: Pairs = "auto",
    *,
    example_inputs: Any = None,
    rotary: str = "auto",
    optimiser: str | torch.optim.Optimizer = "gd",
    output: Pick = prediction,
) -> BalanceProfile:
    r"""The balance of every layer pair of a model and the law that governs it.

    With one row per hidden unit on each side (first layer A with its bias, second layer B),

    .. math:: D = p\,B B^\top - A A^\top, \qquad \lambda^* = \mathrm{Tr}\,D / n_h,

    where p is the degree of homogeneity of the activation (1 for linear units and ReLU). Random weights have D near a
    multiple of the identity entry by entry, but not as a matrix: ``balance_residual`` tells.

    Args:
        model: any ``torch.nn.Module``; parameters are read in float64.
        pairs: ``"auto"``, or explicit pairs, each ``(first, between, second)`` or a ``LayerPair``.
        example_inputs: a batch with which one call is watched and the laws are checked; without it the model is
            traced symbolically and run on made-up inputs, if its signature allows.
        rotary: pairing of dimensions by rotary embeddings: ``"auto"``, ``"none"``, ``"half"``, ``"interleaved"``.
        optimiser: the name of an optimiser or an optimiser of torch, for the sentence on what training keeps. Pairs
            that it trains in part only (as those with frozen parameters) have no law.
        output: takes the model's output and returns the tensor that counts; by default every floating tensor does.

    Returns:
        One ``PairBalance`` per pair, and every layer in no pair with the reason. No law is stated that the model was
        not run to check: such pairs have ``Law.UNCHECKED``, and their note says what is missing.

    Raises:
        InvalidInput: unknown names, weights that are not finite, ``example_inputs`` the model does not take.

    Source: anguita2024, Theorem 4.5.1 (the printed lambda* lacks the factor 1/n_h).

    Cost: one trace of the model, a few forward and backward passes; per pair O(n_h^2 m) for the full law (m: fan-in
    plus fan-out) and O(n_h m) otherwise.

    Example:
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> [(pair.name, pair.law.label) for pair in balance_profile(net).pairs]
        [('0 -> 2', 'diagonal')]
    """
    search = find_pairs(model, pairs, example_inputs=example_inputs, rotary=rotary)
    tensors = parameters_of(model, search.pairs)
    checked = certify(model, search.pairs, example_inputs, output=output)
    still = not_trained(model, optimiser)
    return BalanceProfile(
        tuple(_while_training(pair_balance(pair, tensors), still) for pair in checked),
        search.skipped,
        optimiser_law(optimiser),
    )


def not_trained(model: nn.Module, optimiser: str | torch.optim.Optimizer) -> frozenset[str]:
    """Parameters that stand still: frozen, without a rate, or not given to an optimiser that has others of the model.

    An optimiser that has none belongs to another copy, and only its kind counts.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    still = {name for name, parameter in named.items() if not parameter.requires_grad}
    if isinstance(optimiser, torch.optim.Optimizer):
        given = {
            id(parameter): learning_rate(group) for group in optimiser.param_groups for parameter in group["params"]
        }
        if any(id(parameter) in given for parameter in named.values()):
            still |= {name for name, parameter in named.items() if given.get(id(parameter), 0.0) == 0}
    return frozenset(still)


def _while_training(found: PairBalance, still: frozenset[str]) -> PairBalance:
    """A pair as training treats it: its law needs both sides to move, or neither."""
    fixed = [name for name in found.pair.parameters if name in still]
    if found.law is Law.NOTHING or not fixed or len(fixed) == len(found.pair.parameters):
        return found
    note = f"{fixed[0]} is not trained, so what the others lose it does not gain"
    return dataclasses.replace(found, law=Law.NOTHING, note=note)


def parameters_of(model: nn.Module, pairs: tuple[LayerPair, ...]) -> dict[str, Tensor]:
    """Copies in float64 of the parameters that pairs are made of, checked to be finite."""
    named = dict(model.named_parameters(remove_duplicate=False))
    wanted = dict.fromkeys(name for pair in pairs for name in pair.parameters)
    tensors = {name: _value(model, named, name).detach().to(torch.float64, copy=True) for name in wanted}
    for name, tensor in tensors.items():
        require_finite(tensor, name)
    return tensors


def _value(model: nn.Module, named: dict[str, nn.Parameter], name: str) -> Tensor:
    if name in named:
        return named[name]
    owner, _, leaf = name.rpartition(".")  # a parametrised weight is computed, not stored
    value = getattr(model.get_submodule(owner), leaf)
    assert isinstance(value, Tensor)
    return value


def pair_balance(pair: LayerPair, tensors: dict[str, Tensor]) -> PairBalance:
    """The balance of one pair, from its parameters."""
    quantity = conserved_form(pair, tensors, tensors)
    balance = mean_balance(pair, quantity)
    values = spectrum(pair, quantity)
    spread = float((values - balance).square().mean().sqrt()) if pair.law is not Law.NORM else 0.0
    return PairBalance(
        name=pair.name,
        law=pair.checked_law,
        law_residual=pair.residual,
        n_hidden=pair.n_hidden,
        balance=balance,
        spread=spread,
        quantiles=torch.quantile(values, torch.tensor(QUANTILES, dtype=values.dtype)),
        balance_residual=_balance_residual(pair, tensors, quantity, balance),
        between=pair.between,
        note=_note(pair),
        quantity=quantity,
        pair=pair,
    )


def _note(pair: LayerPair) -> str:
    if pair.checked_law is Law.UNCHECKED and pair.unchecked:
        return f"its operations suggest the {pair.law.label} law; {pair.unchecked}"
    return pair.reason or pair.condition


def _balance_residual(pair: LayerPair, tensors: dict[str, Tensor], quantity: Tensor, balance: float) -> float:
    """|Q (D - lambda* I)| / (|Q| max(|lambda*|, |D|)) with Q the weights of both layers, one column per unit."""
    if pair.first is None:
        return float("nan")
    stacked = torch.cat([pair.first.read(tensors), pair.second.read(tensors)], dim=1)  # (h, m)
    if pair.law is Law.FULL:
        gap = quantity - balance * torch.eye(pair.n_hidden, dtype=quantity.dtype)
        moved, size = gap @ stacked, torch.linalg.matrix_norm(quantity, ord=2)
    else:
        per_unit = quantity
        if pair.law is Law.ROTATION_PAIRS:
            per_unit = (
                torch.cat([quantity, quantity]) / 2 if pair.rotation == "half" else quantity.repeat_interleave(2) / 2
            )
        moved, size = (per_unit - balance).unsqueeze(-1) * stacked, per_unit.abs().max()
    scale = stacked.norm() * max(abs(balance), float(size))
    return float(moved.norm() / scale) if float(scale) > 0 else 0.0
