from __future__ import annotations

import numpy
import pytest
import torch

import reference_attention as ref
from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory, ShapeError
from separatrix.theory import attention as ae
from separatrix.theory.attention import (
    bipartite_spectrum,
    consensus_spectrum,
    sign_pattern_attention,
    sign_pattern_spectrum,
    sinkhorn_bipartite_spectrum,
    sinkhorn_weights,
    softmax_weights,
)

ROUNDING = 1e-10  # relative, as asked of every spectrum; observed 1e-14


def cases(count: int, seed: int):
    generator = seeded(seed)
    for index in range(count):
        dim = 2 + index % 4
        value = ref.random_value(dim, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
        real = ref.real_eigenvectors(value)
        if real:
            yield index, coupling, value, real[index % len(real)]


def far(spectrum, dense, value: torch.Tensor) -> float:
    return ref.spectral_distance(spectrum, dense) / float(torch.linalg.matrix_norm(value, 2))


@checks(consensus_spectrum, by="autodiff tangent Jacobian, 60 random cases")
def test_consensus_spectrum_is_that_of_the_dense_jacobian() -> None:
    for index, coupling, value, k in cases(60, seed=1):
        n_tokens = 1 + index % 6
        x = ref.pattern(value, k, torch.ones(n_tokens, dtype=torch.float64))
        dense = ref.tangent_spectrum(ref.velocity_of(ref.softmax_attention(coupling), value), x)
        assert far(consensus_spectrum(value, k, n_tokens).expand(), dense, value) < ROUNDING


@checks(bipartite_spectrum, softmax_weights, by="autodiff tangent Jacobian, 100 random cases")
def test_bipartite_spectrum_is_that_of_the_dense_jacobian_including_single_tokens_and_circles() -> None:
    seen = set()
    for index, coupling, value, k in cases(110, seed=2):
        n1, n2, beta = 1 + index % 4, 1 + (index // 4) % 3, (0.3, 1.0, 2.5)[index % 3]
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        flow = ref.velocity_of(ref.softmax_attention(coupling, beta), value)
        dense = ref.tangent_spectrum(flow, ref.pattern(value, k, signs))
        spectrum = bipartite_spectrum(coupling, value, k, n1, n2, beta)
        assert spectrum.expand().shape == ((n1 + n2) * (value.shape[0] - 1),)
        # a defective block (two equal eigenvalues) is only resolved to the square root of rounding by the dense route
        assert far(spectrum.expand(), dense, value) < ROUNDING
        assert abs(spectrum.abscissa - dense.real.max()) < ROUNDING * float(torch.linalg.matrix_norm(value, 2))
        seen.add((value.shape[0], min(n1, n2), bool(torch.equal(value, value.mT))))
    assert {(2, 1, True), (3, 1, False), (5, 2, False)} <= seen


@pytest.mark.sampled(3)
@checks(sign_pattern_spectrum, by="autodiff tangent Jacobian of five kinds of attention")
@pytest.mark.parametrize("kind", ["softmax", "causal", "mask", "bias", "sinkhorn", "uniform"])
def test_sign_pattern_law_holds_for_every_attention(kind: str) -> None:
    generator = seeded(7)
    n_tokens = 6
    for index, coupling, value, k in cases(17, seed=3):
        signs = torch.randint(0, 2, (n_tokens,), generator=generator).to(torch.float64) * 2 - 1
        mask = torch.rand(n_tokens, n_tokens, generator=generator) < 0.6
        bias = torch.randn(n_tokens, n_tokens, dtype=torch.float64, generator=generator)
        attention = {
            "softmax": ref.softmax_attention(coupling, 0.7),
            "causal": ref.softmax_attention(coupling, mask=torch.ones(n_tokens, n_tokens).tril().bool()),
            "mask": ref.softmax_attention(coupling, mask=mask | torch.eye(n_tokens, dtype=torch.bool)),
            "bias": ref.softmax_attention(coupling, bias=bias),
            "sinkhorn": ref.sinkhorn_attention(0.3 * coupling),
            "uniform": ref.uniform_attention,
        }[kind]
        x = ref.pattern(value, k, signs)
        dense = ref.tangent_spectrum(ref.velocity_of(attention, value), x)
        spectrum = sign_pattern_spectrum(value, k, signs, attention(x))
        # a mask can make a block defective, which the dense route resolves only to the square root of rounding
        assert far(spectrum.expand(), dense, value) < (1e-6 if kind in ("mask", "causal") else ROUNDING), index


@checks(sinkhorn_bipartite_spectrum, sinkhorn_weights, by="autodiff through 150 Sinkhorn sweeps")
def test_sinkhorn_bipartite_spectrum_is_that_of_the_dense_jacobian() -> None:
    for index, coupling, value, k in cases(24, seed=4):
        n1, n2, coupling = 1 + index % 3, 1 + (index // 3) % 4, 0.4 * coupling
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        flow = ref.velocity_of(ref.sinkhorn_attention(coupling), value)
        dense = ref.tangent_spectrum(flow, ref.pattern(value, k, signs))
        assert far(sinkhorn_bipartite_spectrum(coupling, value, k, n1, n2).expand(), dense, value) < ROUNDING


@checks(sign_pattern_attention, by="attention of the tokens themselves, masked and biased")
def test_attention_at_a_sign_pattern_is_that_of_its_tokens(generator: torch.Generator) -> None:
    for _, coupling, value, k in cases(6, seed=8):
        signs = torch.randint(0, 2, (5,), generator=generator).to(torch.float64) * 2 - 1
        mask = torch.rand(5, 5, generator=generator) < 0.6
        mask = mask | torch.eye(5, dtype=torch.bool)
        bias = torch.randn(5, 5, dtype=torch.float64, generator=generator)
        x = ref.pattern(value, k, signs)
        direction = signs[0] * x[0]
        strength = 0.7 * direction @ coupling @ direction
        found = sign_pattern_attention(strength, signs, mask, bias)
        expected = ref.softmax_attention(coupling, 0.7, mask, bias)(x)
        torch.testing.assert_close(found, expected, atol=1e-13, rtol=1e-12)


@checks(ae.uniform_weights, by="row sums of the uniform attention matrix over each group")
def test_uniform_weights_are_group_fractions() -> None:
    weights = ae.uniform_weights(3, 5)
    attention = torch.full((8, 8), 1 / 8, dtype=torch.float64)
    assert float(weights.leave_1) == pytest.approx(float(attention[0, 3:].sum()), abs=1e-15)
    assert float(weights.leave_2) == pytest.approx(float(attention[7, :3].sum()), abs=1e-15)
    assert float(weights.delta_1) == pytest.approx(float(attention[0, :3].sum() - attention[0, 3:].sum()), abs=1e-15)
    assert float(weights.delta_2) == pytest.approx(-float(weights.delta_1), abs=1e-15)


def test_ambient_spectra_have_the_lists_of_lemmas_9_and_10() -> None:
    for index, coupling, value, k in cases(20, seed=5):
        n1, n2 = 1 + index % 3, index % 4
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        flow = ref.velocity_of(ref.softmax_attention(coupling), value)
        dense = torch.linalg.eigvals(ref.ambient_jacobian(flow, ref.pattern(value, k, signs))).numpy()
        assert far(bipartite_spectrum(coupling, value, k, n1, n2).expand(ambient=True), dense, value) < 1e-9


def test_extreme_strengths_neither_overflow_nor_lose_the_small_eigenvalue() -> None:
    value = numpy.diag([2.0, 1.0, -3.0])
    strong = bipartite_spectrum(800.0 * numpy.eye(3), value, 0, 10, 10)
    assert strong.expand().isfinite().all()
    assert strong.abscissa == pytest.approx(-1.0, abs=1e-12)  # groups ignore each other: lambda_2 - lambda_1
    opposed = bipartite_spectrum(-800.0 * numpy.eye(3), value, 0, 10, 10)
    assert opposed.abscissa == pytest.approx(5.0, abs=1e-12)  # only the opposite group pulls: lambda_1 - lambda_3
    # just inside the edge tanh c = rho of the balanced window the decisive eigenvalue keeps its relative accuracy
    c = numpy.arctanh(0.5) * (1 + 1e-11)
    edge = bipartite_spectrum(c * numpy.eye(2), numpy.diag([2.0, 1.0]), 0, 5, 5)
    slope = 1 - 0.5**2  # d tanh
    assert edge.abscissa == pytest.approx(-2 * slope * numpy.arctanh(0.5) * 1e-11, rel=1e-3)


def test_a_batch_of_instances_gives_what_each_gives_alone(generator: torch.Generator) -> None:
    coupling = torch.randn(5, 3, 3, dtype=torch.float64, generator=generator)
    value = torch.randn(5, 3, 3, dtype=torch.float64, generator=generator)
    value = value + value.mT
    together = bipartite_spectrum(coupling, value, 0, 4, 2)
    for index in range(5):
        alone = bipartite_spectrum(coupling[index], value[index], 0, 4, 2)
        assert torch.allclose(together.expand()[index], alone.expand(), rtol=0, atol=1e-13)
        assert bool(together.stable[index]) is alone.stable


def test_cost_does_not_depend_on_the_number_of_tokens() -> None:
    few = bipartite_spectrum(numpy.eye(3), numpy.diag([2.0, 1.0, -1.0]), 0, 30, 20)
    many = bipartite_spectrum(numpy.eye(3), numpy.diag([2.0, 1.0, -1.0]), 0, 3 * 10**14, 2 * 10**14)
    assert many.abscissa == pytest.approx(few.abscissa, abs=1e-14)
    assert many.quotient.shape == few.quotient.shape
    assert many.blocks[1][1] == 3 * 10**14 - 1


def test_real_weights_describe_the_limit_of_many_tokens() -> None:
    half = bipartite_spectrum(numpy.eye(2), numpy.diag([2.0, 1.0]), 0, 0.5, 0.5)
    many = bipartite_spectrum(numpy.eye(2), numpy.diag([2.0, 1.0]), 0, 1000, 1000)
    assert half.abscissa == pytest.approx(many.abscissa, abs=1e-14)
    with pytest.raises(InvalidInput, match="no finite list of eigenvalues"):
        half.expand()


def test_degenerate_points_are_marginal_not_stable() -> None:
    balanced = bipartite_spectrum(numpy.zeros((2, 2)), numpy.diag([1.0, -1.0]), 0, 2, 2)
    assert balanced.marginal is True
    assert balanced.stable is False
    repeated = consensus_spectrum(numpy.diag([1.0, 1.0, -1.0]), 0, 4)
    assert repeated.marginal is True


def test_a_complex_eigenvalue_is_refused_and_the_cycle_is_named() -> None:
    rotation = [[1.0, 2.0, 0.0], [-2.0, 1.0, 0.0], [0.0, 0.0, -1.0]]
    with pytest.raises(OutsideTheory, match=r"eigenvalue 0 of value is complex \(1\+2j\).*consensus_cycle"):
        consensus_spectrum(rotation, 0, 3)
    assert consensus_spectrum(rotation, 2, 3).stable is False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: consensus_spectrum(torch.zeros(2, 3), 0, 3), ShapeError, r"value must be a square matrix"),
        (lambda: consensus_spectrum([[1.0]], 0, 3), ShapeError, "value must have at least 2 rows"),
        (
            lambda: consensus_spectrum(torch.eye(2), 0, 0),
            InvalidInput,
            "n_tokens must be an integer of at least 1; got 0",
        ),
        (lambda: consensus_spectrum(torch.eye(2), 5, 2), InvalidInput, "k must be an integer from 0 to 1.*got 5"),
        (
            lambda: bipartite_spectrum(torch.eye(3), torch.eye(2), 0, 1, 1),
            ShapeError,
            "coupling and value must have the same",
        ),
        (
            lambda: bipartite_spectrum(torch.eye(2), torch.eye(2), 0, 1, 1, beta=-1.0),
            InvalidInput,
            "beta must be .* got -1.0",
        ),
        (
            lambda: bipartite_spectrum(torch.eye(2), torch.eye(2), 0, -1, 1),
            InvalidInput,
            "n1 must be a finite number.*-1",
        ),
        (lambda: bipartite_spectrum(torch.eye(2), torch.eye(2), 0, 0, 0), InvalidInput, "at least 1 token"),
        (
            lambda: bipartite_spectrum(torch.eye(2), [[1.0, float("nan")], [0.0, 1.0]], 0, 1, 1),
            InvalidInput,
            r"value must be finite; entry \(0, 1\) is nan",
        ),
        (
            lambda: sign_pattern_spectrum(torch.eye(2), 0, [1.0, 0.5], torch.eye(2)),
            InvalidInput,
            r"signs must be \+1 or -1",
        ),
        (
            lambda: sign_pattern_spectrum(torch.eye(2), 0, [1.0, 1.0], torch.ones(2, 2)),
            InvalidInput,
            "attention must be row-stochastic.*off by 1",
        ),
        (
            lambda: sign_pattern_spectrum(torch.eye(2), 0, [1.0, 1.0], torch.eye(3)),
            ShapeError,
            r"attention must have shape \(..., 2, 2\); got \(3, 3\)",
        ),
        (
            lambda: sign_pattern_attention(
                1.0, torch.ones(2, dtype=torch.float64), mask=torch.tensor([[True, False], [False, False]])
            ),
            InvalidInput,
            "row 1 is empty",
        ),
    ],
)
def test_bad_input_is_named(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
