from __future__ import annotations

from separatrix.report.figures.recurrent.memory import (
    draw_memory_bounds,
    draw_memory_curves,
    draw_memory_totals,
    draw_transients,
)


def test_totals_show_a_bar_per_row_and_only_printed_marks_that_exist() -> None:
    rows = [
        {"alpha": 0.95, "beta": 0.0, "d": 0.0, "total": 3.0, "printed": 3.03, "plain_double": 3.0},
        {"alpha": 1.0, "beta": 0.0, "d": 0.2, "total": 5.0, "printed": None, "plain_double": 5.1},
    ]
    axes = draw_memory_totals(rows).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["α=0.95, β=0, d=0", "α=1, β=0, d=0.2"]
    printed = next(line for line in axes.lines if line.get_label() == "printed")
    assert list(printed.get_xdata()) == [3.03]


def test_curves_leave_out_lags_without_memory() -> None:
    figure = draw_memory_curves([{"alpha": 1.0, "beta": 0.0, "d": 0.0, "curve": [1.0, 0.5, 0.0]}], 2)
    line = figure.axes[0].lines[0]
    assert line.get_ydata()[1] == 0.5
    assert line.get_ydata()[2] != line.get_ydata()[2]  # NaN: nothing to draw on a logarithmic axis


def test_transients_are_drawn_in_two_panels_with_the_exact_line() -> None:
    row = {"alpha": 1.0, "beta": 0.0, "mean_norm": [1.0, 0.5, 0.0], "std_norm": [0.0, 0.1, 0.0]}
    figure = draw_transients([{**row, "mean_spread": [0.1, 0.05, 0.0], "rms_norm": [1.0, 0.6, 0.0]}], 2)
    assert len(figure.axes) == 2
    assert "exact root mean square" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_bounds_are_four_lines() -> None:
    figure = draw_memory_bounds({"ceiling": [1.0], "memory": [0.9], "sharp": [0.5], "printed": [0.1]})
    assert len(figure.axes[0].lines) == 4
