from __future__ import annotations

import itertools

import numpy
import pytest
import torch

import reference_attention as ref
from helpers import checks
from separatrix.core import InvalidInput
from separatrix.theory.attention import (
    causal_patterns,
    causal_spectrum,
    count_stable_causal,
)


def causal_mask(n: int) -> torch.Tensor:
    return torch.ones(n, n).tril().bool()


@checks(causal_spectrum, by="autodiff tangent Jacobian under a causal mask")
def test_causal_spectrum_is_that_of_the_dense_jacobian(generator: torch.Generator) -> None:
    for index in range(20):
        value = ref.random_value(3, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(3, 3, dtype=torch.float64, generator=generator)
        k = ref.real_eigenvectors(value)[0]
        signs = torch.randint(0, 2, (5,), generator=generator).to(torch.float64) * 2 - 1
        flow = ref.velocity_of(ref.softmax_attention(coupling, 1.3, mask=causal_mask(5)), value)
        dense = ref.tangent_spectrum(flow, ref.pattern(value, k, signs))
        # triangular blocks with repeated diagonal entries are defective: square root of rounding in the dense route
        assert ref.spectral_distance(causal_spectrum(coupling, value, k, signs, 1.3).expand(), dense) < 1e-5


@checks(count_stable_causal, causal_patterns, by="spectra of all sign patterns, eight tokens")
def test_causal_counts_are_those_of_brute_force(generator: torch.Generator) -> None:
    totals = []
    for index in range(6):
        value = ref.random_value(3, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(3, 3, dtype=torch.float64, generator=generator)
        signs = torch.tensor(list(itertools.product([1.0, -1.0], repeat=8)), dtype=torch.float64)
        brute = []
        for k in range(3):
            real = k in ref.real_eigenvectors(value)
            settled = causal_spectrum(coupling, value, k, signs).stable if real else torch.zeros(1)
            brute.append(int(torch.as_tensor(settled).sum()))
        result = count_stable_causal(coupling, value, 8)
        assert result.per_eigenvector == brute
        totals.append(result.total)
    assert max(totals) > 2


def test_causal_acceptance_numbers() -> None:
    assert causal_patterns(1.0, 0.5, 0.6, 12) == 1782
    assert causal_patterns(1.0, 0.25, 0.3, 60) == 253107761426353194
    assert causal_patterns(1.0, 0.5, 400.0, 10) == 2**10
    assert causal_patterns(1.0, 0.5, -400.0, 10) == 2
    assert causal_patterns(1.0, 1.0 - 1e-15, 0.6, 10) == 0  # a repeated principal eigenvalue has no stable state
    with pytest.raises(InvalidInput, match="at most 2000 for the exact causal count; got 5000"):
        causal_patterns(1.0, 0.5, 0.6, 5000)


def test_order_matters_under_a_causal_mask() -> None:
    value, coupling = numpy.diag([1.0, 0.5]), 0.3 * numpy.eye(2)
    late = causal_spectrum(coupling, value, 0, [1.0, 1.0, 1.0, -1.0])
    balanced = causal_spectrum(coupling, value, 0, [1.0, -1.0, 1.0, 1.0])
    assert late.abscissa != pytest.approx(balanced.abscissa, abs=1e-3)
