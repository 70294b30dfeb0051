"""BalancedFlow against integration, multi-precision arithmetic, and the laws every solution obeys."""

from __future__ import annotations

import mpmath
import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory, ShapeError
from separatrix.dynamics import LinearNetworkFlow, integrate_layers
from separatrix.matrices import balanced_factors, balanced_pair, fit_balance
from separatrix.theory import BalancedFlow, square_representations
from separatrix.theory.learning.balanced_factor import mode_coordinates
from separatrix.theory.learning.balanced_modes import mode_rates

F64 = torch.float64
W0 = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=F64)
TASK = torch.tensor([[2.0, 1.0], [0.0, 1.0]], dtype=F64)
TALL_W0 = torch.tensor([[0.3, -0.2], [0.1, 0.4], [0.2, 0.1]], dtype=F64)
TALL_TASK = torch.tensor([[2.0, 1.0], [0.0, 1.0], [1.0, -1.0]], dtype=F64)
SHAPES = [(4, 4, 4), (3, 1, 4), (2, 7, 3), (5, 3, 2), (2, 3, 5), (4, 2, 4), (2, 2, 3), (1, 1, 1)]
BALANCES = [0.0, 1e-8, -1e-8, 1.0, -1.0, 1e3, -1e3]


def legal(balance: float, n_in: int, n_hidden: int, n_out: int) -> bool:
    return not (balance > 0 and n_hidden > n_out) and not (balance < 0 and n_hidden > n_in)


def draw(shape: tuple[int, int, int], balance: float, seed: int = 0, scale: float = 0.4):
    generator = seeded(1000 * seed + sum(shape))
    n_in, n_hidden, n_out = shape
    w1, w2 = balanced_pair(balance, n_in, n_hidden, n_out, scale=scale, generator=generator)
    return w1, w2, torch.randn(n_out, n_in, dtype=F64, generator=generator)


