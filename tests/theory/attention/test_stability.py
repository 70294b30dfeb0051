from __future__ import annotations

import itertools
import math

import mpmath
import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.dynamics import AttentionFlow
from separatrix.matrices import attention_instance
from separatrix.theory import attention as ae
from separatrix.theory.attention import (
    bipartite_spectrum,
    critical_beta,
    harmonic_pull,
    is_stable,
    sinkhorn_weights,
    split_beta,
    stable_window,
    stable_windows,
    weights_are_stable,
)

VALUE = torch.diag(torch.tensor([3.0, 1.0, -4.0], dtype=torch.float64))
COUPLING = torch.diag(torch.tensor([0.9, 0.2, -1.1], dtype=torch.float64))


EDGE = 1e-7  # nearer to zero than this the dense route cannot tell


def dense_abscissas(lam: numpy.ndarray, k: int, p: numpy.ndarray, q: numpy.ndarray, n1: int, n2: int) -> numpy.ndarray:
    """Abscissas of a batch from the matrices of the sign-pattern law themselves."""
    group = numpy.repeat([0, 1], [n1, n2])
    own, cross = numpy.stack([p / n1, q / n2], -1), numpy.stack([(1 - p) / n2, (1 - q) / n1], -1)
    attention = numpy.where(group[:, None] == group[None, :], own[:, group][:, :, None], cross[:, group][:, :, None])
    signs = numpy.where(group == 0, 1.0, -1.0)
    pull = (signs * (attention @ signs))[:, :, None] * numpy.eye(n1 + n2)
    blocks = [lam[:, j, None, None] * attention - lam[:, k, None, None] * pull for j in range(lam.shape[1]) if j != k]
    return numpy.linalg.eigvals(numpy.stack(blocks, 1)).real.max(axis=(1, 2))


def random_spectra(rng: numpy.random.Generator, count: int, dim: int) -> numpy.ndarray:
    lam = numpy.sort(rng.normal(size=(count, dim)) * rng.choice([0.3, 1, 3], size=(count, dim)))[:, ::-1].copy()
    lam[:, 0] = numpy.abs(lam[:, 0]) + numpy.maximum(0.0, lam[:, 1]) + 1e-3
    return lam


SPLITS = list(itertools.product(range(1, 7), repeat=2))


@checks(is_stable, by="eigenvalues of the dense sign-pattern matrices, more than 10^4 random cases")
def test_one_inequality_decides_what_the_eigenvalues_decide() -> None:
    rng = numpy.random.default_rng(0)
    decided = stable = 0
    for (n1, n2), (dim, k) in itertools.product(SPLITS, [(2, 0), (2, 1), (4, 0), (4, 3), (3, 1)]):
        lam, c = random_spectra(rng, 60, dim), rng.normal(size=60) * rng.choice([0.2, 1, 3], size=60)
        p, q = 1 / (1 + n2 / n1 * numpy.exp(-2 * c)), 1 / (1 + n1 / n2 * numpy.exp(-2 * c))
        truth = dense_abscissas(lam, k, p, q, n1, n2)
        clear = numpy.abs(truth) > EDGE
        found = is_stable(lam, k, c, n1, n2).numpy()
        assert (found == (truth < 0))[clear].all()
        decided, stable = decided + clear.sum(), stable + found.sum()
    assert decided > 10_000
    assert stable > 1_000


@checks(weights_are_stable, by="eigenvalues of the dense sign-pattern matrices, 2000 random cases")
def test_the_same_inequality_decides_for_doubly_stochastic_attention() -> None:
    rng = numpy.random.default_rng(1)
    stable = 0
    for (n1, n2), k in itertools.product(SPLITS, (0, 2)):
        lam, c = random_spectra(rng, 30, 3), rng.normal(size=30)
        weights = sinkhorn_weights(torch.from_numpy(c), n1, n2)
        truth = dense_abscissas(lam, k, 1 - weights.leave_1.numpy(), 1 - weights.leave_2.numpy(), n1, n2)
        found = weights_are_stable(lam, k, weights, n1, n2).numpy()
        assert (found == (truth < 0))[numpy.abs(truth) > EDGE].all()
        stable += found.sum()
    assert stable > 200


@checks(harmonic_pull, by="fifty-digit arithmetic")
@given(
    c=st.floats(-400, 400).filter(lambda c: abs(c) > 1e-6),
    n1=st.integers(1, 10**12),
    n2=st.integers(1, 10**12),
)
@settings(max_examples=150, deadline=None)
def test_harmonic_pull_keeps_its_digits_at_any_strength_and_split(c: float, n1: int, n2: int) -> None:
    with mpmath.workdps(400):
        a, h = mpmath.mpf(abs(c)), mpmath.log(mpmath.mpf(n1) / n2)
        exact = (mpmath.cosh(2 * a) - mpmath.cosh(h)) / mpmath.sinh(2 * a)
        # conditioning: H vanishes at h = 2|c|, where an error of one unit in h is all there is
        slack = 1e-13 * (1 + abs(exact)) + 1e-15 * abs(mpmath.sinh(h)) * abs(h) / mpmath.sinh(2 * a)
        assert abs(float(harmonic_pull(torch.tensor(c, dtype=torch.float64), n1, n2)) - exact) <= slack


