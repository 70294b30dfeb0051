"""What every closed form of attention takes for a number: Python's, NumPy's and torch's, one or many."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from separatrix.core import InvalidInput, SeparatrixError, ShapeError
from separatrix.theory import attention as room

attention = SimpleNamespace(**{name: inspect.unwrap(getattr(room, name)) for name in dir(room) if name[0].islower()})
"""The functions as users call them: without the checks of types that tests make."""

M, V = numpy.diag([0.9, 0.2, -1.1]), numpy.diag([3.0, 1.0, -4.0])
BETAS = numpy.array([0.3, 0.7, 1.4, 2.0])
PAIR = numpy.eye(3)[:2]

OF_BETA: dict[str, Callable[[Any], Any]] = {
    "stable_window": lambda beta: attention.stable_window(M, V, 0, 10, beta).half_width,
    "stable_windows": lambda beta: attention.stable_windows(M, V, 10, beta).lowest,
    "bipartite_spectrum": lambda beta: attention.bipartite_spectrum(M, V, 2, 6, 4, beta).abscissa,
    "sinkhorn_bipartite_spectrum": lambda beta: attention.sinkhorn_bipartite_spectrum(M, V, 0, 6, 4, beta).abscissa,
    "causal_spectrum": lambda beta: attention.causal_spectrum(M, V, 0, [1, 1, -1], beta).abscissa,
    "cluster_spectrum": lambda beta: attention.cluster_spectrum(M, V, PAIR, (3, 2), beta).quotient_abscissa,
    "bipartite_layer_multipliers": lambda beta: (
        attention.bipartite_layer_multipliers(M, V, 0, 6, 4, 0.1, beta).spectral_radius
    ),
    "multihead_cluster_spectrum": lambda beta: (
        attention.multihead_cluster_spectrum([M, M.T], [V, V / 2], PAIR, (3, 2), beta).quotient_abscissa
    ),
}
ONE_BETA: dict[str, Callable[[Any], Any]] = {
    "count_stable": lambda beta: attention.count_stable(M, V, 10, beta).per_eigenvector,
    "count_stable_causal": lambda beta: attention.count_stable_causal(M, V, 6, beta).per_eigenvector,
    "balanced_direction": lambda beta: attention.balanced_direction([M], [V], [1.0, 0.1, 0.0], beta).residual.tolist(),
}


@pytest.mark.parametrize("name", OF_BETA)
def test_an_array_of_betas_gives_what_each_gives_alone(name: str) -> None:
    each = torch.stack([torch.as_tensor(OF_BETA[name](float(beta))) for beta in BETAS])
    for betas in (BETAS, list(BETAS), torch.tensor(BETAS), BETAS[::-1][::-1]):
        assert torch.allclose(torch.as_tensor(OF_BETA[name](betas)).double(), each.double())


@pytest.mark.parametrize("name", [*OF_BETA, *ONE_BETA])
def test_one_beta_may_be_a_number_of_any_kind(name: str) -> None:
    function = {**OF_BETA, **ONE_BETA}[name]
    expected = function(1.5)
    for beta in (numpy.float64(1.5), numpy.float32(1.5), torch.tensor(1.5), numpy.array(1.5)):
        assert torch.allclose(torch.as_tensor(function(beta)), torch.as_tensor(expected))


@pytest.mark.parametrize("name", [*OF_BETA, *ONE_BETA])
@pytest.mark.parametrize("beta", ["1", None, 1j, float("nan"), float("inf"), -1.0, [0.5, -0.5], [[1.0], [2.0, 3.0]]])
def test_what_is_no_beta_is_refused_in_one_sentence(name: str, beta: Any) -> None:
    with pytest.raises(InvalidInput, match="beta must be"):
        {**OF_BETA, **ONE_BETA}[name](beta)


@pytest.mark.parametrize("name", ONE_BETA)
def test_where_one_beta_is_meant_an_array_is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(InvalidInput, match="beta must be one number here"):
        ONE_BETA[name](BETAS)


def test_betas_that_do_not_fit_the_batch_are_refused() -> None:
    with pytest.raises(ShapeError, match="beta must be one number, or have axes that fit"):
        attention.stable_window(numpy.stack([M] * 3), V, 0, 10, BETAS)


STRENGTHS: dict[str, Callable[[Any], Any]] = {
    "harmonic_pull": lambda c: attention.harmonic_pull(c, 3, 2),
    "softmax_weights": lambda c: attention.softmax_weights(c, 3, 2).delta_1,
    "sinkhorn_weights": lambda c: attention.sinkhorn_weights(c, 3, 2).delta_1,
    "is_stable": lambda c: attention.is_stable([3, 1, -4], 0, c, 3, 2),
    "theorem2_corrected": lambda c: attention.theorem2_corrected([3, 1, -4], 0, c, 3, 2),
    "theorem2_printed": lambda c: attention.theorem2_printed([3, 1, -4], 0, c, 3, 2),
    "sign_pattern_attention": lambda c: attention.sign_pattern_attention(c, [1, -1, 1]),
}


@pytest.mark.parametrize("name", STRENGTHS)
def test_a_strength_may_be_a_number_or_an_array_of_any_kind(name: str) -> None:
    one = STRENGTHS[name](torch.tensor(0.5, dtype=torch.float64))
    for strength in (0.5, numpy.float64(0.5), numpy.array(0.5), torch.tensor(0.5)):
        assert torch.equal(STRENGTHS[name](strength), one)
    assert STRENGTHS[name](1).shape == one.shape
    for strength in ([0.5, 1.0], numpy.array([0.5, 1.0]), numpy.array([1.0, 0.5])[::-1]):
        assert torch.equal(STRENGTHS[name](strength)[0], one)


@pytest.mark.parametrize("name", [*STRENGTHS, "causal_patterns"])
@pytest.mark.parametrize("strength", ["a", None, 1j, float("nan"), [[1.0], [2.0, 3.0]]])
def test_what_is_no_strength_is_refused_in_one_sentence(name: str, strength: Any) -> None:
    call = STRENGTHS.get(name, lambda c: attention.causal_patterns(3, 1, c, 5))
    with pytest.raises(InvalidInput, match="strength must be"):
        call(strength)


@pytest.mark.parametrize("criterion", [attention.is_stable, attention.theorem2_corrected, attention.theorem2_printed])
def test_eigenvalues_may_come_from_numpy(criterion: Any) -> None:
    expected = criterion(torch.tensor([3.0, 1.0, -4.0]), 0, 0.5, 3, 2)
    turned = numpy.linalg.eigvalsh(V)[::-1]  # a view with a negative stride
    complex_kind = turned.astype(complex)  # as numpy.linalg.eigvals of a matrix that is not symmetric
    for eigenvalues in (turned, complex_kind, [3, 1, -4], (3, 1, -4), torch.tensor([3, 1, -4])):
        assert torch.equal(criterion(eigenvalues, 0, 0.5, 3, 2), expected)
    for wrong in (numpy.array([3, 1j, 2]), "abc", None, [3.0], 3.0):
        with pytest.raises(SeparatrixError, match="eigenvalues must"):
            criterion(wrong, 0, 0.5, 3, 2)


def test_numbers_of_tokens_may_be_arrays_and_must_not_be_negative() -> None:
    many = attention.is_stable([3, 1, -4], 0, 0.9, numpy.arange(1, 10), numpy.arange(9, 0, -1))
    assert many.tolist() == [bool(attention.is_stable([3, 1, -4], 0, 0.9, n1, 10 - n1)) for n1 in range(1, 10)]
    for wrong in (-1, "3", None, float("nan")):
        for function in (attention.harmonic_pull, attention.softmax_weights, attention.sinkhorn_weights):
            with pytest.raises(InvalidInput, match="n1 must be"):
                function(0.5, wrong, 2)
        with pytest.raises(InvalidInput, match="n1 must be"):
            attention.uniform_weights(wrong, 2)
    for wrong in (numpy.array([3, 4]), torch.tensor([3, 4]), [3, 4]):
        with pytest.raises(InvalidInput, match="n1 must be a finite number"):
            attention.bipartite_spectrum(M, V, 0, wrong, 2)
        with pytest.raises(InvalidInput, match="k must be an integer"):
            attention.stable_window(M, V, wrong, 10)
    with pytest.raises(InvalidInput, match="k must be an integer"):
        attention.consensus_cycle([[1, 2], [-2, 1]], 4, 2)
