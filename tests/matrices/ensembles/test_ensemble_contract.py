"""What every matrix family claims, run for every family. A new family is entered by one line in ``FAMILIES``."""

from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, ShapeError
from separatrix.matrices.ensembles import (
    ENSEMBLES,
    GOE,
    AbstractEnsemble,
    BiInvariant,
    DenseBlock,
    Elliptic,
    Facts,
    Gaussian,
    Normal,
    RotationInvariant,
    initialise_,
)
from stranger_families import Boastful, Circulant, SignedPermutation, ThreePoint

FAMILIES: dict[str, AbstractEnsemble] = {
    **ENSEMBLES,
    "elliptic": Elliptic(0.4),
    "elliptic, negative": Elliptic(-0.6),
    "rotation-invariant": RotationInvariant([2.0, -1.0, 0.5]),
    "bi-invariant": BiInvariant([0.2, 1.0]),
    "normal": Normal([1.0, 1j, -1j]),
    "signed permutation": SignedPermutation(),
    "three points": ThreePoint(),
    "circulant": Circulant(),
}
WITH_FACTS = {name: family for name, family in FAMILIES.items() if family.facts() is not None}
WIDTH, COUNT = 120, 12


pytestmark = pytest.mark.sampled(4, across="ensemble")


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES.keys())
def ensemble(request: pytest.FixtureRequest) -> AbstractEnsemble:
    return request.param


@pytest.fixture(params=WITH_FACTS.values(), ids=WITH_FACTS.keys())
def knowing(request: pytest.FixtureRequest) -> AbstractEnsemble:
    return request.param


def known(ensemble: AbstractEnsemble) -> Facts:
    facts = ensemble.facts()
    assert facts is not None
    return facts


def samples(ensemble: AbstractEnsemble) -> torch.Tensor:
    return ensemble.sample(WIDTH, 1.0, generator=torch.Generator().manual_seed(3), batch=(COUNT,))


def assert_claimed(values: torch.Tensor, claimed: float) -> None:
    """The mean over matrices is the claimed number, within 5 standard errors and the 1/N of finite width."""
    error = float(values.std()) / math.sqrt(len(values))
    assert float(values.mean()) == pytest.approx(claimed, abs=5 * error + 4 / WIDTH)


def trace(matrices: torch.Tensor) -> torch.Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1).mean(-1)


