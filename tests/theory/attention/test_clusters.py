from __future__ import annotations

import numpy
import pytest
import torch

import reference_attention as ref
from helpers import checks, elements_computed, seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.theory.attention import bipartite_spectrum, cluster_spectrum
from separatrix.theory.attention.clusters import tangent_basis

COUPLING = [[2.177, -0.374, -1.305], [-2.376, 1.363, 0.712], [2.747, -0.034, 1.789]]
VALUE = [[1.019, 0.896, -0.307], [0.896, 0.167, 0.557], [-0.307, 0.557, -0.017]]
CLUSTERS = [[0.84318379, 0.53723214, 0.02056021], [-0.71952196, -0.65198950, -0.23916071]]


def unit(*shape: int, generator: torch.Generator) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64, generator=generator), dim=-1)


@checks(cluster_spectrum, by="autodiff tangent Jacobian of all tokens, 100 random cases")
def test_block_spectrum_is_that_of_the_dense_jacobian_at_any_clustered_point() -> None:
    generator = seeded(3)
    for index in range(100):
        dim, m, beta = 2 + index % 4, 1 + index % 3, (0.4, 1.0, 2.0)[index % 3]
        value = ref.random_value(dim, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
        clusters = unit(m, dim, generator=generator)
        sizes = torch.randint(1, 4, (m,), generator=generator)
        x = clusters.repeat_interleave(sizes, dim=0)
        dense = ref.tangent_spectrum(ref.velocity_of(ref.softmax_attention(coupling, beta), value), x)
        spectrum = cluster_spectrum(coupling, value, clusters, sizes, beta)
        scale = float(torch.linalg.matrix_norm(value, 2)) * (1 + float(torch.linalg.matrix_norm(coupling, 2)))
        assert ref.spectral_distance(spectrum.expand(), dense) < 1e-10 * scale
        speed = ref.velocity_of(ref.softmax_attention(coupling, beta), value)(x).norm(dim=-1).max()
        assert float(spectrum.residual) == pytest.approx(float(speed), abs=1e-12)


def test_the_acceptance_clustering_equilibrium_is_stable() -> None:
    spectrum = cluster_spectrum(COUPLING, VALUE, CLUSTERS, [8, 2])
    assert spectrum.stable is True
    assert spectrum.quotient_abscissa == pytest.approx(-0.179521, abs=1e-6)
    assert spectrum.transversal_abscissa == pytest.approx(-0.275604, abs=1e-6)
    assert spectrum.expand().shape == (20,)
    # the bipartite state of the same sizes is not: the clustering has taken over beyond the window's edge
    assert bipartite_spectrum(COUPLING, VALUE, 0, 8, 2).stable is False


def test_a_point_that_moves_is_never_called_stable() -> None:
    spectrum = cluster_spectrum(COUPLING, VALUE, [[0.9, 0.1**0.5, 0.3], CLUSTERS[1]], [8, 2])
    assert float(spectrum.residual) > 0.01
    assert spectrum.stable is False


def test_opposite_clusters_on_an_eigenvector_are_the_bipartite_state() -> None:
    value = numpy.diag([3.0, 1.0, -4.0])
    coupling = numpy.diag([0.9, 0.2, -1.1])
    clusters = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    blocks = cluster_spectrum(coupling, value, clusters, [5, 3]).expand()
    assert ref.spectral_distance(blocks, bipartite_spectrum(coupling, value, 0, 5, 3).expand()) < 1e-12


def test_real_weights_report_motion_and_splitting_apart() -> None:
    weights = cluster_spectrum(COUPLING, VALUE, CLUSTERS, [0.8, 0.2])
    assert weights.is_weighted
    assert weights.quotient_abscissa == pytest.approx(-0.179521, abs=1e-6)
    assert weights.transversal_abscissa == pytest.approx(-0.275604, abs=1e-6)


def test_single_tokens_have_no_transversal_part() -> None:
    assert cluster_spectrum(COUPLING, VALUE, CLUSTERS, [1, 1]).transversal_abscissa == -numpy.inf


def test_every_large_cluster_contributes_minus_its_multiplier_when_the_sphere_is_roomy(
    generator: torch.Generator,
) -> None:
    value = ref.random_value(5, generator, symmetric=False)
    coupling = torch.randn(5, 5, dtype=torch.float64, generator=generator)
    clusters, sizes = unit(3, 5, generator=generator), [2, 3, 4]
    x = clusters.repeat_interleave(torch.tensor(sizes), dim=0)
    pull = ref.softmax_attention(coupling)(x) @ x @ value.mT
    gamma = (pull * x).sum(-1)[[0, 2, 5]]
    transversal = cluster_spectrum(coupling, value, clusters, sizes).transversal
    assert float((transversal + gamma.unsqueeze(-1)).abs().amin(-1).max()) < 1e-10


def test_a_hundred_thousand_tokens_in_three_clusters_cost_what_ten_cost(generator: torch.Generator) -> None:
    value = ref.random_value(20, generator, symmetric=True)
    coupling = torch.randn(20, 20, dtype=torch.float64, generator=generator)
    clusters = unit(3, 20, generator=generator)
    few = elements_computed(lambda: cluster_spectrum(coupling, value, clusters, [5, 3, 2]))
    many = elements_computed(lambda: cluster_spectrum(coupling, value, clusters, [50_000, 30_000, 20_000]))
    assert 0 < many == few


def test_batches_of_points_are_independent(generator: torch.Generator) -> None:
    value, clusters = ref.random_value(4, generator, symmetric=True), unit(6, 2, 4, generator=generator)
    coupling = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    together = cluster_spectrum(coupling, value, clusters, [3, 2])
    for index in range(6):
        alone = cluster_spectrum(coupling, value, clusters[index], [3, 2])
        assert ref.spectral_distance(together.expand()[index], alone.expand()) < 1e-12


def test_tangent_bases_are_orthonormal_and_orthogonal_to_the_point(generator: torch.Generator) -> None:
    points = torch.cat(
        [unit(50, 3, generator=generator), torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)]
    )
    basis = tangent_basis(points)
    assert float((basis.mT @ basis - torch.eye(2)).abs().max()) < 1e-14
    assert float((basis.mT @ points.unsqueeze(-1)).abs().max()) < 1e-14


@pytest.mark.parametrize(
    ("clusters", "sizes", "error", "message"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], [1, 1], ShapeError, r"clusters must have shape \(..., m, 3\)"),
        ([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [1, 1], InvalidInput, "norm of cluster 1 differs from 1 by 1"),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1], ShapeError, "one number for each of 2 clusters"),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1, -2], InvalidInput, "sizes must be positive; entry 1 is -2"),
        ([[float("nan"), 0.0, 0.0]], [1], InvalidInput, r"clusters must be finite; entry \(0, 0\) is nan"),
    ],
)
def test_bad_clusters_are_named(clusters, sizes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cluster_spectrum(COUPLING, VALUE, clusters, sizes)
