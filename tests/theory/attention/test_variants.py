"""Causal order, several heads, discrete maps and the consensus cycle."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

import reference_attention as ref
from helpers import checks
from separatrix.core import InvalidInput, Outcome, OutsideTheory, ShapeError
from separatrix.theory import attention as ae
from separatrix.theory.attention import (
    balanced_direction,
    bipartite_layer_multipliers,
    bipartite_spectrum,
    causal_patterns,
    causal_spectrum,
    consensus_cycle,
    count_stable_causal,
    euler_multipliers,
    layer_multipliers,
    multihead_cluster_spectrum,
    multihead_consensus_spectrum,
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


@checks(multihead_consensus_spectrum, multihead_cluster_spectrum, by="autodiff tangent Jacobian with three heads")
def test_several_heads_add_up(generator: torch.Generator) -> None:
    couplings = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    values = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    values = values + values.mT
    flow = ref.multihead_velocity(couplings, values, 0.8)
    for k in range(4):
        x = ref.pattern(values.sum(0), k, torch.ones(4, dtype=torch.float64))
        dense = ref.tangent_spectrum(flow, x)
        assert ref.spectral_distance(multihead_consensus_spectrum(values, k, 4).expand(), dense) < 1e-12
    clusters = torch.nn.functional.normalize(torch.randn(2, 4, dtype=torch.float64, generator=generator), dim=-1)
    x = clusters.repeat_interleave(torch.tensor([3, 1]), dim=0)
    blocks = multihead_cluster_spectrum(couplings, values, clusters, [3, 1], 0.8)
    assert ref.spectral_distance(blocks.expand(), ref.tangent_spectrum(flow, x)) < 1e-11
    with pytest.raises(ShapeError, match=r"values must have shape \(..., heads, d, d\)"):
        multihead_consensus_spectrum(values[0], 0, 4)


@checks(balanced_direction, by="speed of four tokens at +v, +v, -v, -v under the plain flow")
def test_opposite_groups_of_several_heads_rest_on_a_nonlinear_eigenvector(generator: torch.Generator) -> None:
    couplings = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    values = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    values = values + values.mT
    found = balanced_direction(couplings, values, torch.randn(12, 3, dtype=torch.float64, generator=generator))
    good = found.outcome == int(Outcome.CONVERGED)
    assert int(good.sum()) >= 6
    assert bool(found.vector[~good].isnan().all())
    for vector in found.vector[good]:
        x = torch.stack([vector, vector, -vector, -vector])
        assert float(ref.multihead_velocity(couplings, values)(x).norm()) < 1e-9


def layer_map(attention, value: torch.Tensor, step: float):
    def step_map(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(x + step * attention(x) @ x @ value.mT, dim=-1)

    return step_map


@checks(layer_multipliers, bipartite_layer_multipliers, by="autodiff Jacobian of the map")
def test_layer_multipliers_are_those_of_the_map(generator: torch.Generator) -> None:
    for index in range(20):
        value = 0.3 * ref.random_value(3, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(3, 3, dtype=torch.float64, generator=generator)
        k, n1, n2 = ref.real_eigenvectors(value)[-1], 1 + index % 3, index % 4
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        attention = ref.softmax_attention(coupling)
        x = ref.pattern(value, k, signs)
        dense = ref.map_multipliers(layer_map(attention, value, 0.5), x)
        general = layer_multipliers(value, k, signs, attention(x), 0.5)
        blocks = bipartite_layer_multipliers(coupling, value, k, n1, n2, 0.5)
        assert not bool(general.flips.any())
        assert ref.spectral_distance(general.quotient, dense) < 1e-10
        assert float(blocks.spectral_radius) == pytest.approx(abs(dense).max(), abs=1e-10)
        assert bool(blocks.stable) is bool(general.stable) is bool(abs(dense).max() < 1)


@checks(euler_multipliers, by="autodiff Jacobian of the renormalised Euler step")
def test_euler_multipliers_are_those_of_the_map(generator: torch.Generator) -> None:
    value, coupling = ref.random_value(3, generator, symmetric=True), torch.eye(3, dtype=torch.float64)
    flow = ref.velocity_of(ref.softmax_attention(coupling), value)
    x = ref.pattern(value, 0, torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))

    def step_map(y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(y + 0.2 * flow(y), dim=-1)

    found = euler_multipliers(bipartite_spectrum(coupling, value, 0, 2, 1), 0.2)
    dense = ref.map_multipliers(step_map, x)
    assert float(found.spectral_radius) == pytest.approx(abs(dense).max(), abs=1e-12)


def test_a_negative_factor_flips_tokens_and_is_reported() -> None:
    found = bipartite_layer_multipliers(numpy.eye(2), numpy.diag([1.0, -3.0]), 1, 4, 0, 1.0)
    assert bool(found.flips.all())
    assert not bool(found.stable)


@checks(consensus_cycle, by="monodromy matrix over one period, integrated with the Jacobian by autodiff")
def test_floquet_exponents_of_the_consensus_cycle_are_those_of_the_monodromy_matrix() -> None:
    value = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    coupling = torch.tensor([[0.5, 0.2, 0.0], [-0.1, 0.3, 0.2], [0.4, 0.0, 0.1]], dtype=torch.float64)
    cycle = consensus_cycle(value, 4)
    assert cycle.period == pytest.approx(math.pi, abs=1e-12)
    assert cycle.exponents.tolist() == pytest.approx([0.0, *[-1.0] * 6, -1.5], abs=1e-12)
    assert cycle.stable
    flow = ref.velocity_of(ref.softmax_attention(coupling), value)
    start = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).expand(4, 3).reshape(-1).numpy()

    def extended(_t: float, state: numpy.ndarray) -> numpy.ndarray:
        x = torch.from_numpy(state[:12].copy()).reshape(4, 3)
        jacobian = ref.ambient_jacobian(flow, x).numpy()
        return numpy.concatenate([flow(x).reshape(-1).numpy(), (jacobian @ state[12:].reshape(12, 12)).ravel()])

    state = numpy.concatenate([start, numpy.eye(12).ravel()])
    end = solve_ivp(extended, (0, cycle.period), state, rtol=1e-8, atol=1e-10).y[:, -1]
    assert numpy.abs(end[:12] - start).max() < 1e-6
    basis = ref.tangent_bases(torch.from_numpy(start).reshape(4, 3)).numpy()
    monodromy = basis.T @ end[12:].reshape(12, 12) @ basis
    measured = numpy.sort(numpy.log(numpy.abs(numpy.linalg.eigvals(monodromy))) / cycle.period)
    assert measured == pytest.approx(numpy.sort(cycle.exponents.numpy()), abs=1e-4)


def test_a_real_principal_eigenvalue_has_no_cycle() -> None:
    with pytest.raises(OutsideTheory, match=r"eigenvalue 0 of value is real \(2\): use consensus_spectrum"):
        consensus_cycle(numpy.diag([2.0, 1.0]), 3)
    assert not consensus_cycle([[-1.0, 2.0], [-2.0, -1.0]], 3).stable


def test_public_names_resolve() -> None:
    assert all(hasattr(ae, name) for name in ae.__all__)
