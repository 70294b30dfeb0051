from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attention_cases import CLUSTERING_POINT, clustering_flow
from separatrix.core import InvalidInput
from separatrix.dynamics import AbstractFlow, AttentionFlow, OjaFlow, find_equilibria, partitions
from stranger_flows import Lorenz, Ring


def test_partitions_are_those_of_the_integer() -> None:
    assert list(partitions(6, 3)) == [(4, 1, 1), (3, 2, 1), (2, 2, 2)]
    assert list(partitions(2, 3)) == []


def test_search_finds_consensus_bipartite_and_clustering(generator: torch.Generator) -> None:
    found = find_equilibria(clustering_flow(), 10, generator=generator, sizes=[(10,), (8, 2)], n_random=24)
    consensus = {item.eigenvector: item.stable for item in found if item.kind == "consensus"}
    assert consensus == {0: True, 1: False, 2: False}
    pairs = {item.eigenvector: item.stable for item in found if item.kind == "bipartite"}
    assert pairs == {0: False, 1: False, 2: False}  # (2, 8) lies outside every stable window here
    clusterings = [item for item in found if item.kind == "clustering" and item.stable]
    assert len(clusterings) == 1
    expected = CLUSTERING_POINT * clusterings[0].clusters[0, 0].sign()
    torch.testing.assert_close(clusterings[0].clusters, expected, rtol=0, atol=1e-7)


def test_known_equilibria_are_not_reported_again(generator: torch.Generator) -> None:
    first = find_equilibria(clustering_flow(), 4, generator=generator, sizes=[(4,)])
    again = find_equilibria(clustering_flow(), 4, generator=generator, sizes=[(4,)], known=first)
    assert first
    assert not again


def test_bad_searches_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match=r"sizes must sum to n_tokens = 5; got \(3, 3\)"):
        find_equilibria(clustering_flow(), 5, generator=generator, sizes=[(3, 3)])
    masked = AttentionFlow.from_coupling(torch.eye(2), torch.eye(2), mask="causal")
    with pytest.raises(InvalidInput, match="one weight instance without mask and bias"):
        find_equilibria(masked, 5, generator=generator)


class Product(AbstractFlow):
    """dx/dt = (g(x), 0) for one function g: its zeros are the equilibria."""

    def __init__(self, g: Callable[[Tensor, Tensor], Tensor], still: int = 1) -> None:
        self.g, self.still = g, still

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        return torch.stack([self.g(x[..., 0], x[..., 1]), (1 - self.still) * -x[..., 1]], dim=-1)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        shape = torch.broadcast_shapes(x.shape, u.shape)
        here, along = x.expand(shape).contiguous(), u.expand(shape).contiguous()
        return torch.func.jvp(self.velocity, (here,), (along,))[1]

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Product:
        return self

    def to(self, dtype: torch.dtype) -> Product:
        return self


def grid(count: int, width: float) -> Tensor:
    side = torch.linspace(-width, width, count, dtype=torch.float64)
    return torch.cartesian_prod(side, side).unsqueeze(1) + 0.013


def test_a_circle_of_equilibria_is_one_continuum() -> None:
    found = find_equilibria(Ring(radius=2.0), starts=grid(7, 3.0))
    assert sorted((item.dimension, item.index) for item in found) == [(0, 2), (1, 0)]
    circle = next(item for item in found if item.dimension == 1)
    assert float(circle.clusters.norm()) == pytest.approx(2.0, abs=1e-9)
    assert circle.marginal
    assert not circle.stable


@pytest.mark.slow  # one circle above, and two continua of triangles below, are found every day
def test_two_circles_are_two_continua() -> None:
    def both(a: Tensor, b: Tensor) -> Tensor:
        return ((a - 3) ** 2 + b**2 - 1) * ((a + 3) ** 2 + b**2 - 1) / 30

    found = find_equilibria(Product(both), starts=grid(8, 4.5))
    assert [item.dimension for item in found] == [1, 1]
    assert sorted(float(item.clusters[0, 0].sign()) for item in found) == [-1.0, 1.0]


@pytest.mark.slow
def test_a_line_without_end_is_one_continuum() -> None:
    found = find_equilibria(Product(lambda a, b: 0.2 * b - a), starts=grid(5, 2.0))
    assert [item.dimension for item in found] == [1]


@pytest.mark.slow
def test_a_whole_plane_of_equilibria_has_two_dimensions() -> None:
    found = find_equilibria(Product(lambda a, b: 0 * a), starts=grid(5, 2.0))
    assert [item.dimension for item in found] == [2]


@pytest.mark.slow
def test_a_degenerate_zero_is_one_point_and_no_continuum() -> None:
    # Newton's method stops beside a triple zero, at another place from every start.
    found = find_equilibria(Product(lambda a, b: -(a**3), still=0), starts=grid(5, 1.0))
    assert [item.dimension for item in found] == [0]


def test_isolated_equilibria_stay_apart() -> None:
    starts = torch.tensor([[[1.0, 2.0, 20.0]], [[-8.0, -7.0, 25.0]], [[8.0, 9.0, 27.0]], [[0.1, 0.2, 0.3]]])
    found = find_equilibria(Lorenz(), starts=starts)
    assert sorted(item.dimension for item in found) == [0, 0, 0]


@pytest.mark.parametrize(
    ("sizes", "n_random"), [([(4,)], 6), pytest.param([(4,), (3, 1)], 12, marks=pytest.mark.slow)], ids=["one", "two"]
)
def test_a_repeated_eigenvalue_gives_a_circle_of_consensus(
    sizes: list[tuple[int, ...]], n_random: int, generator: torch.Generator
) -> None:
    value = torch.diag(torch.tensor([2.0, 2.0, -1.0], dtype=torch.float64))
    coupling = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    flow = AttentionFlow.from_coupling(coupling, value)
    found = find_equilibria(flow, 4, generator=generator, sizes=sizes, n_random=n_random)
    consensus = [(item.eigenspace, item.dimension) for item in found if item.kind == "consensus"]
    assert sorted(consensus) == [((0, 1), 1), ((2,), 0)]


@pytest.mark.slow
def test_balanced_polygons_of_the_oja_flow_are_one_continuum(generator: torch.Generator) -> None:
    # Three unit vectors in the plane with sum zero: a triangle, which may turn, and its mirror image.
    flow = OjaFlow(torch.diag(torch.tensor([1.0, 0.4], dtype=torch.float64)))
    found = find_equilibria(flow, 3, generator=generator, sizes=[(1, 1, 1)], n_random=24)
    triangles = [item for item in found if item.kind == "polygonal"]
    assert [item.dimension for item in triangles] == [1, 1]
