from __future__ import annotations

import pytest
import torch
from matplotlib.collections import PathCollection

from separatrix.diagnose import beta_sweep, phase_diagram
from separatrix.report import plot, theme
from separatrix.report.figures.attention import phase_plot

M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
BETAS = torch.linspace(0.1, 2.0, 12)


def test_a_phase_diagram_shows_both_bands_their_thresholds_and_the_census() -> None:
    diagram = phase_diagram(M, V, BETAS, 10, n_starts=6, n_census=3)
    axes = plot(diagram)
    assert len([line for line in axes.lines if line.get_linestyle() == ":"]) == 2
    assert {text.get_text() for text in axes.texts} == {r"$\beta_c = 0.385$", r"$\beta_c = 0.885$"}
    edges = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert len(edges) == 4
    assert edges[0].get_xdata()[0] == pytest.approx(diagram.critical[0])
    assert edges[0].get_ydata()[0] == pytest.approx(0.5)
    marks = [item for item in axes.collections if isinstance(item, PathCollection)]
    assert len(marks) == len(diagram.ends)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("width", [3.2, 8.0])
def test_nothing_of_a_phase_diagram_is_cut_off(name: str, width: float) -> None:
    with theme(name):
        figure = phase_plot(phase_diagram(M, V, BETAS, 10, n_starts=4, n_census=3), width=width)
        figure.draw_without_rendering()
        box = figure.bbox
        for part in (figure.axes[0].xaxis.label, figure.axes[0].yaxis.label, figure.axes[0].title, *figure.legends):
            extent = part.get_window_extent()
            assert extent.x0 >= box.x0 - 1
            assert extent.x1 <= box.x1 + 1
            assert extent.y0 >= box.y0 - 1
            assert extent.y1 <= box.y1 + 1


def test_a_sweep_is_drawn_with_its_thresholds() -> None:
    axes = plot(beta_sweep(M, V, BETAS, 10, clusterings=False))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pair on v1", "pair on v3"]
    assert len([line for line in axes.lines if line.get_linestyle() == ":"]) == 2