def alternating_moment(ensemble: AbstractEnsemble) -> torch.Tensor:
    """tr A W B W^T A W B W^T for diagonals of signs: tends to (tr W)^4 exactly when W is free from diagonals."""
    w = samples(ensemble)
    signs = torch.tensor([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]], dtype=torch.float64).repeat(1, WIDTH // 4)
    product = signs[0][:, None] * w * signs[1] @ w.mT
    return trace(product @ product)


def test_mean_squared_singular_value_is_weight_var(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    matrices = ensemble.sample(WIDTH, 0.7, generator=generator, batch=(COUNT,))
    assert_claimed(trace(matrices.mT @ matrices) / 0.7, 1.0)


def test_claimed_moments_are_those_of_sampled_matrices(knowing: AbstractEnsemble) -> None:
    facts, w = known(knowing), samples(knowing)
    gram = w.mT @ w
    assert_claimed(trace(w), facts.mean)
    assert_claimed(trace(w @ w), facts.square)
    assert_claimed(trace(w @ w @ w.mT), facts.third)
    assert_claimed(trace(gram @ gram) - 1, facts.excess)


def test_claimed_correlation_is_that_of_opposite_entries(knowing: AbstractEnsemble) -> None:
    facts = known(knowing)
    if facts.tau is None:
        return
    upper = torch.triu_indices(WIDTH, WIDTH, 1)
    w = samples(knowing)
    product = w[..., upper[0], upper[1]] * w[..., upper[1], upper[0]] * WIDTH
    assert float(product.mean()) == pytest.approx(facts.tau, abs=5 * float(product.std()) / math.sqrt(product.numel()))


def test_claimed_symmetry_holds_exactly(knowing: AbstractEnsemble) -> None:
    facts, w = known(knowing), samples(knowing)
    assert bool(torch.allclose(w, w.mT, atol=1e-12)) == facts.is_symmetric
    assert bool(torch.allclose(w, -w.mT, atol=1e-12)) == facts.is_antisymmetric


def test_claimed_eigenvalues_are_those_of_sampled_matrices(knowing: AbstractEnsemble) -> None:
    facts, w = known(knowing), samples(knowing)
    if facts.eigenvalues is None:
        return
    assert facts.masses is not None
    torch.testing.assert_close(w @ w.mT, w.mT @ w, atol=1e-10, rtol=0)
    values = torch.linalg.eigvals(w)
    near = (values[..., None] - facts.eigenvalues).abs() < 1e-8
    assert bool(near.any(-1).all())
    torch.testing.assert_close(near.double().mean((0, 1)), facts.masses, atol=2 / WIDTH, rtol=0)


def test_claimed_two_sided_invariance_has_the_moments_of_independent_bases(knowing: AbstractEnsemble) -> None:
    if not known(knowing).bi_invariant:
        return
    w = samples(knowing)
    for word in (w, w @ w, w @ w @ w.mT, w @ w @ w @ w.mT, w @ w @ w.mT @ w @ w @ w.mT):
        assert_claimed(trace(word), 0.0)


def test_claimed_uniform_basis_is_free_from_diagonals(knowing: AbstractEnsemble) -> None:
    if known(knowing).uniform_basis:
        assert_claimed(alternating_moment(knowing), known(knowing).mean ** 4)


def test_a_false_claim_is_noticed() -> None:
    """A signed permutation that says it is uniform: its moments pass, its alternating moment is 1 and not 0."""
    assert float(alternating_moment(Boastful()).mean()) > 0.5
    with pytest.raises(AssertionError):
        test_claimed_uniform_basis_is_free_from_diagonals(Boastful())


def test_same_seed_gives_the_same_bits_in_every_dtype(ensemble: AbstractEnsemble) -> None:
    draws = [
        ensemble.sample(8, 1.0, generator=torch.Generator().manual_seed(5), dtype=dtype)
        for dtype in (torch.float64, torch.float64, torch.float32)
    ]
    assert torch.equal(draws[0], draws[1])
    assert draws[2].dtype == torch.float32
    assert torch.equal(draws[0].float(), draws[2])


def test_global_generator_is_untouched(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    before = torch.random.get_rng_state()
    ensemble.sample(6, 1.0, generator=generator)
    initialise_(torch.empty(6, 6), ensemble, generator=generator)
    assert torch.equal(before, torch.random.get_rng_state())


def test_batched_scales_act_on_their_own_matrix(ensemble: AbstractEnsemble) -> None:
    scales = torch.tensor([0.25, 4.0], dtype=torch.float64)
    both = ensemble.sample(10, scales, generator=torch.Generator().manual_seed(1), batch=(2,))
    unit = ensemble.sample(10, 1.0, generator=torch.Generator().manual_seed(1), batch=(2,))
    torch.testing.assert_close(both, unit * scales.sqrt()[:, None, None])
    assert bool((unit[0] != unit[1]).any())
    assert ensemble.sample(4, 1.0, generator=torch.Generator().manual_seed(1), batch=(2, 3)).shape == (2, 3, 4, 4)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_bad_weight_var_is_refused(ensemble: AbstractEnsemble, generator: torch.Generator, bad: float) -> None:
    with pytest.raises(InvalidInput, match="weight_var"):
        ensemble.sample(4, bad, generator=generator)


@pytest.mark.parametrize("bad", [0, -1])
def test_bad_width_is_refused(ensemble: AbstractEnsemble, generator: torch.Generator, bad: int) -> None:
    with pytest.raises(InvalidInput, match="width must be an integer of at least 1; got"):
        ensemble.sample(bad, 1.0, generator=generator)


def test_initialiser_fills_squares_and_only_forms_that_exist(
    ensemble: AbstractEnsemble, generator: torch.Generator
) -> None:
    weight = torch.empty(60, 60, dtype=torch.float64)
    assert initialise_(weight, ensemble, 0.5, generator=generator) is weight
    assert float(weight.square().sum()) / 60 == pytest.approx(0.5, rel=0.5)  # one matrix
    wide = torch.zeros(30, 60, dtype=torch.float64)
    if ensemble.rectangular() is None:
        with pytest.raises(ShapeError, match=f"must be square for the {ensemble.name} family"):
            initialise_(wide, ensemble, generator=generator)
        assert not bool(wide.any())
    else:
        initialise_(wide, ensemble, 0.5, generator=generator)
        assert float(wide.square().mean()) * 60 == pytest.approx(0.5, rel=0.1)


def test_square_form_and_rectangular_form_are_one_family(ensemble: AbstractEnsemble) -> None:
    form = ensemble.rectangular()
    if form is None:
        return
    square = ensemble.sample(9, 0.3, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(form.sample(9, 9, 0.3, generator=torch.Generator().manual_seed(2)), square)


def test_dense_block_takes_the_family(ensemble: AbstractEnsemble, generator: torch.Generator) -> None:
    up, down = DenseBlock(ensemble).sample(8, 1.0, generator=generator)
    assert up.shape == down.shape == (8, 8)
    block = DenseBlock(ensemble, hidden=20)
    if block.is_square:
        with pytest.raises(InvalidInput, match="hidden must equal the width for the square family"):
            block.sample(8, 1.0, generator=generator)
    else:
        assert [part.shape for part in block.sample(8, 1.0, generator=generator)] == [(20, 8), (8, 20)]


def test_words_for_people_are_there(ensemble: AbstractEnsemble) -> None:
    assert ensemble.name
    assert ensemble.law
    assert ensemble.label
    assert ensemble.colour
    assert ensemble.marker


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Facts.normal([2.0, -2.0]), "mean squared modulus of 1, the unit scale; got 4"),
        (lambda: Facts.normal([1.0, -1.0], [1.0]), "masses must be one number"),
        (lambda: Facts.normal([1.0, math.nan]), "eigenvalues must be finite"),
        (lambda: Facts.two_sided(-0.5), "excess must be a number of at least 0"),
    ],
)
def test_facts_that_cannot_be_are_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]


def test_families_differ_in_what_they_claim() -> None:
    assert known(GOE()).is_symmetric
    assert known(Gaussian()).bi_invariant
    assert not known(Gaussian()).is_symmetric
