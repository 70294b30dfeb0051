from __future__ import annotations

import dataclasses
import inspect
import math
from typing import ClassVar

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices.ensembles import (
    GOE,
    AbstractEnsemble,
    Antisymmetric,
    BiInvariant,
    DenseBlock,
    Elliptic,
    Facts,
    Gaussian,
    Haar,
    Normal,
    RectangularGaussian,
    RectangularOrthogonal,
    RotationInvariant,
    SymmetricOrthogonal,
    catalogue,
    find_ensemble,
    goe_eigenvalues,
    haar_cosines,
    register_ensemble,
)
from stranger_families import ThreePoint


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


def test_elliptic_ends_are_symmetric_and_antisymmetric(generator: torch.Generator) -> None:
    symmetric = Elliptic(1.0).sample(7, 1.0, generator=generator)
    antisymmetric = Elliptic(-1.0).sample(7, 1.0, generator=generator)
    torch.testing.assert_close(symmetric, symmetric.mT)
    torch.testing.assert_close(antisymmetric, -antisymmetric.mT)


@pytest.mark.parametrize("tau", [1.1, -2.0, math.nan])
def test_correlation_outside_its_range_is_refused(tau: float) -> None:
    with pytest.raises(InvalidInput, match=r"tau must be a number that lies in \[-1, 1\]"):
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
    assert find_ensemble("elliptic:1e-1") == Elliptic(0.1)
    assert isinstance(find_ensemble("haar"), Haar)
    own = RotationInvariant([1.0, -1.0])
    assert find_ensemble(own) is own


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("har", r"unknown ensemble 'har'\. Did you mean 'haar'"),
        ("elliptic:7", r"tau must be a number that lies in \[-1, 1\].*got 7"),
        ("elliptic:1e3", r"tau must be a number that lies in \[-1, 1\].*got 1000"),
        ("elliptic:nan", r"tau must be a number that lies in \[-1, 1\]"),
        ("elliptic:x", "elliptic:TAU needs a number as tau; got 'x'"),
        ("elliptic", "unknown ensemble 'elliptic'. Did you mean 'elliptic:...'"),
        ("", "unknown ensemble ''"),
        (3, "ensemble must be a name or an AbstractEnsemble object; got 3 of type int"),
        (None, "ensemble must be a name or an AbstractEnsemble object; got None"),
        (Haar, "ensemble must be a name or an AbstractEnsemble object"),
    ],
)
def test_what_is_no_family_is_refused_in_words(given: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        inspect.unwrap(find_ensemble)(given)  # users run without the type checks of the tests


def test_registered_family_is_found_and_names_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "ENSEMBLES", dict(catalogue.ENSEMBLES))
    family = register_ensemble(ThreePoint())
    assert find_ensemble("three-point") is family
    taken = type("Taken", (ThreePoint,), {"name": "haar"})()
    with pytest.raises(InvalidInput, match="the name 'haar' is taken by another family"):
        register_ensemble(taken)
    with pytest.raises(InvalidInput, match="must be a family, an AbstractEnsemble object; got str"):
        inspect.unwrap(register_ensemble)("three-point")


@dataclasses.dataclass(frozen=True)
class Sparse(AbstractEnsemble):
    """A stranger's family with a parameter: the share of entries that are not zero."""

    share: float = 0.5
    law: ClassVar[str] = "normal entries, of which a share is kept"

    @classmethod
    def parse(cls, text: str) -> Sparse:
        return cls(float(text))

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        kept = torch.rand(*batch, width, width, generator=generator, dtype=torch.float64) < self.share
        return kept * Gaussian().unit(width, generator=generator, batch=batch) / self.share**0.5


def test_a_strangers_family_with_a_parameter_is_found_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "ENSEMBLES", dict(catalogue.ENSEMBLES))
    monkeypatch.setattr(catalogue, "PARAMETRIC_ENSEMBLES", dict(catalogue.PARAMETRIC_ENSEMBLES))
    assert register_ensemble(Sparse) is register_ensemble(Sparse) is Sparse
    assert find_ensemble("sparse:0.1") == Sparse(0.1)
    usual = register_ensemble(Sparse(0.3))
    assert find_ensemble("sparse") is usual
    assert find_ensemble("sparse:0.1") == Sparse(0.1)
    with pytest.raises(InvalidInput, match="the name 'sparse' is taken by another family"):
        register_ensemble(Sparse(0.2))  # it replaced the one before
    with pytest.raises(InvalidInput, match="the class ThreePoint has no parse for a parameter; register an object"):
        register_ensemble(ThreePoint)
    for name in ("elliptic", "haar"):
        with pytest.raises(InvalidInput, match=f"the name '{name}' is taken by another family"):
            register_ensemble(type("Taken", (Sparse,), {"name": name}))


def test_a_family_without_a_name_bears_that_of_its_class() -> None:
    class OwnFamily(AbstractEnsemble):
        law = "none"

        def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
            return torch.eye(width + 1, dtype=torch.float64)

    class ItsChild(OwnFamily):
        pass

    assert (OwnFamily.name, OwnFamily.label, ItsChild.name) == ("own-family", "own-family", "its-child")
    with pytest.raises(InvalidInput, match=r"unit of the family 'own-family' must give matrices of shape \(3, 3\)"):
        OwnFamily().sample(3, 1.0, generator=torch.Generator())


@pytest.mark.parametrize("facts", [{"excess": -1.0}, {"excess": float("nan")}, {"excess": 1.0, "tau": 2.0}])
def test_facts_that_no_family_can_have_are_refused(facts: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=r"(excess|tau) must be a number"):
        Facts(**facts)
