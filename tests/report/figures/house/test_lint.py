"""The lint finds what a reader would stumble over, and finds nothing in what the package publishes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from separatrix import experiments
from separatrix.lab.results.shipped import shipped_results
from separatrix.report.figures import captioned, lint_figure, single_axes
from separatrix.report.figures.results.experiment import draw_experiment


def healthy() -> tuple[Figure, Axes]:
    figure, axes = single_axes()
    axes.plot([0, 1], [0, 1], "o-", color="#0072B2", label="one")
    axes.set(xlabel="time", ylabel="loss")
    return captioned(figure, "Loss against time."), axes


PLANTED: dict[str, Callable[[Figure, Axes], object]] = {
    "has no caption": lambda figure, axes: captioned(figure, "fig4-4"),
    "is no sentence": lambda figure, axes: captioned(figure, "the loss over time"),
    "horizontal axis .* has no label": lambda figure, axes: axes.set_xlabel(""),
    "vertical axis .* has no label": lambda figure, axes: axes.set_ylabel(""),
    "not of the palette": lambda figure, axes: axes.plot([0, 1], [1, 0], color="#123456"),
    "lie outside the axes": lambda figure, axes: axes.set_ylim(0.5, 2),
    "are drawn alike": lambda figure, axes: axes.plot([0, 1], [1, 0], "o-", color="#0072B2", label="two"),
    "cover each other": lambda figure, axes: [axes.text(0.5, 0.5, words) for words in ("covered", "covering")],
    "a scale and one place on it": lambda figure, axes: [line.set_data([1], [1]) for line in axes.get_lines()],
    "leaves the figure": lambda figure, axes: axes.text(2.5, 0.5, "far away", clip_on=False).set_in_layout(False),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("words", PLANTED)
def test_a_planted_fault_is_found(words: str) -> None:
    import re

    figure, axes = healthy()
    assert lint_figure(figure, rendered=True) == []
    PLANTED[words](figure, axes)
    assert any(re.search(words, found) for found in lint_figure(figure, rendered=True))


def published() -> list[str]:
    folder = shipped_results()
    assert folder is not None
    return sorted(path.stem for path in folder.glob("*.json"))


def drawn(name: str, *, stacked: bool = False) -> dict[str, Figure]:
    folder = shipped_results()
    assert folder is not None
    experiment = experiments.find(name)
    summary = experiment.summary.from_dict(json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["summary"])
    return draw_experiment(experiment, summary, stacked=stacked)


@pytest.mark.parametrize(
    "names",
    [pytest.param(published()[::5], id="one in five"), pytest.param(published(), id="all", marks=pytest.mark.slow)],
)
def test_every_published_figure_has_a_caption_labels_and_the_colours_of_the_house(names: list[str]) -> None:
    found = {
        f"{name}, {key}": faults
        for name in names
        for key, figure in drawn(name).items()
        if (faults := lint_figure(figure))
    }
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("stacked", [False, True])
def test_no_text_of_a_published_figure_covers_another_wide_or_narrow(stacked: bool) -> None:
    found = {
        f"{name}, {key}": faults
        for name in published()
        for key, figure in drawn(name, stacked=stacked).items()
        if (faults := lint_figure(figure, rendered=True))
    }
    assert not found
