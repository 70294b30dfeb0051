from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import separatrix
from separatrix import advise, diagnose, dynamics, matrices, nn as nn_room, theory
from separatrix.report.figures.house.plots import drawable


def fisher_memory() -> Any:
    return matrices.fisher_memory_curve(matrices.delay_line(6), torch.eye(6, dtype=torch.float64)[0], 6)


def spectrum() -> Any:
    value = torch.diag(torch.tensor([3.0, 1.0, -4.0]))
    return theory.bipartite_spectrum(torch.eye(3), value, 0, 3, 2)


def stable_count() -> Any:
    return theory.count_stable(torch.eye(3), torch.diag(torch.tensor([3.0, 1.0, -4.0])), 6)


def solution() -> Any:
    return dynamics.find_equilibrium(torch.cos, dynamics.Picard(tol=1e-6), torch.zeros(3, 1, dtype=torch.float64))


def profile() -> Any:
    return diagnose.balance_profile(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))


def flow() -> Any:
    value = torch.diag(torch.tensor([1.0, 0.5, -0.5], dtype=torch.float64))
    return dynamics.AttentionFlow.from_coupling(torch.eye(3, dtype=torch.float64), value)


def trajectory(times: Any = None) -> Any:
    starts = dynamics.random_tokens(5, 3, 4, generator=torch.Generator().manual_seed(0))
    return dynamics.integrate(flow(), starts, times=times)


def frames() -> Any:
    return trajectory(torch.linspace(0, 4, 9, dtype=torch.float64))


def equilibrium() -> Any:
    return dynamics.classify(flow(), trajectory().final)[0]


def forecast() -> Any:
    return theory.mean_field("goe", phi="tanh", weight_var=torch.tensor([0.1, 0.3]).double(), input_var=1.0)


def advice() -> Any:
    return advise.deq("tanh", 64, ensemble="haar")


def census() -> Any:
    return dynamics.census({0: flow()}, n_tokens=4, n_starts=6, seed=0)


def kept() -> Any:
    return nn_room.replay(torch.rand(8, generator=torch.Generator().manual_seed(0)).double(), n_buffer=2, n_relevant=2)


@pytest.mark.parametrize(
    ("make", "label"),
    [
        (trajectory, "first coordinate"),
        (frames, "time"),
        (equilibrium, "first coordinate"),
        (forecast, "scale of the weights √V"),
        (advice, "scale of the weights √V"),
        (census, "share of 6 starts"),
        (kept, "step"),
        (fisher_memory, "lag k (steps)"),
        (spectrum, "real part"),
        (stable_count, "eigenvector of the value matrix"),
        (solution, "evaluations of the map"),
    ],
)
def test_a_result_is_drawn_with_its_axes_named(make: Any, label: str) -> None:
    ax = separatrix.plot(make())
    assert ax.get_xlabel() == label
    assert ax.has_data()


def test_a_balance_profile_is_drawn() -> None:
    assert separatrix.plot(profile()).has_data()


def test_a_residual_has_one_line_per_sample() -> None:
    assert len(separatrix.plot(solution()).get_lines()) == 3


def test_a_trajectory_has_one_line_per_start_that_falls_towards_its_own_end() -> None:
    run = frames()
    lines = separatrix.plot(run).get_lines()
    assert len(lines) == 4
    for line, states, end in zip(lines, run.states, run.final, strict=True):
        assert list(line.get_xdata()) == run.times.tolist()
        wanted = torch.linalg.vector_norm(states - end, dim=(-2, -1))
        torch.testing.assert_close(torch.as_tensor(line.get_ydata()), wanted)


def test_one_trajectory_without_a_batch_is_one_line() -> None:
    start = dynamics.random_tokens(5, 3, generator=torch.Generator().manual_seed(0))
    run = dynamics.integrate(flow(), start, times=torch.linspace(0, 4, 9, dtype=torch.float64))
    assert [len(line.get_xdata()) for line in separatrix.plot(run).get_lines()] == [9]


def test_a_notebook_shows_names_and_a_small_picture() -> None:
    shown = trajectory()._repr_html_()
    assert "converged, converged, converged, converged" in shown
    assert shown.count("<svg") == 1
    assert "<svg" not in diagnose.balance_profile(nn.Linear(2, 2)).to_json()


def test_a_drawing_that_fails_does_not_hide_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    plots = sys.modules["separatrix.report.figures.house.plots"]

    def broken(result: Any, ax: Any) -> None:
        raise ValueError("no data")

    monkeypatch.setitem(plots._DRAWINGS, "Trajectory", broken)
    shown = trajectory()._repr_html_()
    assert "<svg" not in shown
    assert "The picture could not be drawn: ValueError: no data" in shown
    assert "residual" in shown


def test_the_drawable_results_are_listed() -> None:
    assert {"FisherMemory", "BlockSpectrum", "StableCount", "RichLazy", "TrainingRun"} <= set(drawable())
