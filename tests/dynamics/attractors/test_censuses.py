from __future__ import annotations

import dataclasses

import pytest
import torch

from attention_cases import clustering_flow, gaussian_flow
from separatrix.core import InvalidInput, Outcome
from separatrix.dynamics import (
    AbstractFlow,
    AttentionFlow,
    Contradiction,
    Trajectory,
    census,
    family_table,
    integrate,
    random_tokens,
)
from separatrix.dynamics.attractors import censuses


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


def test_a_start_that_is_lost_is_counted_as_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    # With V = I every state of equal tokens is an equilibrium: whatever stands for NaN must not become one.
    flow = AttentionFlow.from_coupling(torch.eye(3), torch.eye(3))

    def lost(flow: AbstractFlow, starts: torch.Tensor, preset: str) -> Trajectory:
        run = integrate(flow, starts, preset)
        run.final[0], run.outcome[0] = torch.nan, int(Outcome.NON_FINITE)
        return run

    monkeypatch.setattr(censuses, "integrate", lost)
    instance = census([flow], n_tokens=3, n_starts=5, seed=0).instances[0]
    assert instance.families == {"consensus": 4, "not converged": 1}
    assert instance.n_not_converged == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [1e-99, 1e-14, 1e-12, 1e9, 1e20, 1e99])
def test_a_census_does_not_depend_on_the_unit_of_time(scale: float) -> None:
    flow = clustering_flow()
    scaled = AttentionFlow.from_coupling(flow.coupling, scale * flow.value, flow.weights.beta)
    one, other = (census([each], n_tokens=5, n_starts=12, seed=3).instances[0] for each in (flow, scaled))
    assert one.coarse == other.coarse
    assert other.n_stable == 12


def test_heads_that_cancel_and_a_bias_alone_still_move_the_tokens(generator: torch.Generator) -> None:
    couplings = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    value = torch.diag(torch.tensor([1.5, -0.5, -1.0], dtype=torch.float64))
    cancelling = AttentionFlow.from_coupling(couplings, torch.stack([value, -value]), heads=True)
    biased = AttentionFlow.from_coupling(couplings[0], 0 * value, value_bias=[2.0, 0.0, 0.0])
    for flow in (cancelling, biased):
        run = integrate(flow, random_tokens(3, 3, 6, generator=generator))
        assert not (run.outcome == Outcome.NON_FINITE).any()
    ends = census([biased], n_tokens=3, n_starts=6, seed=0).instances[0].ends
    assert all(end.kind == "consensus" and end.stable for end in ends)
    assert all(torch.allclose(end.clusters, torch.tensor([[1.0, 0.0, 0.0]]).double()) for end in ends)


def test_rows_that_stand_for_tokens_end_where_they_rest() -> None:
    # Rows of 4, 3, 2, 1 tokens cannot part, although their tokens could.
    coupling = torch.tensor([[-0.4, -0.6, 0.2], [-0.9, 1.1, -1.1], [0.1, -0.6, 0.4]]).double()
    value = torch.tensor([[1.5, 0.1, -0.9], [0.1, -1.1, -0.3], [-0.9, -0.3, -0.7]]).double()
    flow = AttentionFlow.from_coupling(coupling, value, sizes=[1.0, 2.0, 3.0, 4.0])
    instance = census([flow], n_tokens=4, n_starts=20, seed=1).instances[0]
    assert instance.n_not_converged == 0
    assert any(not end.stable for end in instance.ends)


def test_starts_never_exceed_their_limit() -> None:
    result = census([clustering_flow()], n_tokens=4, n_starts=20, seed=0, half_width=1e-3, max_starts=50)
    assert result.n_runs == 50
    assert census([clustering_flow()], n_tokens=4, n_starts=7, seed=0, half_width=0.9, max_starts=3).n_runs == 3


def test_what_is_no_single_flow_is_refused() -> None:
    flow = clustering_flow()
    several = AttentionFlow.from_coupling(flow.coupling, flow.value.expand(6, 3, 3))
    with pytest.raises(
        InvalidInput, match=r"flow 0 of ensemble must have one weight instance; got leading axes \(6,\)"
    ):
        census([several], n_tokens=4, n_starts=6, seed=0)
    with pytest.raises(InvalidInput, match="ensemble must hold at least one flow"):
        census([], n_tokens=4, n_starts=6, seed=0)
    with pytest.raises(InvalidInput, match="n_instances must name at least one flow"):
        census([flow], [], n_tokens=4, n_starts=6, seed=0)


def test_a_start_that_did_not_arrive_is_no_label_that_was_seen_once() -> None:
    instance = census([clustering_flow()], n_tokens=5, n_starts=4, seed=0).instances[0]
    counted = dataclasses.replace(instance, coarse={"consensus v1": 3, "not converged": 1})
    assert counted.unseen == 0.0