def precise_gram(w1, w2, corr, balance: float, t: float) -> mpmath.matrix:
    """The Riccati solution as written, with enough digits that nothing cancels."""
    n_in, n_out = w1.shape[1], w2.shape[0]
    size = n_in + n_out
    rate = float(torch.linalg.matrix_norm(corr, ord=2)) + abs(balance)
    mpmath.mp.dps = int(60 + rate * t)
    stacked = mpmath.matrix(torch.cat([w1.mT, w2]).tolist())
    field = mpmath.zeros(size)
    for i in range(size):
        field[i, i] = mpmath.mpf(balance) / 2 * (-1 if i < n_in else 1)
    for i in range(n_out):
        for j in range(n_in):
            field[n_in + i, j] = field[j, n_in + i] = mpmath.mpf(float(corr[i, j]))
    values, vectors = mpmath.eigsy(field)
    start = vectors.T * stacked
    grown = mpmath.diag([mpmath.exp(v * t) for v in values])
    tiny = mpmath.mpf(10) ** (-mpmath.mp.dps // 2)
    memory = mpmath.diag([t if abs(v * t) < tiny else mpmath.expm1(2 * v * t) / (2 * v) for v in values])
    inside = mpmath.eye(w1.shape[0]) + start.T * memory * start
    factor = vectors * grown * start
    return factor * mpmath.inverse(inside) * factor.T


def block_error(gram: torch.Tensor, precise: mpmath.matrix, n_in: int) -> float:
    reference = numpy.array(precise.tolist(), dtype=float)
    worst = 0.0
    for rows in (slice(0, n_in), slice(n_in, None)):
        for columns in (slice(0, n_in), slice(n_in, None)):
            size = abs(reference[rows, columns]).max()
            worst = max(worst, abs(gram.numpy()[rows, columns] - reference[rows, columns]).max() / size)
    return worst


@pytest.mark.sampled(4)
@checks(
    BalancedFlow.product,
    BalancedFlow.gram,
    BalancedFlow.representations,
    BalancedFlow.factors,
    by="DOP853 at rtol 1e-12",
)
@pytest.mark.parametrize("shape", SHAPES)
def test_gram_agrees_with_integration_for_every_shape_and_balance(shape: tuple[int, int, int]) -> None:
    balances = [b for b in BALANCES if legal(b, *shape) and abs(b) < 100]
    drawn = [draw(shape, b, seed) for seed, b in enumerate(balances)]
    w1, w2, corr = (torch.stack(column) for column in zip(*drawn, strict=True))
    times = [0.05, 0.4, 1.5]
    path = integrate_layers(LinearNetworkFlow(corr), (w1, w2), times, rtol=1e-13, atol=1e-15)
    stacked = torch.cat([path.layers[0].mT, path.layers[1]], dim=-2)
    gram = stacked @ stacked.mT
    flow = BalancedFlow(w1, w2, corr)
    assert (flow.gram(times) - gram).abs().max() <= 1e-12 * max(1.0, float(gram.abs().max()))
    assert (flow.product(times) - path.product).abs().max() <= 1e-12 * max(1.0, float(gram.abs().max()))
    first, second = flow.representations(times)
    torch.testing.assert_close(first, path.layers[0].mT @ path.layers[0], atol=1e-11, rtol=1e-11)
    torch.testing.assert_close(second, path.layers[1] @ path.layers[1].mT, atol=1e-11, rtol=1e-11)
    upto_rotation = flow.factors(times[1])
    torch.testing.assert_close(upto_rotation[1] @ upto_rotation[0], path.product[1], atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("balance", [1e3, -1e3])
def test_stiff_networks_agree_with_integration(balance: float) -> None:
    w1, w2, corr = draw((3, 3, 3), balance)
    path = integrate_layers(LinearNetworkFlow(corr), (w1, w2), [1e-3, 0.01], rtol=1e-13, atol=1e-15)
    gap = (BalancedFlow(w1, w2, corr).product([1e-3, 0.01]) - path.product).abs().max()
    assert gap <= 1e-12 * float(corr.abs().max())


@pytest.mark.sampled(10)
@checks(mode_coordinates, by="multi-precision evaluation of the Riccati solution")
@pytest.mark.parametrize("shape", [(3, 3, 3), (3, 2, 4), (2, 5, 3), (4, 3, 2), (3, 1, 3)])
@pytest.mark.parametrize("balance", [0.0, 1e-8, 1.0, -1.0, 1e3, -1e3])
def test_every_block_is_right_to_rounding(shape: tuple[int, int, int], balance: float) -> None:
    if not legal(balance, *shape):
        pytest.skip("no such balanced pair exists")
    w1, w2, corr = draw(shape, balance, seed=3)
    flow = BalancedFlow(w1, w2, corr)
    for t in (0.02, 0.3) if abs(balance) > 10 else (0.1, 4.0):
        precise = precise_gram(w1, w2, corr, float(flow.balance), t)
        assert block_error(flow.gram(t), precise, shape[0]) < 1e-12


@pytest.mark.parametrize("scale", [1e-6, 1e-12])
def test_tiny_starts_keep_their_relative_accuracy(scale: float) -> None:
    w1, w2, corr = draw((4, 5, 3), 0.0, scale=scale)
    flow = BalancedFlow(w1, w2, corr)
    for t in (1.0, 6.0, 15.0):
        assert block_error(flow.gram(t), precise_gram(w1, w2, corr, float(flow.balance), t), 4) < 1e-11


def test_special_starts_are_covered_by_the_same_code(generator: torch.Generator) -> None:
    singular = torch.randn(4, 4, dtype=F64, generator=generator)
    singular[3] = singular[0]
    equal = torch.eye(4, dtype=F64)
    cases = [
        (balanced_pair(0.7, 4, 3, 4, scale=0.3, generator=generator), singular),
        (balanced_pair(0.0, 4, 3, 4, scale=0.3, generator=generator), torch.zeros(4, 4, dtype=F64)),
        (balanced_pair(2.0, 4, 9, 4, row_space=True, scale=0.3, generator=generator), singular),
        (balanced_pair(0.5, 4, 2, 4, generator=generator), equal),
    ]
    for (w1, w2), corr in cases:
        flow = BalancedFlow(w1, w2, corr)
        for t in (1.0, 12.0):
            assert block_error(flow.gram(t), precise_gram(w1, w2, corr, float(flow.balance), t), 4) < 1e-11


def test_one_hidden_unit_is_always_balanced(generator: torch.Generator) -> None:
    w1 = torch.randn(1, 3, dtype=F64, generator=generator)
    w2 = torch.randn(2, 1, dtype=F64, generator=generator)
    corr = torch.randn(2, 3, dtype=F64, generator=generator)
    path = integrate_layers(LinearNetworkFlow(corr), (w1, w2), [0.7], rtol=1e-12, atol=1e-14)
    assert (BalancedFlow(w1, w2, corr).product(0.7) - path.product[0]).abs().max() < 1e-12


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5)),
    st.sampled_from([0.0, 1e-8, -1e-8, 1.0, -1.0, 30.0, -30.0]),
    st.floats(0.01, 3.0),
    st.floats(0.01, 3.0),
)
def test_two_legs_are_one_journey_and_balance_is_kept(shape, balance, first, second) -> None:
    if not legal(balance, *shape):
        return
    w1, w2, corr = draw(shape, balance, seed=5)
    flow = BalancedFlow(w1, w2, corr)
    middle = flow.factors(first)
    again = BalancedFlow(*middle, corr)
    size = float(flow.gram(first + second).abs().max())
    assert (again.gram(second) - flow.gram(first + second)).abs().max() < 1e-11 * max(size, 1e-3)
    assert float((fit_balance(*middle).balance - flow.balance).abs()) < 1e-11 * max(1.0, abs(balance), size)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("balance", [0.0, 1.0, -1.0, 1e3, -1e3])
