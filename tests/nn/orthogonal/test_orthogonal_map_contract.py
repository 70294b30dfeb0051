"""What every orthogonal parametrisation promises. A map of yours is one line in MAPS."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.nn import (
    AbstractOrthogonalMap,
    Cayley,
    ComplexCayley,
    Exp,
    Fft,
    FullCapacity,
    Givens,
    Householder,
    LieU,
    OrthogonalMatrix,
    SingularMargin,
    UnitaryRecipe,
    find_orthogonal_map,
    make_orthogonal_,
    orthogonality_error,
)

N = 8


class Reflection(AbstractOrthogonalMap):
    """A stranger's map: one reflection."""

    name = "reflection"
    free_names = ("normal",)

    def forward(self, *free: Tensor) -> Tensor:
        unit = free[0] / free[0].norm()
        return torch.eye(self.n, dtype=unit.dtype) - 2 * torch.outer(unit, unit)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        if float(values[0]) > -0.9 or float(values[1]) < 0.9:
            raise InvalidInput("not a reflection")
        return (vectors[:, 0],)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        return (torch.randn(self.n, dtype=torch.float64, generator=generator),)


MAPS: dict[str, Callable[[], AbstractOrthogonalMap]] = {
    "exp": lambda: Exp(N),
    "exp, every third": lambda: Exp(N, rebase=3),
    "exp, static": lambda: Exp(N, rebase=None),
    "cayley": lambda: Cayley(N),
    "cayley, odd": lambda: Cayley(7, n_negative=2),
    "householder": lambda: Householder(N),
    "householder, few": lambda: Householder(N, n_reflections=3),
    "givens": lambda: Givens(N),
    "givens, full": lambda: Givens(N, capacity=N),
    "fft": lambda: Fft(N),
    "urnn": lambda: UnitaryRecipe(N),
    "full_capacity": lambda: FullCapacity(N),
    "lie_u": lambda: LieU(N),
    "complex_cayley": lambda: ComplexCayley(N),
    "svd": lambda: SingularMargin(N, margin=0.2),
    "size one": lambda: Exp(1),
    "stranger: reflection": lambda: Reflection(N),
}
SMALL = {"householder, few", "givens", "givens, full", "fft", "urnn", "stranger: reflection"}
"""Do not reach, or cannot be assigned, every member."""


pytestmark = pytest.mark.sampled(4, across="name")


@pytest.fixture(params=MAPS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def holder(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> OrthogonalMatrix:
    return OrthogonalMatrix(MAPS[name](), None, generator=spawn(seed, "maps"), dtype=dtype)


def member_of(name: str) -> Tensor:
    """A random member found without the map."""
    chart = MAPS[name]()
    if chart.is_complex:
        return torch.linalg.qr(torch.randn(chart.n, chart.n, dtype=torch.complex128, generator=spawn(3, "member")))[0]
    q = torch.linalg.qr(torch.randn(chart.n, chart.n, dtype=torch.float64, generator=spawn(3, "member")))[0]
    return q if torch.linalg.det(q) > 0 else torch.cat([-q[:1], q[1:]])


def deviation(chart: AbstractOrthogonalMap, matrix: Tensor) -> float:
    """How far singular values are outside of what the map allows."""
    values = torch.linalg.svdvals(matrix.detach())
    return float(((values - 1).abs() - chart.margin).clamp_min(0).max())


def test_samples_are_members_and_repeat_with_their_seed(name: str) -> None:
    state = torch.get_rng_state()
    matrix = MAPS[name]().sample(generator=spawn(0, "maps"))
    assert MAPS[name]().in_manifold(matrix)
    assert torch.equal(matrix, MAPS[name]().sample(generator=spawn(0, "maps")))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_sample_survives_the_way_back_and_forth(name: str) -> None:
    chart = MAPS[name]()
    matrix = chart.sample(generator=spawn(1, "maps"))
    free = chart.right_inverse(matrix)
    assert torch.allclose(chart(*(free if isinstance(free, tuple) else (free,))), matrix, atol=1e-9)


def test_any_member_can_be_assigned_or_is_refused_in_words(name: str) -> None:
    held, matrix = holder(name), member_of(name)
    if name in SMALL:
        with pytest.raises(InvalidInput):
            held.assign_(matrix)
        return
    assert torch.allclose(held.assign_(matrix)(), matrix.to(held().dtype), atol=1e-6)


def test_what_is_no_member_is_refused(name: str) -> None:
    held = holder(name)
    n = held.map.n
    with pytest.raises(InvalidInput, match=r"must be (orthogonal|unitary).*; the largest entry"):
        held.assign_(2 * torch.eye(n, dtype=held().dtype))
    with pytest.raises(ShapeError, match="square matrix of size"):
        held.assign_(torch.eye(n + 1, dtype=held().dtype))
    assert not held.map.in_manifold(torch.full((n, n), float("nan"), dtype=held().dtype))


def test_gradients_are_those_of_central_differences(name: str) -> None:
    held = holder(name)
    weight = torch.randn(held.map.n, held.map.n, dtype=torch.float64, generator=spawn(5, "weight"))
    other = torch.randn(held.map.n, held.map.n, dtype=torch.float64, generator=spawn(6, "weight"))

    def value() -> Tensor:
        matrix = held()
        return (matrix.real * weight).sum() + ((matrix.imag * other).sum() if matrix.is_complex() else 0)

    held.zero_grad()
    value().backward()
    for parameter in held.parameters():
        if parameter.numel() == 0:
            continue
        direction = torch.randn(parameter.shape, dtype=torch.float64, generator=spawn(7, "direction"))
        slope = float((parameter.grad * direction).sum())
        start, ends = parameter.detach().clone(), []
        held.eval()  # nothing is absorbed between the two
        for sign in (1, -1):
            with torch.no_grad():
                parameter.copy_(start + sign * 1e-5 * direction)
                ends.append(float(value()))
                parameter.copy_(start)
        held.train()
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-7)


@pytest.mark.sampled(5)
def test_second_derivatives_are_right(name: str) -> None:
    held = holder(name)
    free = tuple(p.detach().clone().requires_grad_() for p in held.parameters())
    if sum(p.numel() for p in free) > 40 or any(p.numel() == 0 for p in free):
        free = ()
    if free:
        torch.autograd.gradgradcheck(lambda *f: torch.view_as_real(held.map(*f).to(torch.complex128)), free)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("n_steps", [30, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("optimiser", ["sgd", "adam", "rmsprop", "adamw"])
def test_a_plain_loop_with_any_optimiser_stays_on_the_manifold(name: str, optimiser: str, n_steps: int) -> None:
    held = holder(name, dtype=torch.float32)
    n = held.map.n
    target = torch.linalg.qr(torch.randn(n, n, generator=spawn(9, "target")))[0]
    parameters = [p for p in held.parameters() if p.numel()]
    if not parameters:
        return
    make = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.02, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters, lr=0.02),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=0.02),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=0.02, weight_decay=0.1),
    }[optimiser]()
    losses = []
    for _ in range(n_steps):
        make.zero_grad()
        loss = (held() - target).abs().square().sum()
        loss.backward()
        make.step()
        losses.append(loss.item())
        assert deviation(held.map, held()) < 2e-5
    assert min(losses) < losses[0]


