from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices import attention_instance

ENSEMBLES = ["gaussian", "scaled", "quarter", "uniform", "positive"]


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_value_is_symmetric_with_a_positive_largest_eigenvalue(ensemble: str, generator: torch.Generator) -> None:
    instance = attention_instance(2, generator=generator, ensemble=ensemble, batch=(300,))
    assert torch.equal(instance.value, instance.value.mT)
    assert bool((torch.linalg.eigvalsh(instance.value)[:, -1] > 0).all())
    assert torch.equal(instance.coupling, instance.query.mT @ instance.key)


@pytest.mark.parametrize(
    ("ensemble", "mean", "variance"),
    [
        ("gaussian", 0.0, 1.0),
        ("scaled", 0.0, 1 / 20),
        ("quarter", 0.0, 20**-0.5),
        ("uniform", 0, 1 / 3),
        ("positive", 0.5, 1 / 12),
    ],
)
def test_entries_of_query_and_key_have_the_stated_moments(
    ensemble: str, mean: float, variance: float, generator: torch.Generator
) -> None:
    query = attention_instance(20, generator=generator, ensemble=ensemble, batch=(50,)).query
    # 20000 entries: five standard errors of the mean and of the variance
    assert float(query.mean()) == pytest.approx(mean, abs=5 * (variance / 20000) ** 0.5)
    assert float(query.var()) == pytest.approx(variance, rel=5 * (2 / 20000) ** 0.5)


def test_same_seed_gives_the_same_bits_and_the_global_generator_is_untouched() -> None:
    before = torch.get_rng_state()
    first = attention_instance(3, generator=seeded(1), batch=(4,))
    second = attention_instance(3, generator=seeded(1), batch=(4,))
    assert torch.equal(first.value, second.value)
    assert torch.equal(torch.get_rng_state(), before)


def test_unknown_ensembles_and_sizes_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match=r"unknown ensemble 'gausian'\. Did you mean 'gaussian'"):
        attention_instance(3, generator=generator, ensemble="gausian")
    with pytest.raises(InvalidInput, match="dim must be an integer of at least 2; got 1"):
        attention_instance(1, generator=generator)