def test_no_time_overflows(balance: float) -> None:
    for shape in [(3, 3, 3), (4, 3, 3), (3, 3, 4), (4, 2, 3)]:
        if not legal(balance, *shape):
            continue
        w1, w2, corr = draw(shape, balance)
        flow = BalancedFlow(w1, w2, corr)
        gram = flow.gram([0.0, 1e-300, 1e-20, 1e6, 1e9, 1e12, 1e200])
        assert torch.isfinite(gram).all()
        torch.testing.assert_close(gram[1], gram[0], atol=1e-10, rtol=1e-12)


@checks(BalancedFlow.limit, by="truncated singular value decomposition")
@pytest.mark.parametrize("shape", [(3, 3, 3), (4, 2, 3), (2, 3, 5), (5, 3, 2)])
@pytest.mark.parametrize("balance", [1e3, -1e3, 2.0, -2.0])
def test_the_limit_is_the_best_approximation_of_its_rank(shape, balance) -> None:
    if not legal(balance, *shape):
        pytest.skip("no such balanced pair exists")
    w1, w2, corr = draw(shape, balance)
    u, s, vh = torch.linalg.svd(corr, full_matrices=False)
    best = (u[:, : shape[1]] * s[: shape[1]]) @ vh[: shape[1]]
    flow = BalancedFlow(w1, w2, corr)
    assert (flow.limit() - best).abs().max() < 1e-12
    assert (flow.product(1e9) - best).abs().max() < 1e-12


@checks(BalancedFlow.gram_limit, by="eigenvalues known from balance and task")
def test_extra_hidden_directions_end_with_the_balance_on_their_own_eigenvalue() -> None:
    w1, w2, corr = draw((2, 4, 5), 3.0)
    output = BalancedFlow(w1, w2, corr).gram_limit()[2:, 2:]
    eigenvalues = torch.linalg.eigvalsh(output).flip(0)
    mu = torch.hypot(torch.linalg.svdvals(corr), torch.tensor(1.5, dtype=F64))
    expected = torch.cat([mu + 1.5, torch.tensor([3.0, 3.0, 0.0], dtype=F64)])
    torch.testing.assert_close(eigenvalues, expected, atol=1e-12, rtol=0)


