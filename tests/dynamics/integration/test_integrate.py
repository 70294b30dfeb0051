from __future__ import annotations

import pytest
import torch
from scipy.integrate import solve_ivp

from attention_cases import clustering_flow, gaussian_flow
from separatrix.core import InvalidInput, Outcome, ShapeError
from separatrix.dynamics import (
    AttentionFlow,
    OjaFlow,
    Tableau,
    classify,
    find_clusters,
    integrate,
    normalise,
    random_tokens,
)
from separatrix.dynamics.integration.methods.tableau import TSIT5


def exact(flow: AttentionFlow, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Reference states by SciPy's eighth-order method."""

    def field(_: float, y: object) -> object:
        return flow.velocity(torch.as_tensor(y).reshape(x.shape)).reshape(-1).numpy()

    solution = solve_ivp(
        field, (0, float(times[-1])), x.reshape(-1).numpy(), "DOP853", times.numpy(), rtol=1e-11, atol=1e-12
    )
    return torch.as_tensor(solution.y.T).reshape(len(times), *x.shape)


def test_frames_follow_the_exact_motion_and_stay_on_the_sphere(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(6, 3, 3, generator=generator)
    times = torch.linspace(0, 3, 31, dtype=torch.float64)
    truth = torch.stack([exact(flow, start, times) for start in x])
    # Steps, and the frames between their ends, are accurate to rtol of their displacement.
    for preset, allowed in (("reference", 1e-4), ("default", 5e-3)):
        run = integrate(flow, x, preset, times=times)
        assert run.states is not None
        assert (run.states - truth).abs().max() < allowed
    assert (run.states.norm(dim=-1) - 1).abs().max() < 1e-12


def test_end_points_rest_on_the_sphere_and_are_stable(generator: torch.Generator) -> None:
    run = integrate(clustering_flow(), random_tokens(10, 3, 60, generator=generator))
    assert run.ok
    assert (run.final.norm(dim=-1) - 1).abs().max() < 1e-12
    assert run.residual.max() < 1e-12
    assert all(end.stable for end in classify(clustering_flow(), run.final))


@pytest.mark.slow
def test_presets_reach_the_same_partition_as_the_reference(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(10, 3, 40, generator=generator)
    slow = integrate(flow, x, "reference")
    for preset in ("fast", "default"):
        quick = integrate(flow, x, preset)
        same = (find_clusters(quick.final).labels == find_clusters(slow.final).labels).all(dim=-1)
        # A start beside a separatrix may go the other way; in 1000 starts of this flow none did.
        assert int(same.sum()) >= 39
        assert quick.evaluations.double().mean() < slow.evaluations.double().mean() / 2


def test_one_start_ends_alike_alone_and_in_any_batch(generator: torch.Generator) -> None:
    flow = gaussian_flow(4, generator, 3, 1)
    x = random_tokens(12, 4, 3, 8, generator=generator)
    together = integrate(flow, x, "reference")
    for i, j in ((0, 0), (1, 3), (2, 7)):
        single = AttentionFlow.from_coupling(flow.coupling[i, 0], flow.value[i, 0])
        alone = integrate(single, x[i, j], "reference")
        torch.testing.assert_close(alone.final, together.final[i, j], rtol=0, atol=1e-9)
        assert int(alone.steps) == int(together.steps[i, j])
        assert int(alone.outcome) == int(together.outcome[i, j])


@pytest.mark.slow
def test_merging_changes_the_cost_but_not_the_end(generator: torch.Generator) -> None:
    # A small gap: tokens come together early and then creep along the Oja flow.
    value = torch.diag(torch.tensor([1.0, 0.97, -0.5]).double())
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    x = normalise(torch.tensor([0.3, 1.0, 0.2]).double() + 0.2 * random_tokens(20, 3, 4, generator=generator))
    merged, apart = integrate(flow, x, "reference"), integrate(flow, x, "reference", merging=False)
    torch.testing.assert_close(merged.final, apart.final, rtol=0, atol=1e-8)
    assert merged.ok


def test_merged_rows_move_like_the_tokens_they_stand_for(generator: torch.Generator) -> None:
    value = torch.diag(torch.tensor([1.0, 0.9, -0.5]).double())
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    x = normalise(torch.tensor([0.2, 1.0, 0.2]).double() + 1e-4 * random_tokens(20, 3, generator=generator))
    times = torch.tensor([0.0, 4.0, 8.0]).double()
    settings = {"finishing": False, "t_max": 8.0, "times": times}
    merged = integrate(flow, x, "reference", **settings)  # type: ignore[arg-type]
    truth = exact(flow, x, times)
    assert merged.states is not None
    assert (merged.states - truth).abs().max() < 1e-4  # the tokens were 1e-4 apart when they were merged


def test_a_start_on_a_saddle_is_perturbed_and_the_saddle_counted() -> None:
    flow = clustering_flow()
    vectors = torch.linalg.eigh(flow.value).eigenvectors
    x = vectors[:, 1].expand(6, 3).contiguous()
    run = integrate(flow, x)
    assert int(run.saddles) >= 1
    assert int(run.outcome) == Outcome.CONVERGED
    end = classify(flow, run.final)[0]
    assert end.stable
    assert end.eigenvector != 1


def test_a_merged_cluster_that_would_split_is_taken_apart() -> None:
    # All tokens equal on v_2 with lambda_2 < 0: transversally unstable, so that the tokens must part.
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), torch.diag(torch.tensor([1.0, -0.5]).double()))
    run = integrate(flow, torch.tensor([[0.0, 1.0]] * 5).double())
    assert int(run.saddles) == 1
    assert classify(flow, run.final)[0].stable


def test_running_out_of_time_or_steps_is_an_outcome(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(10, 3, 2, generator=generator)
    assert integrate(flow, x, t_max=0.01).outcome.tolist() == [Outcome.OUT_OF_STEPS] * 2
    short = integrate(flow, x, max_steps=3)
    assert short.outcome.tolist() == [Outcome.OUT_OF_STEPS] * 2
    assert short.steps.tolist() == [3, 3]
    assert not short.ok


def test_clusters_with_sizes_end_where_their_tokens_end(generator: torch.Generator) -> None:
    flow, sizes = clustering_flow(), torch.tensor([4, 3, 3])
    w = random_tokens(3, 3, 10, generator=generator)
    reduced = integrate(flow.with_sizes(sizes.double()), w, "reference")
    full = integrate(flow, w.repeat_interleave(sizes, dim=1), "reference")
    torch.testing.assert_close(reduced.final.repeat_interleave(sizes, dim=1), full.final, rtol=0, atol=1e-8)


def test_masked_and_doubly_stochastic_flows_come_to_rest(generator: torch.Generator) -> None:
    value = torch.diag(torch.tensor([2.0, 0.5, -1.0]).double())
    x = random_tokens(5, 3, 4, generator=generator)
    for options in ({"mask": "causal"}, {"normalisation": "sinkhorn"}):
        flow = AttentionFlow.from_coupling(torch.eye(3).double(), value, **options)  # type: ignore[arg-type]
        assert integrate(flow, x).ok


def test_oja_flow_reaches_the_principal_eigenvector(generator: torch.Generator) -> None:
    flow = OjaFlow(torch.diag(torch.tensor([1.5, 1.0, -1.0]).double()))
    run = integrate(flow, random_tokens(6, 3, 30, generator=generator))
    torch.testing.assert_close(run.final[..., 0].abs(), torch.ones(30, 6).double())


def test_global_generator_is_untouched(generator: torch.Generator) -> None:
    before = torch.random.get_rng_state()
    integrate(clustering_flow(), random_tokens(4, 3, generator=generator))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "fsat"}, r"unknown preset 'fsat'. Did you mean 'fast'"),
        ({"tol": -1.0}, r"tol must be a number of at least 0; got -1"),
        ({"t_max": 0.0}, r"t_max must be a positive number"),
        ({"max_steps": 0}, r"max_steps must be an integer of at least 1"),
        ({"times": [0.0, 2.0, 1.0]}, r"times must be an increasing list"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        integrate(clustering_flow(), torch.eye(3).double(), **options)  # type: ignore[arg-type]


def test_bad_starts_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"x0 must have tokens of dimension 3; got shape \(2, 2\)"):
        integrate(clustering_flow(), torch.eye(2))
    with pytest.raises(InvalidInput, match="Pass normalise=True"):
        integrate(clustering_flow(), 2 * torch.eye(3))
    assert integrate(clustering_flow(), 2 * torch.eye(3).double(), normalise=True).ok


