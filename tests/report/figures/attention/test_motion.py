from __future__ import annotations

from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from attention_cases import clustering_flow
from separatrix.dynamics import integrate, random_tokens
from separatrix.report import save
from separatrix.report.figures import attention

ROW = {
    "family": "consensus v1",
    "instances": 3,
    "instances low": 0.4,
    "instances high": 0.9,
    "share": 0.5,
    "standard error": 0.1,
}


def paths(dim: int, generator: torch.Generator) -> torch.Tensor:
    return random_tokens(4, dim, 6, generator=generator)


def figures(generator: torch.Generator) -> dict[str, Figure]:
    flow, times = clustering_flow(), torch.tensor([0.0, 0.5, 2.0])
    run = integrate(flow, random_tokens(6, 3, generator=generator), times=times)
    assert run.states is not None
    curve = ([0.0, 1.0], [1.0, 1e-8])
    return {
        "circle": attention.circle_trajectories(paths(2, generator), "circle"),
        "sphere": attention.sphere_trajectories([("a", paths(3, generator))] * 5, [torch.eye(3)[0]] * 5),
        "census": attention.census_bars([ROW], 5, "census"),
        "attention": attention.attention_frames(times.tolist(), flow.attention(run.states), "attention"),
        "curves": attention.convergence_curves({"run": curve}),
        "record": attention.metastability_plot(*curve, {"0.1": [4, 1]}, [(0.2, 0.5)]),
        "branch": attention.branch_plot({"pair": curve}, {"pair": 0.5}, "beta"),
    }


def test_every_figure_of_motion_is_drawn_and_saved(generator: torch.Generator, tmp_path: Path) -> None:
    for name, figure in figures(generator).items():
        assert save(figure, tmp_path / f"{name}.png", dpi=40).stat().st_size > 1000


def test_a_sphere_has_a_path_and_an_end_point_per_token(generator: torch.Generator) -> None:
    figure = attention.sphere_trajectories([("one", paths(3, generator))])
    (axes,) = figure.axes
    assert len(axes.lines) == 4
    assert axes.get_title() == "one"


def test_bars_show_shares_of_instances_with_their_interval() -> None:
    (axes,) = attention.census_bars([ROW], 5).axes
    assert axes.patches[0].get_height() == pytest.approx(0.6)  # type: ignore[attr-defined]
    assert axes.get_xticklabels()[0].get_text() == "consensus v1"
