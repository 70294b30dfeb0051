"""What training did to each layer and each layer pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn

from ..balance.certificate import certify
from ..balance.pairs.laws import LayerPair
from ..balance.pairs.search import find_pairs
from ..balance.profile import pair_balance, parameters_of
from ..model_call import Pick
from ..movement import relative_movement
from .kernel import TangentKernel, kernel_distance, relative_change
from .similarity import linear_cka

State: TypeAlias = Mapping[str, Tensor]
"""Parameters and buffers by name, as ``state_dict`` gives them."""


@final
@dataclasses.dataclass(frozen=True)
class LayerRegime:
    """What training did to one module; NaN where a measure does not apply to it.

    Attributes:
        layer: the module's name.
        movement: |change| / |start| of its parameters.
        kernel_distance: 1 - cosine of its share of the tangent kernel before and after.
        kernel_change: |change| / |start| of that share.
        feature_change: 1 - linear CKA of its output before and after (centred).
        feature_change_unbiased: the same with the unbiased estimator.
    """

    layer: str
    movement: float
    kernel_distance: float
    kernel_change: float
    feature_change: float
    feature_change_unbiased: float


@final
@dataclasses.dataclass(frozen=True)
class PairDrift:
    """The balance of a layer pair before and after training."""

    pair: str
    law: str
    before: float
    after: float


def layer_table(
    model: nn.Module,
    start: dict[str, Tensor],
    end: dict[str, Tensor],
    kernels: list[TangentKernel],
    features: list[dict[str, Tensor]],
) -> tuple[LayerRegime, ...]:
    """Movement, kernel share and features of every module that has parameters or hidden outputs."""
    owned: dict[str, list[str]] = {}
    for name in kernels[0].by_parameter:
        owned.setdefault(name.rpartition(".")[0], []).append(name)
    rows = []
    for layer in [name for name, _ in model.named_modules() if name in owned or name in features[0]]:
        names, nan = owned.get(layer, []), float("nan")
        distance = change = moved = cka = unbiased = nan
        if names:
            old, new = (torch.stack([kernel.by_parameter[name] for name in names]).sum(0) for kernel in kernels)
            distance, change = float(kernel_distance(old, new)), float(relative_change(old, new))
            moved = relative_movement(start, end, names)
        if layer in features[0]:
            x, y = features[0][layer], features[1][layer]
            cka, unbiased = 1 - float(linear_cka(x, y)), 1 - float(linear_cka(x, y, unbiased=True))
        rows.append(LayerRegime(layer, moved, distance, change, cka, unbiased))
    return tuple(rows)


def balance_drift(model: nn.Module, start: State, end: State, inputs: Any, output: Pick) -> tuple[PairDrift, ...]:
    """The balance of every pair that can be found without example inputs, at both ends of training.

    The law is stated only if running the model on ``inputs`` has shown it.
    """
    search = find_pairs(model)
    search = dataclasses.replace(search, pairs=certify(model, search.pairs, inputs, output=output))
    own = parameters_of(model, search.pairs)
    stored: tuple[LayerPair, ...] = tuple(
        pair for pair in search.pairs if all(name in start for name in pair.parameters)
    )
    before, after = ({name: state[name].double() for name in own if name in state} for state in (start, end))
    return tuple(
        PairDrift(
            pair.name, pair.checked_law.label, pair_balance(pair, before).balance, pair_balance(pair, after).balance
        )
        for pair in stored
    )
