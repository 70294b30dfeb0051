from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import Law, balance_profile, optimiser_law


def test_the_balance_of_a_linear_pair_is_the_trace_by_hand() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4)).double()
    w1, b1, w2 = model[0].weight, model[0].bias, model[1].weight
    by_hand = (w2.mT @ w2 - w1 @ w1.mT - torch.outer(b1, b1)).detach()
    pair = balance_profile(model)["0 -> 1"]
    assert torch.allclose(pair.quantity, by_hand, atol=1e-14)
    assert pair.balance == pytest.approx(float(torch.trace(by_hand)) / 2, abs=1e-14)
    values = torch.linalg.eigvalsh(by_hand)
    assert pair.spread == pytest.approx(float(values.std(correction=0)), abs=1e-14)
    assert torch.allclose(pair.quantiles[[0, -1]], values[[0, -1]])


def test_the_profile_prints_every_pair_and_every_layer_left_out() -> None:
    text = repr(balance_profile(nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2), nn.LSTM(2, 2))))
    assert "0 -> 2" in text
    assert "gelu is not homogeneous" in text
    assert "left out: 3: recurrent" in text


def test_gaussian_weights_are_balanced_entrywise_but_not_as_a_matrix(generator: torch.Generator) -> None:
    model = nn.Sequential(nn.Linear(200, 200, bias=False), nn.Linear(200, 200, bias=False)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 200**-0.5, generator=generator)
    pair = balance_profile(model).pairs[0]
    entrywise = (pair.quantity - pair.balance * torch.eye(200)).abs().max()
    assert float(entrywise) < 0.7  # standard deviation 0.1 off the diagonal: 6 of them over 20000 entries
    assert pair.spread == pytest.approx(2**0.5, rel=0.05)  # whatever the width
    assert pair.balance_residual > 0.1


def test_a_balanced_pair_has_no_residual() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)).double()
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(3))
        model[1].weight.copy_(2 * torch.eye(3))
    pair = balance_profile(model).pairs[0]
    assert (pair.balance, pair.spread, pair.balance_residual) == (3.0, 0.0, 0.0)


def test_rows_and_frame_hold_one_line_per_pair() -> None:
    frame = balance_profile(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))).to_frame()
    assert list(frame["pair"]) == ["0 -> 2"]
    assert list(frame["law"]) == ["diagonal"]


def test_weights_that_are_not_finite_are_refused_by_name() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        model[2].weight[0, 1] = torch.nan
    with pytest.raises(InvalidInput, match=r"2\.weight must be finite"):
        balance_profile(model)


@pytest.mark.parametrize(
    ("optimiser", "label"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1), "kept up to lr"),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "first order"),
        (lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1), "decays"),
        (lambda p: torch.optim.AdamW(p, lr=0.1), "not kept"),
    ],
)
def test_the_optimiser_decides_what_training_keeps(optimiser: object, label: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    built = optimiser(model.parameters())  # type: ignore[operator]
    profile = balance_profile(model, optimiser=built)
    assert label in profile.optimiser.keeps.label
    assert type(built).__name__ in repr(profile)


def test_an_unknown_optimiser_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'adam'"):
        optimiser_law("adm")


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()


def drift_of_training(model: nn.Sequential, optimiser: torch.optim.Optimizer, n_steps: int) -> float:
    """How far the diagonal of D moves, relative to itself."""
    before = balance_profile(model).pairs[0].quantity
    inputs = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for _ in range(n_steps):
        optimiser.zero_grad()
        model(inputs).square().sum().backward()
        optimiser.step()
    return float((balance_profile(model).pairs[0].quantity - before).norm() / before.norm())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("still", ["0.weight", "0.bias", "2.weight"])
@pytest.mark.parametrize("how", ["frozen", "not in the optimiser", "no rate"])
def test_a_pair_of_which_a_part_is_not_trained_keeps_nothing(still: str, how: str) -> None:
    torch.manual_seed(0)
    model = two_layers()
    parameters = dict(model.named_parameters())
    others = [parameter for name, parameter in parameters.items() if name != still]
    groups = [{"params": others}] + ([{"params": [parameters[still]], "lr": 0.0}] if how == "no rate" else [])
    optimiser = torch.optim.SGD(groups, lr=1e-4)
    parameters[still].requires_grad_(how != "frozen")
    pair = balance_profile(model, optimiser=optimiser).pairs[0]
    assert drift_of_training(model, optimiser, 200) > 1e-3  # all parts trained: 1e-5
    assert pair.law is Law.NOTHING
    assert pair.note == f"{still} is not trained, so what the others lose it does not gain"


def test_a_pair_that_is_trained_or_frozen_as_a_whole_has_its_law() -> None:
    torch.manual_seed(0)
    model = two_layers()
    assert drift_of_training(model, torch.optim.SGD(model.parameters(), lr=1e-4), 200) < 1e-4
    elsewhere = torch.optim.SGD(two_layers().parameters(), lr=0.1)  # an optimiser of another copy says nothing of this
    for optimiser in ("gd", torch.optim.SGD(model.parameters(), lr=0.1), elsewhere):
        assert balance_profile(model, optimiser=optimiser).pairs[0].law is Law.DIAGONAL
    model[2].bias.requires_grad_(False)  # in no pair
    assert balance_profile(model).pairs[0].law is Law.DIAGONAL
    assert balance_profile(model.requires_grad_(False)).pairs[0].law is Law.DIAGONAL
