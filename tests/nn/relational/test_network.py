"""Networks trained side by side are the networks trained alone, to rounding; and what a training makes of a rounding.

All in double precision: where an exact gradient is zero (of a bias that a normalisation or a softmax takes away again,
of an encoder behind a saturated softmax), what is left is rounding, which Adam makes larger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.nn import SideBySide, make_network

T, Y, STEPS, BATCH = 4, 3, 20, 6
IMAGES = torch.rand(2, 5, 3, 8, 8, generator=seeded(5)).double()
INDEX = torch.randint(5, (STEPS, 2, BATCH, T), generator=seeded(6))
LABEL = torch.randint(Y, (STEPS, 2, BATCH), generator=seeded(7))


def network(name: str, seed: int, normalise: Any) -> nn.Module:
    return make_network(name, T, Y, image_size=8, normalise=normalise, generator=seeded(seed)).double()


def loss_alone(model: nn.Module, k: int, step: int) -> Tensor:
    return nn.functional.cross_entropy(model(IMAGES[k], INDEX[step, k]), LABEL[step, k])


def loss_together(model: nn.Module, step: int) -> Tensor:
    each = nn.functional.cross_entropy(
        model(IMAGES, INDEX[step]).flatten(0, 1), LABEL[step].flatten(), reduction="none"
    )
    return each.reshape(2, BATCH).mean(1).sum()


def trained(model: nn.Module, loss: Callable[[int], Tensor]) -> nn.Module:
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-4)
    for step in range(STEPS):
        optimiser.zero_grad()
        loss(step).backward()
        optimiser.step()
    return model


def apart(both: dict[str, Tensor], alone: nn.Module) -> float:
    return max(float((both[name] - p.detach()).abs().max()) for name, p in alone.named_parameters())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "normalise"),
    [
        ("CoRelNet", "tcn"),
        ("CoRelNet-T", "tcn"),
        ("Transformer", "l2"),
        ("Transformer", "none"),
        ("PrediNet", "l2"),
        ("Abstractor", "l2"),
    ],
)
def test_seeds_side_by_side_train_as_one_by_one(name: str, normalise: str) -> None:
    ones = [network(name, seed, normalise) for seed in (1, 2)]
    both = SideBySide(ones)
    trained(both, lambda step: loss_together(both, step))
    for k, one in enumerate(ones):
        trained(one, lambda step, one=one, k=k: loss_alone(one, k, step))  # type: ignore[misc]
        assert apart(both.member(k), one) < 1e-8


@pytest.mark.parametrize("name", ["CoRelNet", "CoRelNet-T", "Transformer", "PrediNet", "Abstractor"])
def test_gradients_side_by_side_are_those_of_each_alone(name: str) -> None:
    ones = [network(name, seed, "tcn") for seed in (1, 2)]
    both = SideBySide(ones)
    loss_together(both, 0).backward()
    together = {name: both.stacked[key].grad for key, name in both._names.items()}
    for k, one in enumerate(ones):
        loss_alone(one, k, 0).backward()
        for key, parameter in one.named_parameters():
            found = together[key]
            assert found is not None
            assert parameter.grad is not None
            assert float((found[k] - parameter.grad).abs().max()) < 1e-13


def off_by_a_rounding(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 2.0**-52 * torch.randint(-1, 2, parameter.shape, generator=seeded(9)).double())
    return model


@pytest.mark.slow
def test_a_transformer_behind_the_normalisation_over_positions_magnifies_a_rounding_alone_as_well() -> None:
    """Why it is not among those above: trained alone, it leaves itself as far behind as the two side by side do.

    The normalisation divides by what a feature varies over the positions. Where that is next to nothing, an ulp becomes
    a step of the encoder; from there it grows tenfold a step. Without it an ulp stays an ulp.
    """
    for normalise, low, high in (("tcn", 1e-6, 1.0), ("l2", 0.0, 1e-10)):
        found = [network("Transformer", 2, normalise), off_by_a_rounding(network("Transformer", 2, normalise))]
        for one in found:
            trained(one, lambda step, one=one: loss_alone(one, 1, step))  # type: ignore[misc]
        away = apart({key: p.detach() for key, p in found[0].named_parameters()}, found[1])
        assert low <= away < high