ROTATING = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)


@pytest.mark.parametrize("preset", ["fast", "default"])
def test_rotation_ends_as_a_cycle_at_the_cost_of_an_ordinary_start(preset: str, generator: torch.Generator) -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), ROTATING)
    x = random_tokens(6, 3, 4, generator=generator)
    run = integrate(flow, x, preset)
    assert run.outcome.tolist() == [Outcome.CYCLE] * 4
    assert int(run.steps.max()) <= 120  # it was 20000; ordinary starts of this size take up to 70
    torch.testing.assert_close(run.period, torch.full((4,), torch.pi).double(), rtol=0, atol=1e-6)
    for place, floquet in run.cycles.items():
        assert floquet.stable
        # Differences of eigenvalues: one along the orbit, six that split tokens (1 each), one across (1.5).
        expected = torch.cat([torch.zeros(1), -torch.ones(10), torch.tensor([-1.5])]).double()
        torch.testing.assert_close(floquet.exponents, expected, rtol=0, atol=1e-5)
        assert flow.residual(run.final[place]) > 0.1


@pytest.mark.parametrize("speed", [*(pytest.param(speed, marks=pytest.mark.slow) for speed in (1e-3, 1e-4)), 1e-5])
def test_a_slow_rotation_ends_as_a_cycle(speed: float, generator: torch.Generator) -> None:
    # One turn takes 2 pi / speed, during which everything else has long decayed: small explicit steps, and a time
    # limit that knew nothing of turns, ended it out of steps.
    value = torch.tensor([[1.0, speed, 0.0], [-speed, 1.0, 0.0], [0.0, 0.0, -1.0]], dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    run = integrate(flow, random_tokens(6, 3, 4, generator=generator))
    assert run.outcome.tolist() == [Outcome.CYCLE] * 4
    assert int(run.steps.max()) < 300
    torch.testing.assert_close(run.period, torch.full((4,), 2 * torch.pi / speed).double(), rtol=1e-6, atol=0)
    assert all(floquet.stable for floquet in run.cycles.values())


def test_tokens_that_rotate_apart_from_each_other_are_a_neutral_cycle(generator: torch.Generator) -> None:
    # With beta = 1e6 and the identity as coupling every token attends to itself alone: six turn with phases of their
    # own, which nothing brings together nor drives apart.
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), ROTATING, 1e6)
    run = integrate(flow, random_tokens(6, 3, 4, generator=generator))
    assert run.outcome.tolist() == [Outcome.CYCLE] * 4
    assert int(run.steps.max()) < 300
    for floquet in run.cycles.values():
        assert floquet.marginal
        assert not floquet.stable
        phases = len(floquet.sizes)  # tokens that start beside each other turn as one
        assert int((floquet.multipliers.abs() > 1 - floquet.margin).sum()) == phases >= 4
    for place in range(4):
        later = exact(flow, run.final[place], torch.tensor([0.0, float(run.period[place])]).double())[-1]
        assert (later - run.final[place]).abs().max() < 1e-6


