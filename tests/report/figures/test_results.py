from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import separatrix
from separatrix import diagnose, dynamics, matrices, theory
from separatrix.report.figures.plots import drawable


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


@pytest.mark.parametrize(
    ("make", "label"),
    [
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


def test_the_drawable_results_are_listed() -> None:
    assert {"FisherMemory", "BlockSpectrum", "StableCount", "RichLazy", "TrainingRun"} <= set(drawable())
