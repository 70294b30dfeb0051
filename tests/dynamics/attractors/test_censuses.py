from __future__ import annotations

import pytest
import torch

from attention_cases import clustering_flow, gaussian_flow
from separatrix.core import InvalidInput
from separatrix.dynamics import AttentionFlow, Contradiction, census, family_table


def ensemble(generator: torch.Generator) -> AttentionFlow:
    return gaussian_flow(3, generator)


def test_an_instance_is_the_same_alone_and_in_any_order() -> None:
    together = census(ensemble, 3, n_tokens=8, n_starts=6, seed=4)
    alone = census(ensemble, [2], n_tokens=8, n_starts=6, seed=4).instances[0]
    assert alone.fine == together.instances[2].fine
    torch.testing.assert_close(alone.eigenvalues, together.instances[2].eigenvalues, rtol=0, atol=0)


def test_counts_add_up_and_every_end_is_certified() -> None:
    result = census(ensemble, 3, n_tokens=6, n_starts=8, seed=2)
    assert result.n_runs == 24
    assert sum(result.families.values()) == 24
    for instance in result.instances:
        assert sum(instance.coarse.values()) == sum(instance.fine.values()) == 8
        assert instance.n_stable + instance.n_not_converged == 8
        assert 0 <= instance.unseen <= 1
    assert {row["family"] for row in result.table()} == set(result.families)


def test_both_senses_of_several_ends_are_reported() -> None:
    result = census([clustering_flow()], n_tokens=10, n_starts=60, seed=0)
    instance = result.instances[0]
    assert instance.reached_several
    assert instance.multilabel
    assert result.reached_several()[0] == result.reached_several("labels")[0] == 1.0
    low, high = instance.fraction("consensus v1")[1:]
    assert low < 197 / 400 < high  # an independent run of 400 starts
    with pytest.raises(InvalidInput, match=r"unknown sense 'label'\. Did you mean 'labels'"):
        result.reached_several("label")


def test_an_end_point_that_the_check_forbids_is_an_error() -> None:
    asked = []

    def check(instance: int, eigenvector: int, n1: int, n2: int) -> bool:
        asked.append((instance, eigenvector, n1 + n2))
        return False

    with pytest.raises(Contradiction, match=r"instance 0 has a certified stable bipartite end point on eigenvector 0"):
        census([clustering_flow()], n_tokens=10, n_starts=30, seed=0, check=check)
    assert asked == [(0, 0, 10)]


def test_starts_are_added_until_the_interval_is_narrow() -> None:
    result = census([clustering_flow()], n_tokens=10, n_starts=40, seed=0, half_width=0.09)
    instance = result.instances[0]
    assert instance.n_starts > 40
    assert max((instance.fraction(f)[2] - instance.fraction(f)[1]) / 2 for f in instance.families) <= 0.09


def test_an_ensemble_needs_a_number_of_instances() -> None:
    with pytest.raises(InvalidInput, match="n_instances must be given when ensemble draws"):
        census(ensemble, n_tokens=4, n_starts=2, seed=0)


def test_flows_by_number_get_the_starts_of_that_number() -> None:
    flows = [clustering_flow() for _ in range(3)]
    together = census(flows, n_tokens=6, n_starts=4, seed=1)
    alone = census({2: flows[2]}, n_tokens=6, n_starts=4, seed=1)
    assert alone.instances[0].to_dict() == together.instances[2].to_dict()


def test_the_table_follows_from_counts_alone() -> None:
    rows = family_table([{"consensus": 3, "bipartite": 1}, {"consensus": 1}])
    assert [row["family"] for row in rows] == ["consensus", "bipartite"]
    assert [row["runs"] for row in rows] == [4, 1]
    assert [row["share"] for row in rows] == [0.875, 0.125]
    assert [row["standard error"] for row in rows] == pytest.approx([0.125, 0.125], rel=1e-15)
    assert [row["instances"] for row in rows] == [2, 1]


def test_shares_are_kept_in_double_precision() -> None:
    assert family_table([{"consensus": 1, "other": 2}])[0]["share"] == 2 / 3
