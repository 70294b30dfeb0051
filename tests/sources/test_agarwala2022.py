"""Each erratum of agarwala2022, verified by algebra, quadrature or sampled matrices; one check per key."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import pytest
import torch

from helpers import seeded
from separatrix.matrices.ensembles import GOE, Gaussian, Haar, goe_eigenvalues
from separatrix.sources import agarwala2022
from separatrix.theory import divergence_exponent, mean_field, output_variance, resolvent_moment
from separatrix.theory.free_probability import Bernoulli, Semicircle, free_product, semicircular_resolvent

CHECKS: dict[str, Callable[[], None]] = {}
V = 0.1
S = math.sqrt(1 - 4 * V)


def erratum(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        CHECKS[f"agarwala2022-{name}"] = function
        return function

    return register


def generator() -> torch.Generator:
    return seeded(4)


def linear_outputs(family: Gaussian | GOE, v: float, x: torch.Tensor, count: int) -> torch.Tensor:
    width = len(x)
    w = family.sample(width, v, generator=generator(), batch=(count,))
    return torch.linalg.solve(torch.eye(width, dtype=torch.float64) - w, x)


@erratum("eq6")
def untied_weights_are_fresh_at_every_step() -> None:
    x, stream = torch.ones(80, dtype=torch.float64), generator()
    one = Gaussian().sample(80, 0.5, generator=stream)
    tied, untied, steps = x, x, []
    for _ in range(200):
        fresh = Gaussian().sample(80, 0.5, generator=stream)
        steps = [float((one @ tied + x - tied).norm()), float((fresh @ untied + x - untied).norm())]
        tied, untied = one @ tied + x, fresh @ untied + x
    assert steps[0] < 1e-9 < 1 < steps[1]


@erratum("eq42")
def an_exception_may_be_the_whole_event() -> None:
    delta = 0.1
    usual, odd = torch.ones(10), torch.ones(10).index_fill(0, torch.tensor([3]), -1.0)
    below = {name: float((values < 0).double().mean()) for name, values in (("usual", usual), ("odd", odd))}
    assert float(((usual - odd).abs() < 0.5).double().mean()) == pytest.approx(1 - delta)
    assert not below["usual"] >= (1 - delta) * below["odd"]  # printed (42), z* usual and z_t odd
    assert not below["odd"] <= below["usual"] / (1 - delta)  # printed (43), the other way round
    assert below["usual"] >= below["odd"] - delta - 1e-12
    assert below["odd"] <= below["usual"] + delta + 1e-12


@erratum("eq44")
def the_lower_bound_loses_what_the_upper_gains() -> None:
    values = torch.arange(1000, dtype=torch.float64) / 1000  # uniform: B = 1
    share = float((values < 0.5).double().mean())
    slack, delta = 0.1, 0.01
    assert not share >= (1 - delta) * (share + slack)
    assert share >= share - slack - delta
    assert float((values < 0.5 - slack).double().mean()) >= share - slack - 1e-12


@erratum("eq46")
def the_bound_is_on_the_difference_of_two_laws() -> None:
    before = torch.rand(100_000, dtype=torch.float64, generator=generator())
    after = before + torch.where(torch.arange(100_000) % 50 == 0, 1.0, 0.05)
    gaps = [abs(float((after < z).double().mean() - (before < z).double().mean())) for z in (0.2, 0.5, 0.8)]
    assert min(gaps) > 0.04  # not the printed zero
    assert max(gaps) <= 0.05 + 0.02 + 0.005


@erratum("eq7")
def finite_time_variance() -> None:
    x, v, steps, count = torch.ones(50, dtype=torch.float64), 0.5, 3, 1500
    w = Gaussian().sample(50, v, generator=generator(), batch=(count,))
    z = torch.zeros(count, 50, dtype=torch.float64)
    for _ in range(steps):
        z = (w @ z[..., None])[..., 0] + x
    variance = float(z.var(0).mean())
    assert variance == pytest.approx(v + v**2, rel=0.05)
    assert abs(variance - steps * v**steps) > 0.2


@erratum("eq9")
def mean_is_not_the_input() -> None:
    mean = float(linear_outputs(GOE(), V, torch.ones(100, dtype=torch.float64), 200).mean())
    assert mean == pytest.approx(2 / (1 + S), rel=0.02)
    assert mean > 1.1


@erratum("catalan")
def odd_traces_vanish() -> None:
    assert Semicircle(V).moments(4).tolist() == pytest.approx([0, V, 0, 2 * V**2], abs=1e-12)


@erratum("eq11")
def variance_is_positive() -> None:
    z = linear_outputs(GOE(), V, torch.ones(60, dtype=torch.float64), 3000)
    right = 2 / (S * (1 + S)) - 4 / (1 + S) ** 2
    assert output_variance(GOE(), V) == pytest.approx(right)
    assert float(z.var(0).mean()) == pytest.approx(right, rel=0.1)  # O(1/N) and sampling
    assert 1 / S - (1 - S) / (2 * V) - 1 < 0


def gaussian_length_variance() -> tuple[float, torch.Tensor, int]:
    """Var over x of z.z for one matrix M, and the squared singular values of M."""
    m = torch.linalg.inv(torch.eye(30, dtype=torch.float64) - Gaussian().sample(30, 0.3, generator=generator()))
    x = torch.randn(200_000, 30, generator=generator(), dtype=torch.float64)
    return float((x @ m.mT).square().sum(-1).var()), torch.linalg.svdvals(m).square(), 30


@erratum("eq12")
@erratum("eq68")
@erratum("eq72")
def prefactors_of_the_length_variance() -> None:
    variance, squares, n = gaussian_length_variance()
    trace = float(squares.square().mean())
    assert variance / n**2 == pytest.approx(2 / n * trace, rel=0.05)
    assert 2 / n**2 * float(squares.square().sum()) == pytest.approx(2 / n * trace)
    assert variance / n > 10 * (2 / n * trace)  # Eqs. (12), (67): one N too few
    assert abs(variance / n**2 - trace / n) > 0.3 * trace / n  # Eq. (68): half


@erratum("eq14")
def untied_is_not_the_printed_sum() -> None:
    v, width, count = 0.7, 120, 10
    printed = 2 / (1 - v) ** 2 + 1 / (1 - v * v) ** 2 - 2 / (1 - v * v)
    eye = torch.eye(width, dtype=torch.float64)
    for family in (Gaussian(), GOE()):
        source, m = generator(), eye.expand(count, width, width)
        for _ in range(60):
            m = eye + family.sample(width, v, generator=source, batch=(count,)) @ m
        values = (m @ m.mT).square().sum((-2, -1)) / width
        right = resolvent_moment(family, v, 2, tied=False)
        error = float(values.std()) / math.sqrt(count)
        assert float(values.mean()) == pytest.approx(right, abs=4 * error + 0.05 * right)
        assert float(values.mean()) > 1.25 * printed


@erratum("eq18")
def orthogonal_needs_two_over_n() -> None:
    v, n = 0.5, 200
    values = (
        torch.linalg.svdvals(torch.eye(n, dtype=torch.float64) - Haar().sample(n, v, generator=generator(), batch=(6,)))
        ** -4
    )
    assert float(values.mean()) == pytest.approx((1 + v) / (1 - v) ** 3, rel=0.05)
    printed = 2 / (1 - v) ** 3 - 1 / (1 - v) ** 2
    assert printed == pytest.approx((1 + v) / (1 - v) ** 3)  # the trace itself: sigma^2 is 2/N times it


@erratum("eq20")
def exponents_are_not_in_the_denominator() -> None:
    right = ((1 - 4 * V) ** -2.5 - (1 - 4 * V) ** -1.5) / (2 * V)
    assert right == pytest.approx(2 * resolvent_moment(GOE(), V, 2))
    assert (1 / (1 - 4 * V) ** -2.5 - 1 / (1 - 4 * V) ** -1.5) / (2 * V) < 0


@erratum("sec223-width")
def edge_fluctuates_by_the_two_thirds_power() -> None:
    source = generator()
    spreads = [
        float(torch.stack([goe_eigenvalues(n, generator=source)[-1] for _ in range(300)]).std()) for n in (40, 320)
    ]
    slope = math.log(spreads[1] / spreads[0]) / math.log(8)
    assert slope == pytest.approx(-2 / 3, abs=0.1)  # 300 samples: 4% on each spread, 0.03 on the slope
    assert slope > -1.3  # N >> delta^(-2/3) would need the power 3/2


@erratum("sec223-untied")
def untied_exponents_differ() -> None:
    assert [divergence_exponent(family, 2, tied=False) for family in (Gaussian(), GOE(), Haar())] == [3, 3, 2]


@erratum("eq25-goe")
def free_independence_fails() -> None:
    w = GOE().sample(400, 0.36, generator=generator(), batch=(6,))
    x = torch.randn(6, 4, 400, generator=generator(), dtype=torch.float64)
    z = x.clone()
    for _ in range(300):
        z = (z + (z @ w.mT).clamp(-1, 1) + x) / 2
    values = (z @ w.mT).square().mean((-2, -1))
    error = float(values.std()) / math.sqrt(6)
    assert float(values.mean()) == pytest.approx(mean_field(GOE(), weight_var=0.36).h_var, abs=4 * error + 0.03)
    assert float(values.mean()) > 2 * mean_field(Gaussian(), weight_var=0.36).h_var


@erratum("eq30")
def disc_not_annulus() -> None:
    assert float(torch.linalg.eigvals(Gaussian().sample(400, 1.0, generator=generator())).abs().min()) < 0.1


@erratum("eq38")
def norm_of_a_power() -> None:
    norm = float(torch.linalg.matrix_norm(Gaussian().sample(400, 1.0, generator=generator()), 2)) ** 2
    assert norm == pytest.approx(4, rel=0.05)
    assert norm > 3  # printed: 1


@erratum("eq47")
def second_moment_depends_on_the_coordinate() -> None:
    v, x = 0.5, torch.ones(60, dtype=torch.float64)
    x[0] = 6.0
    z, power = linear_outputs(Gaussian(), v, x, 2000), float(x.square().mean())
    median = float(z[:, 0].sub(x[0]).square().median())  # heavy tails: the median of a squared Gaussian is 0.4549
    assert median / 0.4549 == pytest.approx(v / (1 - v) * power, rel=0.15)
    assert float(z[:, 0].median()) == pytest.approx(6.0, rel=0.05)  # so E z^2 is near 36, not 2 x.x/N = 3.2


@erratum("eq51")
def finite_time_spread_starts_at_zero() -> None:
    def right(t: int) -> float:
        return (V - V**t) / (1 - V)

    assert right(1) == 0
    assert right(3) == pytest.approx(V + V**2)
    assert V / (1 - V) - 1 < 0  # printed, t = 1


@erratum("eq54")
def variance_of_the_output_not_of_its_square() -> None:
    v, count, width = 0.5, 800, 30
    source, z = generator(), torch.zeros(count, width, 1, dtype=torch.float64)
    for _ in range(14):
        z = Gaussian().sample(width, v, generator=source, batch=(count,)) @ z + 1
    assert float(z.var(0).mean()) == pytest.approx(v / (1 - v), rel=0.1)
    assert float(z.square().var(0).mean()) > 3


@erratum("eq65")
def derivative_of_the_catalan_series() -> None:
    v = torch.tensor(V, dtype=torch.float64, requires_grad=True)
    ((1 - (1 - 4 * v).sqrt()) / (2 * v)).backward()  # type: ignore[no-untyped-call]
    assert float(v.grad) == pytest.approx(-(1 - S) / (2 * V**2) + 1 / (V * S))  # type: ignore[arg-type]


@erratum("eq66")
def second_moment_of_symmetric_matrices() -> None:
    series = sum((2 * k + 1) * math.comb(2 * k, k) / (k + 1) * V**k for k in range(200))  # Eq. (63), which is right
    assert series == pytest.approx(2 / S - (1 - S) / (2 * V))
    assert series == pytest.approx(resolvent_moment(GOE(), V))
    assert 1 / S - (1 - S) / (2 * V) < 0.2


@erratum("eq86")
def prefactor_near_criticality() -> None:
    t = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    y = t / (1 - t)
    integral = float((y.sqrt() / (1 + y) ** 4 / (1 - t) ** 2).mean())
    assert integral == pytest.approx(math.pi / 16, rel=1e-4)
    delta = 1e-6
    assert resolvent_moment(GOE(), (0.5 - delta) ** 2, 2) * delta**2.5 == pytest.approx(1 / 32, rel=1e-4)


@erratum("eq86-text")
def squared_second_moment_scales_as_the_inverse() -> None:
    assert 2 * divergence_exponent(GOE(), 1) == 1


def gradients(n: int = 6) -> tuple[torch.Tensor, ...]:
    w = Gaussian().sample(n, 0.3, generator=generator()).requires_grad_(True)
    x = torch.randn(2, n, generator=generator(), dtype=torch.float64)
    z = x
    for _ in range(300):
        z = torch.tanh(z @ w.mT) + x
    v = torch.randn(n, generator=generator(), dtype=torch.float64)
    first, second = (torch.autograd.grad(z[k] @ v, w, retain_graph=True)[0] for k in (0, 1))
    return first, second, w.detach(), z.detach(), v


@erratum("eq93")
def slopes_act_on_the_adjoint() -> None:
    first, _, w, z, v = gradients()
    d = 1 - torch.tanh(w @ z[0]) ** 2
    wrong = 1 - torch.tanh(z[0]) ** 2
    eye = torch.eye(len(v), dtype=torch.float64)
    right = torch.outer(d * torch.linalg.solve(eye - w.mT * d, v), z[0])
    torch.testing.assert_close(first, right)
    printed = torch.outer(torch.linalg.solve((eye - wrong[:, None] * w).mT, v), wrong * z[0])
    assert float((printed - first).norm() / first.norm()) > 0.2


@erratum("eq94")
def kernel_needs_both_inputs() -> None:
    first, second, *_ = gradients()
    assert abs(float((first * second).sum() - (first * first).sum())) > 1e-3


@erratum("eq95")
def kernel_pairs_slopes_with_responses() -> None:
    _, _, w, z, _ = gradients()
    d = 1 - torch.tanh(z @ w.mT) ** 2
    eye = torch.eye(len(w), dtype=torch.float64)
    r = [torch.linalg.inv(eye - d[k][:, None] * w) for k in (0, 1)]
    right = (r[0] @ torch.diag(d[0] * d[1]) @ r[1].mT).trace() * (z[0] @ z[1])
    total = torch.zeros((), dtype=torch.float64)
    for unit in eye:  # the sum over unit readouts
        parts = [torch.outer(d[k] * torch.linalg.solve(eye - w.mT * d[k], unit), z[k]) for k in (0, 1)]
        total = total + (parts[0] * parts[1]).sum()
    torch.testing.assert_close(right, total)
    printed = (r[0].mT @ r[1]).trace() * ((d[0] * z[0]) @ (d[1] * z[1]))
    assert abs(float(printed / total) - 1) > 0.05


@erratum("eq108")
def inverse_moment_function_of_the_semicircle() -> None:
    y = torch.tensor([0.2, 0.7], dtype=torch.float64)
    z = Semicircle(1.0).inverse_moment(y)
    torch.testing.assert_close(z, (y + 2 + 1 / y).sqrt())
    back = z * Semicircle(1.0).stieltjes(torch.complex(z, torch.zeros_like(z))).real - 1
    torch.testing.assert_close(back, y)
    assert (-0.3 + 2 + 1 / -0.3) < 0  # so the root is imaginary for negative arguments


@erratum("eq122")
def sign_of_the_projected_semicircle() -> None:
    p, z = 0.6, torch.tensor([1.2 + 0.3j], dtype=torch.complex128)
    root = torch.sqrt(z - 2 * p**0.5) * torch.sqrt(z + 2 * p**0.5)
    solved = free_product(Bernoulli(p), Semicircle(1.0)).stieltjes(z)
    torch.testing.assert_close(solved, (1 - p) / z + (z - root) / 2)
    assert float(((1 - p) / z - (z - root) / 2 - solved).abs()) > 0.5


@erratum("eq128")
def corner_of_a_block_inverse() -> None:
    z, a, b, c = 2.0, 0.5, 0.7, 1.3
    block = torch.tensor([[z, -a], [-b, -c]], dtype=torch.float64)  # z - 0, -V; -Q, -P
    assert float(torch.linalg.inv(block)[0, 0]) == pytest.approx(1 / (z + a * b / c))


@erratum("eq154")
def first_block_of_the_inverse_pencil() -> None:
    w = Gaussian().sample(6, 0.5, generator=generator())
    eye, zero = torch.eye(6, dtype=torch.complex128), torch.zeros(6, 6, dtype=torch.complex128)
    x, iy = (w + w.mT).to(eye) / 2, (w - w.mT).to(eye) / 2
    rows = ((zero, eye, zero), (eye, -eye + 2 * x, -x - iy), (zero, -x + iy, eye))
    block = torch.linalg.inv(torch.cat([torch.cat(row, 1) for row in rows]))[:6, :6]
    factor = eye - w
    torch.testing.assert_close(block, factor @ factor.mT)
    printed = torch.linalg.inv(factor).mT @ torch.linalg.inv(factor)
    assert float((block - printed).abs().max()) > 0.1


@erratum("eq180")
def sign_in_the_middle_row() -> None:
    v, z = 0.4, torch.tensor([3 + 2j], dtype=torch.complex128)
    constant = torch.zeros(1, 3, 3, dtype=torch.complex128)
    constant[:, 0, 0], constant[:, 1, 1], constant[:, 2, 2] = z, 1, -1
    constant[:, 0, 1] = constant[:, 1, 0] = -1
    covariance = torch.zeros(3, 3, 3, 3, dtype=torch.float64)
    covariance[1, 1, 1, 1] = 2 * v
    for i, k, j, m in ((1, 1, 1, 2), (1, 2, 1, 1), (1, 1, 2, 1), (2, 1, 1, 1)):
        covariance[i, k, j, m] = -v
    covariance[1, 2, 2, 1] = covariance[2, 1, 1, 2] = v
    g = semicircular_resolvent(constant, covariance)[0]
    right = 1 + v * (2 * g[1, 1] - 3 * g[1, 2] + g[2, 2]) * g[1, 1]
    torch.testing.assert_close(-g[0, 1] + g[1, 1], right)
    assert float((g[0, 1] + g[1, 1] - right).abs()) > 0.1


@pytest.mark.sampled(12)
@pytest.mark.parametrize("key", [item.key for item in agarwala2022.ERRATA])
def test_erratum_is_verified(key: str) -> None:
    CHECKS[key]()
    assert "assert" in inspect.getsource(CHECKS[key]), "this check cannot fail"


def test_no_check_without_its_erratum() -> None:
    assert set(CHECKS) == {item.key for item in agarwala2022.ERRATA}