def test_equal_singular_values_do_not_break_the_limit_of_a_bottleneck(generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(0.5, 4, 1, 4, scale=0.3, generator=generator)
    flow = BalancedFlow(w1, w2, torch.eye(4, dtype=F64))
    torch.testing.assert_close(flow.limit(), flow.product(1e4), atol=1e-11, rtol=0)


def test_reversal_stays_on_the_saddle_only_if_asked() -> None:
    start = -torch.diag(torch.tensor([3.0, 2.0], dtype=F64))
    w1, w2 = balanced_factors(start, 0.0, 2)
    assert BalancedFlow(w1, w2, -start, saddle_tol=1e-13).limit().abs().max() < 1e-12
    w1, w2 = balanced_factors(start, 0.5, 2)
    torch.testing.assert_close(BalancedFlow(w1, w2, -start).limit(), -start, atol=1e-12, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.floats(1e-3, 100.0), st.floats(0.01, 5.0))
def test_square_networks_do_not_see_the_sign_of_the_balance(n: int, balance: float, t: float) -> None:
    generator = seeded(n)
    product, corr = (torch.randn(n, n, dtype=F64, generator=generator) for _ in range(2))
    plus, minus = (
        BalancedFlow(*balanced_pair(lam, n, n, n, product=product, generator=generator), corr)
        for lam in (balance, -balance)
    )
    size = max(1.0, float(corr.abs().max()), balance)
    assert (plus.product(t) - minus.product(t)).abs().max() < 1e-12 * size


@pytest.mark.parametrize(
    ("balance", "expected"),
    [
        (0.0, [[1.1768614385, 0.4085795415], [0.1001861477, 0.6680957493]]),
        (1.0, [[1.4088688981, 0.5741882519], [0.0899436053, 0.7447370409]]),
        (-1.0, [[1.4088688981, 0.5741882519], [0.0899436053, 0.7447370409]]),
    ],
)
def test_known_products(balance: float, expected: list[list[float]]) -> None:
    w1, w2 = balanced_factors(W0, balance, 2)
    product = BalancedFlow(w1, w2, TASK).product(0.5)
    torch.testing.assert_close(product, torch.tensor(expected, dtype=F64), atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("balance", "expected"),
    [(0.0, 0.0050619038), (1.0, 0.0936621295), (-1.0, 0.0001145520), (50.0, 1.2988109353), (-50.0, 0.0)],
)
def test_known_losses_of_unequal_sizes(balance: float, expected: float) -> None:
    w1, w2 = balanced_factors(TALL_W0, balance, 2)
    assert float(BalancedFlow(w1, w2, TALL_TASK).loss(2.0)) == pytest.approx(expected, abs=1e-10)


@checks(BalancedFlow.weights, by="DOP853 at rtol 1e-12")
def test_weights_follow_integration_with_their_rotation(generator: torch.Generator) -> None:
    for shape, balance in (((4, 4, 4), 1.0), ((3, 2, 4), -0.5), ((2, 3, 5), 20.0), ((3, 5, 2), 0.0)):
        w1, w2, corr = draw(shape, balance)
        times = [0.0, 0.3, 1.0, 3.0]
        first, second = BalancedFlow(w1, w2, corr).weights(times, tol=1e-9)
        path = integrate_layers(LinearNetworkFlow(corr), (w1, w2), times, rtol=1e-12, atol=1e-14)
        size = float(torch.cat([path.layers[0].flatten(), path.layers[1].flatten()]).abs().max())
        assert (first - path.layers[0]).abs().max() < 1e-8 * size
        assert (second - path.layers[1]).abs().max() < 1e-8 * size
        assert torch.equal(first[0], w1)


def test_layer_wise_learning_rates_and_tau_are_mapped_exactly() -> None:
    e1, e2 = 2.0, 0.5
    w1, w2, corr = draw((3, 3, 3), 1.0)
    first, second = w1 * e1**0.5, w2 * e2**0.5  # balanced in the rescaled sense
    flow = BalancedFlow(first, second, corr, tau=2.0, learning_rates=(e1, e2))
    path = integrate_layers(
        LinearNetworkFlow(corr, tau=2.0, learning_rates=(e1, e2)), (first, second), [0.8, 2.0], rtol=1e-12, atol=1e-14
    )
    assert (flow.product([0.8, 2.0]) - path.product).abs().max() < 1e-11
    stacked = torch.cat([path.layers[0].mT, path.layers[1]], dim=-2)
    assert (flow.gram([0.8, 2.0]) - stacked @ stacked.mT).abs().max() < 1e-11
    assert (flow.weights(0.8)[0] - path.layers[0][0]).abs().max() < 1e-7


@checks(BalancedFlow.loss, by="DOP853 at rtol 1e-12")
def test_scaled_white_inputs_are_reduced_exactly() -> None:
    w1, w2, corr = draw((3, 3, 2), -1.0)
    scaled = torch.eye(3, dtype=F64) / 8
    flow = BalancedFlow(w1, w2, corr, input_var=1 / 8)
    path = integrate_layers(LinearNetworkFlow(corr, scaled), (w1, w2), [1.0, 6.0], rtol=1e-12, atol=1e-14)
    assert (flow.product([1.0, 6.0]) - path.product).abs().max() < 1e-10
    torch.testing.assert_close(flow.loss([1.0, 6.0]), path.loss, atol=1e-10, rtol=0)


def test_batches_give_what_single_networks_give() -> None:
    drawn = [draw((3, 2, 4), balance, seed) for seed, balance in enumerate((-2.0, 0.0, 1e-8, 7.0))]
    w1, w2, corr = (torch.stack(column).reshape(2, 2, *column[0].shape) for column in zip(*drawn, strict=True))
    many = BalancedFlow(w1, w2, corr).gram(torch.tensor([0.2, 3.0]))
    assert many.shape == (2, 2, 2, 7, 7)
    for index, single in enumerate(drawn):
        alone = BalancedFlow(*single).gram(torch.tensor([0.2, 3.0]))
        torch.testing.assert_close(many.reshape(2, 4, 7, 7)[:, index], alone, atol=1e-13, rtol=1e-13)


def test_one_task_is_shared_by_a_batch_of_networks() -> None:
    w1, w2 = balanced_pair(torch.tensor([0.0, 1.0]), 2, 2, 3, generator=seeded(0))
    assert BalancedFlow(w1, w2, TALL_TASK).product(1.0).shape == (2, 3, 2)


def test_shapes_follow_time_and_time_zero_is_the_start() -> None:
    w1, w2, corr = draw((3, 2, 4), 1.0)
    flow = BalancedFlow(w1, w2, corr)
    assert flow.product(0.5).shape == (4, 3)
    assert flow.product([0.5]).shape == (1, 4, 3)
    assert flow.product(torch.ones(2, 3)).shape == (2, 3, 4, 3)
    assert flow.loss([]).shape == (0,)
    assert flow.gram([]).shape == (0, 7, 7)
    assert flow.weights([])[0].shape == (0, 2, 3)
    assert torch.equal(flow.product(0.0), w2 @ w1)
    assert torch.equal(flow.weights(0.0)[1], w2)
    assert flow.representations(0.3)[0].shape == (3, 3)


def test_float32_comes_back_as_float32() -> None:
    w1, w2, corr = draw((3, 3, 3), 1.0)
    single = BalancedFlow(w1.float(), w2.float(), corr.float())
    assert single.product(1.0).dtype == torch.float32
    assert (single.product(1.0) - BalancedFlow(w1, w2, corr).product(1.0)).abs().max() < 1e-5  # float32 rounding


@checks(BalancedFlow.ntk, by="autograd Jacobians")
def test_kernel_is_that_of_autograd(generator: torch.Generator) -> None:
    w1, w2, corr = draw((3, 2, 4), 1.0)
    x = torch.randn(5, 3, dtype=F64, generator=generator)
    flow = BalancedFlow(w1, w2, corr)
    first, second = flow.weights(0.6, tol=1e-11)

    def outputs(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (x @ a.mT @ b.mT).mT.reshape(-1)

    jacobians = torch.autograd.functional.jacobian(outputs, (first, second))
    kernel = sum(j.reshape(20, -1) @ j.reshape(20, -1).mT for j in jacobians)
    torch.testing.assert_close(flow.ntk(0.6, x), kernel, atol=1e-11, rtol=0)


def test_representations_of_square_networks_follow_from_the_product() -> None:
    w1, w2, corr = draw((4, 4, 4), -3.0)
    flow = BalancedFlow(w1, w2, corr)
    for measured, predicted in zip(
        flow.representations(0.7), square_representations(flow.product(0.7), flow.balance), strict=True
    ):
        torch.testing.assert_close(measured, predicted, atol=1e-12, rtol=0)


@checks(mode_rates, by="eigenvectors of F")
@pytest.mark.parametrize("balance", [0.0, 1e-8, -1e-8, 2.0, -2.0, 1e3, -1e3])
def test_modes_are_eigenvectors_of_the_field(balance: float, generator: torch.Generator) -> None:
    corr = torch.randn(3, 3, dtype=F64, generator=generator)
    u, s, vh = torch.linalg.svd(corr)
    mu, mix_in, mix_out = mode_rates(s, torch.tensor(balance, dtype=F64))
    identity = torch.eye(3, dtype=F64)
    field = torch.cat([torch.cat([-balance / 2 * identity, corr.mT], 1), torch.cat([corr, balance / 2 * identity], 1)])
    grow, decay = torch.cat([mix_in * vh.mT, mix_out * u]), torch.cat([mix_out * vh.mT, -mix_in * u])
    size = max(1.0, abs(balance))
    assert (field @ grow - mu * grow).abs().max() < 1e-13 * size
    assert (field @ decay + mu * decay).abs().max() < 1e-13 * size


def test_gaussian_weights_are_refused_with_the_measured_deviation(generator: torch.Generator) -> None:
    w1, w2, corr = (torch.randn(4, 4, dtype=F64, generator=generator) for _ in range(3))
    with pytest.raises(OutsideTheory, match=r"relative deviation is 0\.\d+ .*fitted balance .*LinearNetworkFlow"):
        BalancedFlow(w1, w2, corr)


def test_bad_input_is_refused_by_name() -> None:
    w1, w2, corr = draw((3, 2, 4), 1.0)
    with pytest.raises(InvalidInput, match="w1 must be finite; entry"):
        BalancedFlow(w1 * float("nan"), w2, corr)
    with pytest.raises(ShapeError, match=r"corr_yx must have shape \(..., 4, 3\)"):
        BalancedFlow(w1, w2, corr.mT)
    with pytest.raises(ShapeError, match="same hidden size"):
        BalancedFlow(w1[:1], w2, corr)
    with pytest.raises(InvalidInput, match="tau must be a positive number"):
        BalancedFlow(w1, w2, corr, tau=0.0)
    with pytest.raises(InvalidInput, match="learning_rates must be a positive number; got -1"):
        BalancedFlow(w1, w2, corr, learning_rates=(1.0, -1.0))
    with pytest.raises(OutsideTheory, match="balance was given as 3, but the weights have 1"):
        BalancedFlow(w1, w2, corr, balance=3.0)
    with pytest.raises(InvalidInput, match="saddle_tol"):
        BalancedFlow(w1, w2, corr, saddle_tol=-1.0)
    flow = BalancedFlow(w1, w2, corr, balance=1.0)
    with pytest.raises(InvalidInput, match="t must not be negative; got -1"):
        flow.product([0.0, -1.0])
    with pytest.raises(InvalidInput, match="t must be finite"):
        flow.product(float("inf"))
    with pytest.raises(ShapeError, match=r"x must have shape \(samples, 3\)"):
        flow.ntk(1.0, torch.ones(2, 2))
    with pytest.raises(ShapeError, match="batch axes"):
        BalancedFlow(w1.expand(2, 2, 3), w2.expand(2, 4, 2), corr.expand(3, 4, 3))


@pytest.mark.parametrize(("balance", "sizes"), [(0.0, (3, 4, 5)), (1.0, (3, 3, 3)), (-1.0, (5, 4, 3))])
@pytest.mark.parametrize("t", [0.0, 0.5, 100.0])
def test_the_gradient_of_the_loss_is_that_of_differences(balance: float, sizes: tuple[int, int, int], t: float) -> None:
    """It was NaN for every correlation: the logarithm of a structural zero has no slope."""
    stream = torch.Generator().manual_seed(1)
    w1, w2 = balanced_pair(balance, *sizes, scale=0.5, generator=stream)
    corr = torch.randn(sizes[2], sizes[0], dtype=torch.float64, generator=stream)
    along = torch.randn(sizes[2], sizes[0], dtype=torch.float64, generator=stream)

    def loss(step: torch.Tensor) -> torch.Tensor:
        return BalancedFlow(w1, w2, corr + step * along).loss(t)

    step = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(step), step)
    measured = (loss(torch.tensor(1e-5)) - loss(torch.tensor(-1e-5))) / 2e-5
    torch.testing.assert_close(slope, measured, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("values", [(1.0, 1.0), (1.0, 0.0)])
def test_a_gradient_that_singular_vectors_cannot_give_is_refused(values: tuple[float, float]) -> None:
    corr = torch.diag(torch.tensor(values, dtype=torch.float64)).requires_grad_()
    start = 0.3 * torch.eye(2, dtype=torch.float64)
    loss = BalancedFlow(start, start, corr).loss(0.5)
    with pytest.raises(InvalidInput, match="corr_yx needs singular values that are distinct"):
        loss.backward()
