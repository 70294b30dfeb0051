"""Families that theory has never seen: what they state carries them through, what they do not state is refused."""

from __future__ import annotations

import math

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.matrices.ensembles import GOE, AbstractEnsemble, RotationInvariant
from separatrix.theory import critical_weight_var, kernels, mean_field, mean_response, resolvent_moment
from separatrix.theory.equilibrium_networks import families
from separatrix.theory.free_probability import Semicircle, TwoPoint
from stranger_families import Circulant, SignedPermutation, ThreePoint

TWIN = RotationInvariant([-1.0, 0.0, 0.0, 1.0])
"""The law of ``ThreePoint`` by another route: equally likely values instead of masses."""


def test_no_family_is_named_in_theory() -> None:
    source = (families.__file__ or "").replace(".pyc", ".py")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    assert "isinstance" not in text
    assert "match " not in text


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ensemble", [ThreePoint(), SignedPermutation()], ids=lambda e: e.name)
def test_moments_of_a_strangers_family_match_sampled_matrices(ensemble: AbstractEnsemble, order: int) -> None:
    width, count, v = 200, 10, 0.25
    w = ensemble.sample(width, v, generator=torch.Generator().manual_seed(4), batch=(count,))
    response = torch.linalg.inv(torch.eye(width, dtype=torch.float64) - w)
    gram = response if order == 1 else response @ response.mT
    values = gram.square().sum((-2, -1)) / width
    error = float(values.std()) / math.sqrt(count)
    expected = resolvent_moment(ensemble, v, order)
    assert float(values.mean()) == pytest.approx(expected, abs=4 * error + 0.02 * expected)


def test_masses_and_repeated_values_are_the_same_law() -> None:
    for tied in (True, False):
        assert resolvent_moment(ThreePoint(), 0.2, 2, tied) == pytest.approx(resolvent_moment(TWIN, 0.2, 2, tied))
    assert mean_response(ThreePoint(), 0.2) == pytest.approx(mean_response(TWIN, 0.2))
    own, other = (mean_field(family, "tanh", weight_var=0.3) for family in (ThreePoint(), TWIN))
    assert (own.q, own.chi, own.radius, own.replicon) == pytest.approx(
        (other.q, other.chi, other.radius, other.replicon), rel=1e-9
    )


def test_statistics_of_a_strangers_family_match_simulated_networks() -> None:
    generator = torch.Generator().manual_seed(9)
    w = ThreePoint().sample(240, 0.36, generator=generator, batch=(10,))
    x = torch.randn(10, 6, 240, generator=generator, dtype=torch.float64)
    z = x.clone()
    for _ in range(200):
        z = (z + torch.tanh(z @ w.mT) + x) / 2
    values = z.square().mean((-2, -1))
    theory = mean_field(ThreePoint(), "tanh", weight_var=0.36)
    assert float(values.mean()) == pytest.approx(theory.q, abs=4 * float(values.std()) / math.sqrt(10) + 0.02)


def test_family_without_facts_is_refused_in_words() -> None:
    for call in (
        lambda: resolvent_moment(Circulant(), 0.1),
        lambda: mean_field(Circulant(), "tanh", weight_var=0.1),
        lambda: critical_weight_var(Circulant(), "tanh"),
        lambda: kernels(Circulant(), "tanh", weight_var=0.1),
    ):
        with pytest.raises(OutsideTheory, match="no theory covers the ensemble 'circulant'; sample matrices"):
            call()


def test_nonlinear_networks_need_a_uniform_basis() -> None:
    for call in (
        lambda: mean_field(SignedPermutation(), "tanh", weight_var=0.1),
        lambda: critical_weight_var(SignedPermutation(), "tanh"),
        lambda: kernels(SignedPermutation(), "tanh", weight_var=0.1),
        lambda: resolvent_moment(SignedPermutation(), 0.1, 2, tied=False),
    ):
        with pytest.raises(OutsideTheory, match="need a family whose basis is uniform; that of 'signed-permutation'"):
            call()


def test_names_and_objects_are_accepted_alike() -> None:
    assert resolvent_moment("goe", 0.1) == resolvent_moment(GOE(), 0.1)
    assert mean_field("goe", "tanh", weight_var=0.1).q == mean_field(GOE(), "tanh", weight_var=0.1).q
    assert critical_weight_var("elliptic:1", "tanh") == pytest.approx(critical_weight_var(GOE(), "tanh"))
    assert kernels("haar", "tanh", weight_var=0.1).nngp > 0
    with pytest.raises(InvalidInput, match="tau must be a number that lies in"):
        mean_field("elliptic:1e3", "tanh", weight_var=0.1)


def test_laws_follow_from_facts() -> None:
    assert families.symmetric_law(GOE()) == Semicircle(1.0)
    assert families.symmetric_law(RotationInvariant([3.0, -3.0])) == TwoPoint(1.0)
    law = families.symmetric_law(ThreePoint())
    assert law is not None
    assert law.moments(4).tolist() == pytest.approx([0, 1, 0, 2])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("values", [[2**0.5, 0.0], [1.6**0.5, 0.4**0.5], [-(2**0.5), 0.0]])
def test_radius_of_a_symmetric_family_without_both_signs_matches_sampled_matrices(values: list[float]) -> None:
    family = RotationInvariant(values)
    found = mean_field(family, "tanh", weight_var=0.1, input_var=1.0)
    generator = seeded(3)
    matrix = family.sample(600, 0.1, generator=generator)
    x = torch.randn(600, generator=generator, dtype=torch.float64)
    z = x
    for _ in range(200):
        z = torch.tanh(matrix @ z) + x
    slopes = 1 - torch.tanh(matrix @ z) ** 2
    radius = torch.linalg.eigvals(slopes[:, None] * matrix).abs().max()
    assert float(found.radius) == pytest.approx(float(radius), rel=0.03)  # the edge of one matrix of this width