@checks(stable_window, by="abscissa of every split from the exact blocks, random instances and sizes")
@given(seed=st.integers(0, 10**6), n=st.integers(1, 14), scale=st.sampled_from([0.2, 1.0, 4.0]), dim=st.integers(2, 4))
@settings(max_examples=20, deadline=None)
def test_the_window_holds_exactly_the_splits_whose_spectrum_is_stable(
    seed: int, n: int, scale: float, dim: int
) -> None:
    generator = seeded(seed)
    value = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
    value = value + value.mT
    if float(torch.linalg.eigvalsh(value)[-1]) <= 0:
        value = -value
    coupling = scale * torch.randn(dim, dim, dtype=torch.float64, generator=generator)
    for k in range(dim):
        window = stable_window(coupling, value, k, n)
        inside = set(range(int(window.lowest), int(window.highest) + 1))
        inside |= {1, n - 1} if bool(window.single) else set()
        inside |= {0, n} if bool(window.consensus) else set()
        spectra = {n1: bipartite_spectrum(coupling, value, k, n1, n - n1) for n1 in range(n + 1)}
        assert inside == {n1 for n1, spectrum in spectra.items() if spectrum.stable}


def test_a_single_token_may_oppose_all_others_where_the_paper_says_no() -> None:
    window = stable_window(0.6 * torch.eye(2), torch.diag(torch.tensor([1.0, -5.0])), 0, 7)
    assert bool(window.single)
    assert not bool(stable_window(0.6 * torch.eye(2), torch.diag(torch.tensor([1.0, 0.1])), 0, 7).single)


def test_acceptance_windows() -> None:
    first, third = stable_window(COUPLING, VALUE, 0, 100), stable_window(COUPLING, VALUE, 2, 100)
    assert (int(first.lowest), int(first.highest)) == (20, 80)
    assert (int(third.lowest), int(third.highest)) == (35, 65)
    assert float(first.half_width) == pytest.approx(1.387226, abs=5e-7)
    assert float(third.half_width) == pytest.approx(0.658952, abs=5e-7)
    assert not bool(stable_window(COUPLING, VALUE, 1, 100).any_bipartite)


def test_windows_at_logits_beyond_the_exponential_are_finite() -> None:
    window = stable_window(
        5000.0 * torch.eye(3), torch.diag(torch.tensor([3.0, 2.9999999, 1.0], dtype=torch.float64)), 0, 10**9
    )
    assert (int(window.lowest), int(window.highest)) == (1, 10**9 - 1)
    assert math.isfinite(float(window.half_width))


@checks(critical_beta, by="bisection on the abscissa of the balanced state")
def test_above_the_critical_beta_the_balanced_state_is_stable_and_below_not() -> None:
    assert critical_beta(COUPLING, VALUE, 0) == pytest.approx(0.385082, abs=5e-7)
    assert critical_beta(COUPLING, VALUE, 2) == pytest.approx(0.884505, abs=5e-7)
    assert critical_beta(COUPLING, VALUE, 1) == math.inf
    for k in (0, 2):
        low, high = 0.0, 5.0
        for _ in range(60):
            middle = (low + high) / 2
            settled = bipartite_spectrum(COUPLING, VALUE, k, 10**6, 10**6, middle).abscissa < 0
            low, high = (low, middle) if settled else (middle, high)
        assert critical_beta(COUPLING, VALUE, k) == pytest.approx(high, rel=1e-12)
    assert critical_beta(COUPLING, torch.diag(torch.tensor([1.0, -0.5, -0.7])), 0) == 0.0


def test_only_the_first_and_the_last_eigenvector_can_carry_a_stable_point(generator: torch.Generator) -> None:
    value = torch.randn(200, 5, 5, dtype=torch.float64, generator=generator)
    coupling = 3 * torch.randn(200, 5, 5, dtype=torch.float64, generator=generator)
    value = value + value.mT
    for k in (1, 2, 3):
        assert not bool(stable_window(coupling, value, k, 50).any_bipartite.any())
    last = stable_window(coupling, value, 4, 50).any_bipartite
    lam = torch.linalg.eigvalsh(value)
    assert bool(last.any())
    assert bool((lam[last, 0].abs() > lam[last, -1]).all())


@checks(stable_windows, by="abscissa of every split from the exact blocks, ten tokens")
def test_windows_of_a_batch_hold_the_splits_whose_spectrum_is_stable(generator: torch.Generator) -> None:
    value = torch.randn(5, 3, 3, dtype=torch.float64, generator=generator)
    value = value + value.mT + 2 * torch.eye(3, dtype=torch.float64)
    coupling = torch.randn(5, 3, 3, dtype=torch.float64, generator=generator)
    windows = stable_windows(coupling, value, 10)
    for instance in range(5):
        for end, k in enumerate((0, 2)):
            stable = [
                n1
                for n1 in range(1, 10)
                if bipartite_spectrum(coupling[instance], value[instance], k, n1, 10 - n1).stable
            ]
            low, high = int(windows.lowest[instance, end]), int(windows.highest[instance, end])
            alone = [1, 9] if bool(windows.single[instance, end]) else []
            assert stable == sorted({*range(low, high + 1), *alone})


