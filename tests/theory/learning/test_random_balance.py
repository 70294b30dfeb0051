from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.matrices import balance_matrix
from separatrix.theory import glorot_limits, layer_variances, random_balance, wide_balance

SIZES = (10, 14, 6)


@checks(random_balance, by="sampled layers")
@pytest.mark.parametrize(
    ("scheme", "gains"), [("lecun", (1.0, 1.0)), ("he", (1.0, 1.0)), ("glorot", (1.0, 1.0)), ("scaled", (0.7, 1.5))]
)
def test_moments_match_sampled_layers(scheme: str, gains: tuple[float, float], generator: torch.Generator) -> None:
    n_in, n_hidden, n_out = SIZES
    v1, v2 = layer_variances(scheme, *SIZES, gains)
    n = 4000
    w1 = v1**0.5 * torch.randn(n, n_hidden, n_in, dtype=torch.float64, generator=generator)
    w2 = v2**0.5 * torch.randn(n, n_out, n_hidden, dtype=torch.float64, generator=generator)
    balance = balance_matrix(w1, w2)
    predicted = random_balance(scheme, *SIZES, gains)
    diagonal, off = balance.diagonal(dim1=-2, dim2=-1), balance[:, 0, 1]
    assert float(diagonal.mean()) == pytest.approx(predicted.mean, abs=5 * (predicted.variance_diagonal / n) ** 0.5)
    # 14 diagonal entries per sample; fourth moments of sums of squares make 5 percent about five standard errors
    assert float(diagonal.var()) == pytest.approx(predicted.variance_diagonal, rel=0.05)
    assert float(off.var()) == pytest.approx(predicted.variance_offdiagonal, rel=0.12)
    eigenvalues = torch.linalg.eigvalsh(balance)
    assert float((eigenvalues - predicted.mean).square().mean()) ** 0.5 == pytest.approx(
        predicted.spectral_spread, rel=0.03
    )


@checks(wide_balance, by="finite widths")
@pytest.mark.parametrize("scheme", ["lecun", "he", "glorot", "scaled"])
def test_ratios_give_what_sizes_give(scheme: str) -> None:
    gains = (0.7, 1.5) if scheme == "scaled" else (1.0, 1.0)
    mean, variance = wide_balance(scheme, 1.4, 0.6, gains)
    exact = random_balance(scheme, 10, 14, 6, gains)
    assert mean == pytest.approx(exact.mean)
    assert variance / 10 == pytest.approx(exact.variance_offdiagonal)


@checks(glorot_limits, by="the general expression at extreme ratios")
def test_glorot_limits_are_those_of_the_general_expression() -> None:
    k, tiny, huge = 3.0, 1e-10, 1e10
    ratios = {"r = k": (k, k), "r -> 0": (k, tiny), "r -> inf": (k, huge), "k -> 0": (tiny, k), "k -> inf": (huge, k)}
    for case, value in glorot_limits(k).items():
        assert wide_balance("glorot", *ratios[case])[0] == pytest.approx(value, abs=1e-8)


@checks(layer_variances, by="the initialisers of torch")
@pytest.mark.parametrize(
    ("scheme", "fill"),
    [
        ("he", lambda w, g: torch.nn.init.kaiming_normal_(w, generator=g)),
        ("glorot", lambda w, g: torch.nn.init.xavier_normal_(w, generator=g)),
        ("lecun", lambda w, g: torch.nn.init.kaiming_normal_(w, nonlinearity="linear", generator=g)),
    ],
)
def test_variances_are_those_of_known_initialisers(scheme: str, fill: Any, generator: torch.Generator) -> None:
    n_in, n_hidden, n_out = 300, 200, 500
    drawn = [fill(torch.empty(shape), generator) for shape in ((n_hidden, n_in), (n_out, n_hidden))]
    for weight, expected in zip(drawn, layer_variances(scheme, n_in, n_hidden, n_out), strict=True):
        # 60,000 and more entries: a standard error of 0.6 percent
        assert float(weight.var()) == pytest.approx(expected, rel=0.03)
    assert layer_variances("scaled", n_in, n_hidden, n_out, (2.0, 3.0)) == (4 / n_in, 9 / n_hidden)


def test_known_balance_of_the_figure() -> None:
    assert random_balance("lecun", 40, 200, 80).mean == pytest.approx(-0.6)
    assert random_balance("he", 40, 200, 80).mean == pytest.approx(-1.2)
    glorot = random_balance("glorot", 40, 200, 80)
    assert glorot.mean == pytest.approx(0.238, abs=1e-3)
    assert glorot.spectral_spread / glorot.mean == pytest.approx(4.93, abs=0.02)


def test_unknown_schemes_and_misplaced_gains_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"unknown initialisation scheme 'lecan'. Did you mean 'lecun'"):
        random_balance("lecan", 2, 2, 2)
    with pytest.raises(InvalidInput, match="gains belong to the scaled scheme only"):
        random_balance("he", 2, 2, 2, (1.0, 2.0))
    with pytest.raises(InvalidInput, match="hidden_ratio and output_ratio must be positive"):
        wide_balance("he", 0.0, 1.0)
