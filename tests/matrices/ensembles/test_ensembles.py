from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices.ensembles import (
    ENSEMBLES,
    GOE,
    AbstractEnsemble,
    Antisymmetric,
    BiInvariant,
    DenseBlock,
    Elliptic,
    Gaussian,
    Haar,
    Normal,
    RectangularGaussian,
    RectangularOrthogonal,
    RotationInvariant,
    SymmetricOrthogonal,
    find_ensemble,
    goe_eigenvalues,
    haar_cosines,
)

FAMILIES: dict[str, AbstractEnsemble] = {
    **ENSEMBLES,
    "elliptic": Elliptic(0.4),
    "rotation-invariant": RotationInvariant([2.0, -1.0, 0.5]),
    "bi-invariant": BiInvariant([0.2, 1.0]),
    "normal": Normal([1.0, 1j, -1j]),
}


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES.keys())
def ensemble(request: pytest.FixtureRequest) -> AbstractEnsemble:
    return request.param


def test_mean_squared_singular_value_is_weight_var(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    matrices = ensemble.sample(120, 0.7, generator=generator, batch=(6,))
    power = matrices.square().sum((-2, -1)) / 120
    # the trace of one Gaussian matrix deviates by sqrt(2)/N, here 1%; the diagonal of GOE adds 1/N
    assert float(power.mean()) == pytest.approx(0.7, rel=0.02)


def test_same_seed_gives_the_same_bits_in_every_dtype(ensemble: AbstractEnsemble) -> None:
    draws = [
        ensemble.sample(8, 1.0, generator=seeded(5), dtype=dtype)
        for dtype in (torch.float64, torch.float64, torch.float32)
    ]
    assert torch.equal(draws[0], draws[1])
    assert draws[2].dtype == torch.float32
    assert torch.equal(draws[0].float(), draws[2])


def test_global_generator_is_untouched(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    before = torch.random.get_rng_state()
    ensemble.sample(6, 1.0, generator=generator)
    assert torch.equal(before, torch.random.get_rng_state())


def test_batched_scales_act_on_their_own_matrix(ensemble: AbstractEnsemble) -> None:
    scales = torch.tensor([0.25, 4.0], dtype=torch.float64)
    both = ensemble.sample(10, scales, generator=seeded(1), batch=(2,))
    unit = ensemble.sample(10, 1.0, generator=seeded(1), batch=(2,))
    torch.testing.assert_close(both, unit * scales.sqrt()[:, None, None])


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_bad_weight_var_is_refused(ensemble: AbstractEnsemble, generator: torch.Generator, bad: float) -> None:
    with pytest.raises(InvalidInput, match="weight_var"):
        ensemble.sample(4, bad, generator=generator)


def test_empty_width_is_refused(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="width must be an integer of at least 1; got 0"):
        ensemble.sample(0, 1.0, generator=generator)


def test_scale_that_does_not_fit_the_batch_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match=r"broadcast to batch \(2,\); got shape \(3,\)"):
        Gaussian().sample(4, torch.ones(3), generator=generator, batch=(2,))


def test_structure_of_the_symmetric_families(generator: torch.Generator) -> None:
    goe = GOE().sample(9, 1.0, generator=generator)
    antisymmetric = Antisymmetric().sample(9, 1.0, generator=generator)
    reflection = SymmetricOrthogonal().sample(8, 0.25, generator=generator)
    assert torch.equal(goe, goe.mT)
    assert torch.equal(antisymmetric, -antisymmetric.mT)
    torch.testing.assert_close(reflection @ reflection, 0.25 * torch.eye(8, dtype=torch.float64))
    assert float(reflection.trace()) == pytest.approx(0, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(width=st.integers(1, 7), rows=st.integers(1, 7), seed=st.integers(0, 1000))
def test_orthogonal_families_are_isometries(width: int, rows: int, seed: int) -> None:
    generator = seeded(seed)
    matrix = RectangularOrthogonal("isometry").sample(rows, width, 1.0, generator=generator)
    small = matrix @ matrix.mT if rows <= width else matrix.mT @ matrix
    torch.testing.assert_close(small, torch.eye(min(rows, width), dtype=torch.float64))


def test_orthogonal_matrices_are_uniform_and_not_only_orthogonal(generator: torch.Generator) -> None:
    """tr O is standard normal for uniform matrices; QR without the sign fix gives a mean far from zero."""
    traces = Haar().sample(6, 1.0, generator=generator, batch=(4000,)).diagonal(dim1=-2, dim2=-1).sum(-1)
    assert abs(float(traces.mean())) < 5 / math.sqrt(4000)  # 5 standard errors
    assert float(traces.square().mean()) == pytest.approx(1, abs=5 * math.sqrt(2 / 4000))
    entries, _ = torch.linalg.qr(torch.randn(4000, 6, 6, generator=generator, dtype=torch.float64))
    assert abs(float(entries.diagonal(dim1=-2, dim2=-1).sum(-1).mean())) > 0.5  # what the fix is for


def test_correlation_of_the_elliptic_family(generator: torch.Generator) -> None:
    matrices = Elliptic(-0.6).sample(60, 1.0, generator=generator, batch=(20,))
    upper = torch.triu_indices(60, 60, 1)
    product = matrices[..., upper[0], upper[1]] * matrices[..., upper[1], upper[0]] * 60
    assert float(product.mean()) == pytest.approx(-0.6, abs=5 * float(product.std()) / math.sqrt(product.numel()))


def test_elliptic_ends_are_symmetric_and_antisymmetric(generator: torch.Generator) -> None:
    symmetric = Elliptic(1.0).sample(7, 1.0, generator=generator)
    antisymmetric = Elliptic(-1.0).sample(7, 1.0, generator=generator)
    torch.testing.assert_close(symmetric, symmetric.mT)
    torch.testing.assert_close(antisymmetric, -antisymmetric.mT)


@pytest.mark.parametrize("tau", [1.1, -2.0, math.nan])
def test_correlation_outside_its_range_is_refused(tau: float) -> None:
    with pytest.raises(InvalidInput, match=r"tau must lie in \[-1, 1\]"):
        Elliptic(tau)


def test_given_eigenvalues_are_kept_up_to_scale(generator: torch.Generator) -> None:
    matrix = RotationInvariant([3.0, 1.0, -1.0]).sample(6, 11 / 3, generator=generator)
    torch.testing.assert_close(
        torch.linalg.eigvalsh(matrix), torch.tensor([-1.0, -1.0, 1.0, 1.0, 3.0, 3.0], dtype=torch.float64)
    )


def test_given_singular_values_are_kept_up_to_scale(generator: torch.Generator) -> None:
    matrix = BiInvariant([1.0, 3.0]).sample(4, 5.0, generator=generator)
    torch.testing.assert_close(torch.linalg.svdvals(matrix), torch.tensor([3.0, 3.0, 1.0, 1.0], dtype=torch.float64))


def test_normal_family_is_normal_and_keeps_its_law(generator: torch.Generator) -> None:
    matrix = Normal([1.0, 1 + 2j, 1 - 2j]).sample(9, 11 / 3, generator=generator)
    torch.testing.assert_close(matrix @ matrix.mT, matrix.mT @ matrix)
    values = torch.linalg.eigvals(matrix)
    pairs = (values.imag.abs() > 1e-8).sum()
    assert int(pairs) in (4, 6, 8)  # two thirds of nine in pairs, rounded at random
    torch.testing.assert_close(values.real, torch.ones(9, dtype=torch.float64))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Normal([1.0, 1j]), "closed under conjugation"),
        (lambda: Normal([0.0]), "not zero"),
        (lambda: RotationInvariant([]), "at least one value that is not zero"),
        (lambda: RotationInvariant([math.nan, 1.0]), "eigenvalues must be finite"),
        (lambda: BiInvariant([-1.0, 1.0]), "singular_values must be at least 0"),
        (lambda: RectangularOrthogonal("wide"), "scale must be 'fan_in' or 'isometry'"),
    ],
)
def test_laws_that_no_matrix_has_are_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]


