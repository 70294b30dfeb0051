from __future__ import annotations

import numpy
import pytest

from separatrix.report.figures.attention import disagreements, spectrum_plot, stable_counts, window_plot


def test_bars_are_stacked_and_sorted_by_total() -> None:
    figure = stable_counts({"a": [0.1, 0.3, 0.2], "b": [0.2, 0.2, 0.0]}, ylabel="share", title="t")
    axes = figure.axes[0]
    bottom, top = axes.containers
    totals = [low.get_height() + high.get_height() for low, high in zip(bottom, top, strict=True)]
    assert totals == pytest.approx([0.2, 0.3, 0.5])
    assert axes.get_legend() is not None


def test_bands_open_at_the_critical_temperature() -> None:
    nan = float("nan")
    figure = window_plot([0.0, 1.0, 2.0], {"v": ([nan, nan, 0.2], [nan, nan, 0.8])}, {"v": 1.5}, "t")
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [0.0, 1.0, 1.5, 2.0]
    assert line.get_ydata()[2] == 0.5


def test_real_spectra_get_a_line_each_and_complex_ones_the_plane() -> None:
    flat = spectrum_plot({"one": [-1.0, -2.0], "two": [0.5]}, "t").axes[0]
    assert [label.get_text() for label in flat.get_yticklabels()] == ["one", "two"]
    plane = spectrum_plot({"one": [-1 + 1j, -1 - 1j]}, "t").axes[0]
    assert plane.get_ylabel() == "imaginary part"
    assert numpy.asarray(plane.lines[0].get_ydata()).tolist() == [1.0, -1.0]


def test_wrong_decisions_are_numbered() -> None:
    axes = disagreements({"printed": 12, "corrected": 0}, 100, "t").axes[0]
    assert "of 100" in axes.get_xlabel()
    assert {text.get_text() for text in axes.texts} >= {"12", "0"}
