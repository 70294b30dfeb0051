from __future__ import annotations

import numpy
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from separatrix.report.figures.house.style import paper, theme
from separatrix.report.figures.learning import linear

CURVE = {"x": [1.0, 2.0], "y": [0.1, 0.2], "dots_x": [1.0], "dots_y": [0.1], "low": [0.05, 0.1], "high": [0.2, 0.3]}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["light", "dark"])
def test_figures_draw_in_both_themes(name: str, tmp_path) -> None:
    with theme(name):  # type: ignore[arg-type]
        figures = [
            linear.curves({"a": CURVE}, x_label="x", y_label="y", x_log=True, y_log=True),
            linear.curve_panels({"one": {"a": CURVE}, "two": {"a": CURVE}}, x_label="x", y_label="y"),
            linear.heat_maps({str(k): numpy.eye(3) for k in range(5)}, split=2, label="entry"),
        ]
        background = to_rgb(paper())
    for index, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{index}.png", facecolor="auto")
        assert imread(tmp_path / f"{index}.png")[0, 0, :3] == pytest.approx(background, abs=1 / 255)


def test_simulation_dots_get_one_legend_entry() -> None:
    figure = linear.curves({"a": CURVE, "b": CURVE}, x_label="x", y_label="y", dots_label="descent")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["a", "b", "descent"]