def test_the_cost_of_closing_an_orbit_is_counted(generator: torch.Generator) -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), ROTATING)
    run = integrate(flow, random_tokens(6, 3, 4, generator=generator))
    spent = run.evaluations - 6 * run.steps
    assert int(spent.min()) > 0
    assert int(spent.max()) < 1500  # velocities and derivatives together; a dozen integrations took 4000


def test_a_cycle_in_the_plane_has_no_second_eigenvalue_to_wait_for(generator: torch.Generator) -> None:
    flow = OjaFlow(torch.tensor([[0.5, 1.0], [-1.0, 0.5]]).double())
    run = integrate(flow, random_tokens(3, 2, 2, generator=generator))
    assert run.outcome.tolist() == [Outcome.CYCLE] * 2


def test_no_frame_jumps_when_tokens_merge_or_the_end_is_found(generator: torch.Generator) -> None:
    # Tokens 1e-3 apart contract slowly: merging at that distance moved a frame by 8e-4.
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), torch.diag(torch.tensor([1.0, 0.9, -0.5]).double()))
    x = normalise(torch.tensor([0.2, 1.0, 0.2]).double() + 8e-4 * random_tokens(20, 3, generator=generator))
    times = torch.linspace(0, 60, 241, dtype=torch.float64)
    truth = exact(flow, x, times)
    for preset, allowed in (("reference", 1e-4), ("default", 1e-2)):
        states = integrate(flow, x, preset, times=times).states
        assert states is not None
        assert (states - truth).abs().max() < allowed
        # within one cluster differences are much smaller than the motion, and must be right as well
        inside, real = states - states.mean(dim=-2, keepdim=True), truth - truth.mean(dim=-2, keepdim=True)
        assert (inside - real).abs().max() < 2e-6