def test_windows_of_a_batch_are_those_of_its_elements(generator: torch.Generator) -> None:
    value = torch.randn(20, 4, 4, dtype=torch.float64, generator=generator)
    value = value + value.mT
    coupling = 2 * torch.randn(20, 4, 4, dtype=torch.float64, generator=generator)
    batch = stable_windows(coupling, value, 30)
    for index in range(20):
        for end, k in enumerate((0, 3)):
            alone = stable_window(coupling[index], value[index], k, 30)
            assert int(batch.lowest[index, end]) == int(alone.lowest)
            assert bool(batch.any_bipartite[index, end]) is bool(alone.any_bipartite)


def test_repeated_principal_eigenvalues_have_no_stable_point() -> None:
    window = stable_window(50 * torch.eye(3), torch.diag(torch.tensor([2.0, 2.0, -1.0])), 0, 10)
    assert not bool(window.any_bipartite)
    assert not bool(window.consensus)


def test_outside_the_criterion_is_refused_with_the_general_route_named() -> None:
    skew = [[1.0, 1.0], [0.0, -1.0]]
    with pytest.raises(OutsideTheory, match=r"value must be symmetric.*V - V' is 1\. Use count_stable"):
        stable_window(torch.eye(2), skew, 0, 10)
    with pytest.raises(OutsideTheory, match="Use bipartite_spectrum at several beta"):
        critical_beta(torch.eye(2), skew, 0)
    with pytest.raises(InvalidInput, match="largest eigenvalue must be positive"):
        is_stable([-1.0, -2.0], 0, 1.0, 2, 2)
    with pytest.raises(InvalidInput, match="descending order"):
        is_stable([1.0, 2.0], 0, 1.0, 2, 2)
    with pytest.raises(InvalidInput, match="eigenvalues must be real"):
        is_stable(torch.tensor([1 + 1j, 1 - 1j]), 0, 1.0, 2, 2)
    with pytest.raises(InvalidInput, match=r"at most 2\^53"):
        stable_window(torch.eye(2), torch.eye(2), 0, 2**60)


def test_public_module_offers_the_contract() -> None:
    names = {"consensus_spectrum", "bipartite_spectrum", "sign_pattern_spectrum", "cluster_spectrum", "is_stable"}
    names |= {"stable_window", "count_stable", "count_stable_causal", "critical_beta"}
    assert names <= set(ae.__all__)


@checks(split_beta, by="dense eigenvalues of the Jacobian on both sides")
def test_a_split_gains_stability_at_its_own_beta() -> None:
    seen = never = 0
    for seed, sign in itertools.product(range(8), (1.0, -1.0)):
        drawn = attention_instance(3, generator=seeded(seed))
        largest = torch.linalg.eigvalsh(drawn.value)[-1]
        value = drawn.value - (0.6 * largest if seed % 2 else 0.0) * torch.eye(3)  # shifted: v_d can carry states too
        flow = AttentionFlow.from_coupling(sign * drawn.coupling, value)
        vectors = torch.linalg.eigh(value).eigenvectors
        for (k, column), (n1, n2) in itertools.product(((0, -1), (2, 0)), ((1, 1), (2, 1), (1, 4), (3, 2), (5, 2))):
            x = torch.cat([vectors[:, column].expand(n1, 3), -vectors[:, column].expand(n2, 3)])
            beta = float(split_beta(flow.coupling, value, k, n1, n2))
            if math.isinf(beta):
                never += 1
                assert all(dense_abscissa(flow, x, at) > -1e-9 for at in (0.1, 1.0, 10.0))
                continue
            seen += 1
            assert dense_abscissa(flow, x, beta * (1 + 1e-5) + 1e-7) < 0
            assert beta < 1e-12 or dense_abscissa(flow, x, beta * (1 - 1e-5)) > 0
    assert min(seen, never) >= 20


def dense_abscissa(flow: AttentionFlow, x: torch.Tensor, beta: float) -> float:
    return float(torch.linalg.eigvals(flow.with_beta(beta).jacobian(x)).real.max())


def test_the_beta_of_equal_groups_is_the_critical_one_and_an_edge_of_the_window() -> None:
    for k in (0, 1, 2):
        assert split_beta(COUPLING, VALUE, k, 7, 7) == pytest.approx(
            float(critical_beta(COUPLING, VALUE, k)), rel=1e-12
        )
    for n1 in (20, 30, 40):
        beta = float(split_beta(COUPLING, VALUE, 0, n1, 100 - n1))
        assert int(stable_window(COUPLING, VALUE, 0, 100, beta * (1 + 1e-9)).lowest) <= n1
        assert int(stable_window(COUPLING, VALUE, 0, 100, beta * (1 - 1e-9)).lowest) > n1
    with pytest.raises(InvalidInput, match="at least 1 token each"):
        split_beta(COUPLING, VALUE, 0, 0, 3)