def test_a_huge_update_stays_on_the_manifold(name: str) -> None:
    held = holder(name, dtype=torch.float32)
    with torch.no_grad():
        for parameter in held.parameters():
            parameter.add_(300 * torch.randn(parameter.shape, generator=spawn(2, "huge")))
    assert deviation(held.map, held()) < (2e-5 if isinstance(held.map, Exp | FullCapacity) and held.map.rebase == 1
                                          else 5e-3)  # fmt: skip


def test_state_dict_deepcopy_and_dtype(name: str) -> None:
    held, other = holder(name), holder(name, seed=1)
    with torch.no_grad():
        for parameter in held.parameters():
            parameter.add_(0.01)
    other.load_state_dict(held.state_dict())
    assert torch.equal(other.eval()(), held.eval()())
    assert torch.equal(copy.deepcopy(held)(), held())
    assert torch.allclose(held.to(torch.float32)().abs(), other().abs().float(), atol=1e-5)


def test_it_keeps_a_weight_of_any_layer_orthogonal(name: str) -> None:
    if MAPS[name]().is_complex:
        layer: nn.Module = nn.Linear(N, N, dtype=torch.complex64)
    else:
        layer = nn.Linear(MAPS[name]().n, MAPS[name]().n)
    before = make_orthogonal_(layer, MAPS[name](), start="usual").weight.detach().clone()  # type: ignore[operator, union-attr]
    layer.load_state_dict({key: value.clone() for key, value in layer.state_dict().items()})
    step = torch.optim.Adam(layer.parameters(), lr=0.05)
    inputs = torch.randn(5, MAPS[name]().n, generator=spawn(0, "inputs"))
    for _ in range(5):
        step.zero_grad()
        layer(inputs.to(before.dtype)).abs().pow(3).sum().backward()
        step.step()
    assert deviation(MAPS[name](), layer.weight) < 2e-5  # type: ignore[arg-type]
    if MAPS[name]().n > 1:
        assert not torch.equal(layer.weight, before)  # type: ignore[arg-type]


def test_names_stand_for_the_usual_options() -> None:
    assert isinstance(find_orthogonal_map("givens", 6), Givens)
    with pytest.raises(InvalidInput, match=r"unknown map 'cayly'\. Did you mean 'cayley'"):
        find_orthogonal_map("cayly", 6)
    with pytest.raises(InvalidInput, match="map must be of size 6; got one of size 4"):
        find_orthogonal_map(Exp(4), 6)


def test_orthogonality_error_counts_nan_as_infinite() -> None:
    assert orthogonality_error(torch.full((2, 2), float("nan"))) == float("inf")