def test_frames_that_were_not_reached_hold_nan(generator: torch.Generator) -> None:
    x = random_tokens(4, 3, generator=generator)
    run = integrate(clustering_flow(), x, times=[0.0, 1e-3, 50.0], max_steps=3)
    assert run.states is not None
    assert run.states.isnan().flatten(1).all(dim=1).tolist() == [False, False, True]
    assert run.outcome.item() == Outcome.OUT_OF_STEPS


@pytest.mark.parametrize("preset", [pytest.param("fast", marks=pytest.mark.slow), "default"])
def test_hard_attention_comes_to_rest(preset: str, generator: torch.Generator) -> None:
    # With beta = 1e6 tokens slide along surfaces where the attention switches: a contraction a million times faster
    # than the motion. Explicit steps must follow it; single precision cannot tell the two sides apart.
    coupling, g = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0)).double()
    flow = AttentionFlow.from_coupling(coupling, (g + g.mT) / 2, 1e6)
    run = integrate(flow, random_tokens(6, 3, 2, generator=generator), preset)
    assert run.outcome.tolist() == [Outcome.CONVERGED] * 2
    assert int(run.steps.max()) < 4000


def test_coefficients_are_built_once(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(4, 3, generator=generator)
    integrate(flow, x)
    before = Tableau.on.cache_info().misses
    integrate(flow, x)
    assert Tableau.on.cache_info().misses == before
    assert Tableau.on.cache_info().hits > 0


def test_method_and_tolerances_override_the_preset(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(4, 3, 3, generator=generator)
    times = torch.tensor([0.7, 1.9], dtype=torch.float64)
    truth = torch.stack([exact(flow, start, times) for start in x])
    for method in ("bs32", "dp54", "tsit5", "dop853", "rodas4", TSIT5):
        tight = integrate(flow, x, "fast", method=method, rtol=1e-5, times=times, t_max=1.9)
        assert tight.states is not None
        # rtol of a displacement of about one; of 24 starts of each method the worst had an error of 5e-7
        assert (tight.states - truth).abs().max() < 1e-5
    loose, tight = (integrate(flow, x, rtol=rtol) for rtol in (1e-2, 1e-6))
    assert int(tight.steps.sum()) > 2 * int(loose.steps.sum())
    with pytest.raises(InvalidInput, match=r"unknown method 'tsit4'. Did you mean 'tsit5'"):
        integrate(flow, x, method="tsit4")
    with pytest.raises(InvalidInput, match="rtol must be a positive number"):
        integrate(flow, x, rtol=-1.0)


def test_each_trajectory_may_have_its_own_last_time(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(4, 3, generator=generator)
    limits = torch.tensor([0.3, 0.9], dtype=torch.float64)
    run = integrate(flow, x.expand(2, 4, 3), "reference", t_max=limits, finishing=False)
    torch.testing.assert_close(run.final, exact(flow, x, torch.tensor([0.0, 0.3, 0.9]).double())[1:], rtol=0, atol=1e-4)
    torch.testing.assert_close(run.time, limits)


@pytest.mark.slow
def test_a_slow_decay_under_a_complex_pair_is_waited_for(generator: torch.Generator) -> None:
    # Eigenvalues -0.05 +- i and -2: the mean of the tokens turns and decays at the rate 0.05, not at the gap.
    value = torch.tensor([[-0.05, 1.0, 0.0], [-1.0, -0.05, 0.0], [0.0, 0.0, -2.0]], dtype=torch.float64)
    run = integrate(OjaFlow(value), random_tokens(5, 3, 4, generator=generator))
    assert run.ok
    assert run.final.mean(dim=-2).abs().max() < 1e-6