def test_odd_width_without_real_eigenvalues_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="width must be even when no eigenvalue of the law is real; got 3"):
        Normal([1j, -1j]).sample(3, 1.0, generator=generator)


def test_rectangular_families_have_the_same_entry_variance(generator: torch.Generator) -> None:
    for rows, columns in ((40, 160), (160, 40)):
        for family in (RectangularGaussian(), RectangularOrthogonal()):
            matrix = family.sample(rows, columns, 2.0, generator=generator, batch=(4,))
            assert float(matrix.square().mean()) * columns == pytest.approx(2.0, rel=0.05)


def test_dense_block_has_two_independent_matrices(generator: torch.Generator) -> None:
    up, down = DenseBlock(RectangularGaussian(), hidden=28).sample(7, 1.0, generator=generator, batch=(2,))
    assert up.shape == (2, 28, 7)
    assert down.shape == (2, 7, 28)
    square = DenseBlock(GOE()).sample(7, 1.0, generator=generator)
    assert not torch.equal(square[0], square[1])


def test_square_family_in_a_wide_block_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="hidden must equal the width for the square family 'goe'"):
        DenseBlock(GOE(), hidden=28).sample(7, 1.0, generator=generator)


def test_tridiagonal_sampler_has_the_moments_of_dense_matrices(generator: torch.Generator) -> None:
    sampled = torch.stack([goe_eigenvalues(60, generator=generator) for _ in range(200)])
    dense = torch.linalg.eigvalsh(GOE().sample(60, 1.0, generator=generator, batch=(200,)))
    for power in (2, 4):
        a, b = sampled.pow(power).mean(-1), dense.pow(power).mean(-1)
        error = math.sqrt(float(a.var() + b.var()) / 200)
        assert float(a.mean()) == pytest.approx(float(b.mean()), abs=4 * error)


def test_cosines_give_the_moduli_of_one_minus_an_orthogonal_matrix() -> None:
    cosines = haar_cosines(12, generator=seeded(3))
    orthogonal = Haar().sample(12, 1.0, generator=seeded(3))
    moduli = torch.linalg.svdvals(torch.eye(12, dtype=torch.float64) - 0.6 * orthogonal).square().sort().values
    torch.testing.assert_close((1 + 0.36 - 1.2 * cosines).sort().values, moduli)


def test_families_are_found_by_name() -> None:
    assert find_ensemble("elliptic:0.5") == Elliptic(0.5)
    assert isinstance(find_ensemble("haar"), Haar)
    with pytest.raises(InvalidInput, match=r"unknown ensemble 'har'\. Did you mean 'haar'"):
        find_ensemble("har")
    with pytest.raises(InvalidInput, match="tau must lie"):
        find_ensemble("elliptic:7")
