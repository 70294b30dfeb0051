"""Every erratum of altafini2025 is verified here by a route that does not use the corrected formula itself."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

import reference_attention as ref
from helpers import checks, seeded
from separatrix.sources import altafini2025
from separatrix.theory import (
    bipartite_spectrum,
    multihead_consensus_spectrum,
    oja_bipartite_spectrum,
    theorem2_corrected,
    theorem2_printed,
)

NEGATIVE = numpy.diag([1.0, -1.0, -2.0])


def sphere(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = seeded(seed)
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64, generator=generator), dim=-1)


def matrices(dim: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = seeded(seed)
    coupling = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
    return coupling, ref.random_value(dim, generator, symmetric=True)


def projection(x: torch.Tensor) -> torch.Tensor:
    return torch.eye(len(x), dtype=torch.float64) - torch.outer(x, x)


def antipodal_fraction(n_tokens: int, coupling: numpy.ndarray, n_starts: int, seed: int) -> float:
    """Share of uniform starts whose tokens do not end in consensus, V = diag(1, -1, -2), all integrated at once."""
    rng = numpy.random.default_rng(seed)
    x0 = rng.normal(size=(n_starts, n_tokens, 3))
    x0 /= numpy.linalg.norm(x0, axis=-1, keepdims=True)

    def velocity(_t: float, state: numpy.ndarray) -> numpy.ndarray:
        x = state.reshape(x0.shape)
        weights = numpy.exp(x @ coupling @ x.transpose(0, 2, 1))
        pull = weights @ x @ NEGATIVE / weights.sum(-1, keepdims=True)
        return (pull - x * (x * pull).sum(-1, keepdims=True)).ravel()

    end = solve_ivp(velocity, (0, 120), x0.ravel(), rtol=1e-6, atol=1e-9).y[:, -1].reshape(x0.shape)
    together = (end[:, :1] * end).sum(-1).min(-1)
    return float((together < 0).mean())


def test_all_seventeen_errata_are_recorded_with_evidence() -> None:
    assert [erratum.key for erratum in altafini2025.ERRATA] == [f"altafini2025-E{i}" for i in range(1, 18)]
    assert all(erratum.printed and erratum.correct and erratum.evidence for erratum in altafini2025.ERRATA)


def test_e1_off_diagonal_block_of_lemma_8_has_the_token_differentiated_by() -> None:
    coupling, value = matrices(3)
    x = sphere(4, 3)
    attention = ref.softmax_attention(coupling)
    dense = torch.func.jacrev(ref.velocity_of(attention, value))(x)
    weights = attention(x)
    for i, h in itertools.permutations(range(4), 2):
        mean = weights[i] @ x
        blocks = [
            projection(x[i]) @ value @ (torch.eye(3) + torch.outer(x[k] - mean, x[i] @ coupling)) * weights[i, h]
            for k in range(4)
        ]
        assert float((blocks[h] - dense[i, :, h]).abs().max()) < 1e-12
        assert all(float((blocks[k] - dense[i, :, h]).abs().max()) > 1e-6 for k in range(4) if k != h)


def test_e2_lemma_3_holds_as_stated_and_not_with_the_v_of_its_proof() -> None:
    _, value = matrices(3)
    x = sphere(4, 3)
    dense = torch.func.jacrev(ref.velocity_of(ref.uniform_attention, value))(x)[0, :, 0]
    total = x.sum(0)
    stated = (
        projection(x[0]) @ value
        - (x[0] @ value @ total) * torch.eye(3, dtype=torch.float64)
        - torch.outer(x[0], total @ value)
    ) / 4
    assert float((stated - dense).abs().max()) < 1e-12

    def proof(y: torch.Tensor) -> torch.Tensor:
        mean = torch.cat([y.unsqueeze(0), x[1:]]).sum(0) / 4
        return value @ mean - value @ (torch.outer(y, y) @ value @ mean)

    assert float((torch.func.jacrev(proof)(x[0]) - dense).abs().max()) > 0.01


def test_e3_bipartite_blocks_of_lemma_4_carry_the_value_matrix() -> None:
    _, value = matrices(3)
    x = ref.pattern(value, 0, torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=torch.float64))
    dense = torch.func.jacrev(ref.velocity_of(ref.uniform_attention, value))(x)
    printed = projection(x[0]) / 4
    assert float((printed @ value - dense[0, :, 3]).abs().max()) < 1e-12
    assert float((printed - dense[0, :, 3]).abs().max()) > 0.01


def test_e4_the_printed_eigenvalues_are_radial_and_vanish_for_equal_groups() -> None:
    value = torch.from_numpy(NEGATIVE)
    for n1, n2 in ((2, 2), (3, 1)):
        x = ref.pattern(value, 0, torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64))
        jacobian = ref.ambient_jacobian(ref.velocity_of(ref.uniform_attention, value), x)
        radial = torch.zeros(4, 3, dtype=torch.float64)
        radial[0] = x[0]
        image = (jacobian @ radial.reshape(-1)).reshape(4, 3)
        assert float((image + 2 * (n1 - n2) / 4 * radial).abs().max()) < 1e-12
    dense = ref.tangent_spectrum(
        ref.velocity_of(ref.uniform_attention, value), ref.pattern(value, 0, torch.tensor([1.0, 1, -1, -1]).double())
    )
    assert dense.real.max() < 1e-7  # zeros of defective blocks, to the square root of rounding
    assert oja_bipartite_spectrum(NEGATIVE, 0, 3, 1).abscissa > 0


def test_e5_two_tokens_of_the_oja_flow_may_end_antipodal_and_three_do_not() -> None:
    none = numpy.zeros((3, 3))
    assert 0.07 < antipodal_fraction(2, none, 300, seed=0) < 0.20  # 13.3% in 3000 runs; 300 runs: +-4 points (2 sigma)
    assert antipodal_fraction(3, none, 60, seed=1) == 0


def test_e6_the_matrix_of_ones_has_the_eigenvalue_n() -> None:
    assert numpy.linalg.eigvalsh(numpy.ones((5, 5))) == pytest.approx([0, 0, 0, 0, 5], abs=1e-12)
    z = torch.linalg.svd(torch.eye(3)).U  # a vector orthogonal to a whole basis is zero
    assert torch.linalg.matrix_rank(z) == 3


def test_e7_the_printed_lyapunov_function_is_negative_at_consensus() -> None:
    total = numpy.array([4.0, 0.0, 0.0])  # four tokens at v_1
    assert (1.0 - total @ NEGATIVE @ total / 4) / 2 == -1.5
    assert (1.0 - (total / 4) @ NEGATIVE @ (total / 4)) / 2 == 0


def test_e8_the_attended_mean_carries_no_further_division() -> None:
    coupling, value = matrices(3)
    x = ref.pattern(value, 0, torch.ones(5, dtype=torch.float64))
    mean = ref.softmax_attention(coupling)(x) @ x
    assert float((mean - x).abs().max()) < 1e-14


def test_e9_the_condition_of_proposition_1_holds_at_every_state() -> None:
    coupling, value = matrices(3)
    x = sphere(4, 3, seed=5)
    assert float(ref.velocity_of(ref.softmax_attention(coupling), value)(x).norm()) > 0.1
    largest = float(torch.linalg.eigvalsh(value)[-1])
    matrix = torch.eye(12) - torch.kron(ref.softmax_attention(coupling)(x), value) / largest
    assert float(torch.linalg.svdvals(matrix)[-1]) < 1e-12
    assert float((matrix @ x.reshape(-1)).norm()) > 0.1  # yet x is not in its kernel


def test_e10_equal_tokens_off_an_eigenvector_move() -> None:
    coupling, value = matrices(3)
    point = sphere(3, seed=2)
    speed = ref.velocity_of(ref.softmax_attention(coupling), value)(point.expand(5, 3))
    assert float((speed - projection(point) @ value @ point).abs().max()) < 1e-12
    assert float(speed.norm()) > 0.1


def test_e11_attention_has_rank_one_at_a_bipartite_point_without_self_coupling() -> None:
    skew = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    assert int(torch.linalg.matrix_rank(ref.softmax_attention(skew)(x))) == 1
    assert int(torch.linalg.matrix_rank(ref.softmax_attention(torch.eye(2, dtype=torch.float64))(x))) == 2


@checks(theorem2_corrected, by="exact tangent spectra at 3000 random points")
def test_e12_the_printed_inequalities_err_and_the_corrected_ones_do_not() -> None:
    rng = numpy.random.default_rng(3)
    wrong = {"printed": 0, "corrected": 0}
    for n1, n2 in ((2, 2), (2, 5), (4, 3), (7, 2), (6, 6), (3, 9)):
        lam = numpy.sort(rng.normal(size=(500, 3)))[:, ::-1].copy()
        lam[:, 0] = numpy.abs(lam[:, 0]) + numpy.maximum(lam[:, 1], 0) + 1e-3
        strength = torch.from_numpy(rng.normal(size=500))
        eigenvalues, k = torch.from_numpy(lam), int(rng.choice([0, 2]))
        coupling = strength[:, None, None] * torch.eye(3, dtype=torch.float64)
        truth = bipartite_spectrum(coupling, torch.diag_embed(eigenvalues), k, n1, n2).stable
        wrong["printed"] += int((theorem2_printed(eigenvalues, k, strength, n1, n2) != truth).sum())
        wrong["corrected"] += int((theorem2_corrected(eigenvalues, k, strength, n1, n2) != truth).sum())
    assert wrong["corrected"] == 0
    assert wrong["printed"] > 100


def test_e13_one_token_against_six_is_stable_with_a_negative_pull() -> None:
    coupling, value = (
        0.6 * torch.eye(2, dtype=torch.float64),
        torch.diag(torch.tensor([1.0, -5.0], dtype=torch.float64)),
    )
    x = ref.pattern(value, 0, torch.tensor([1.0] + [-1.0] * 6, dtype=torch.float64))
    weights = ref.softmax_attention(coupling)(x)
    assert float(weights[0, 0] - weights[0, 1:].sum()) == pytest.approx(-0.2875, abs=5e-5)
    dense = numpy.sort(ref.tangent_spectrum(ref.velocity_of(ref.softmax_attention(coupling), value), x).real)
    assert dense == pytest.approx([-5.842306, -1.316716, *[-0.904401] * 5], abs=1e-6)


def test_e14_a_polygonal_pair_under_skew_coupling_attracts_an_open_set() -> None:
    skew = numpy.array([[0.0, 0.5, -0.3], [-0.5, 0.0, 0.4], [0.3, -0.4, 0.0]])
    assert 0.05 < antipodal_fraction(2, skew, 300, seed=4) < 0.25


def test_e15_consensus_of_several_heads_follows_the_sum_not_the_span() -> None:
    heads = torch.stack(
        [torch.diag(torch.tensor([2.0, -3.0, 1.5])), torch.diag(torch.tensor([-3.0, 2.0, 1.5]))]
    ).double()
    spectrum = multihead_consensus_spectrum(heads, 0, 3)
    x = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64).expand(3, 3)
    dense = ref.tangent_spectrum(ref.multihead_velocity(torch.zeros(2, 3, 3, dtype=torch.float64), heads), x)
    assert spectrum.stable is True  # on e_3, orthogonal to e_1 and e_2, the principal eigenvectors of the heads
    assert ref.spectral_distance(spectrum.expand(), dense) < 1e-12


def test_e16_a_feedforward_term_keeps_tokens_on_the_sphere() -> None:
    x = sphere(5, 3)
    added = torch.tanh(x @ sphere(3, 3, seed=9))
    tangent = added - x * (x * added).sum(-1, keepdim=True)
    assert float((tangent * x).sum(-1).abs().max()) < 1e-15
    assert float(tangent.norm()) > 0.1 * math.sqrt(5)


def test_e17_an_instance_may_have_no_stable_split_at_all() -> None:
    value, coupling = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64)), -torch.eye(3, dtype=torch.float64)

    def velocity(x: torch.Tensor) -> torch.Tensor:
        pull = torch.softmax(x @ coupling @ x.mT, -1) @ x @ value.mT
        return pull - (x * pull).sum(-1, keepdim=True) * x

    stable = 0
    for k, signs in itertools.product(range(3), itertools.product((1.0, -1.0), repeat=5)):
        x = torch.tensor(signs, dtype=torch.float64)[:, None] * torch.eye(3, dtype=torch.float64)[k]
        jacobian = torch.func.jacrev(velocity)(x).reshape(15, 15)
        across = [i for i in range(15) if i % 3 != k]  # tangent directions
        stable += bool(torch.linalg.eigvals(jacobian[across][:, across]).real.max() < 0)
    assert stable == 2  # consensus and its antipode, of 96
