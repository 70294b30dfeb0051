"""The figures of an experiment, from the summary of a run."""

from __future__ import annotations

import contextlib

from matplotlib.figure import Figure

from separatrix.lab.experiment.definition import Experiment
from separatrix.lab.experiment.summary import Summary

from ..house.layout import narrow
from ..house.stacking import finish_stacked
from ..house.style import theme


def draw_experiment(
    experiment: Experiment, summary: Summary, theme_name: str = "light", *, stacked: bool = False
) -> dict[str, Figure]:
    """The named figures of an experiment in one theme, for a narrow page if ``stacked``; none if it draws nothing."""
    if experiment.draw is None:
        return {}
    with theme(theme_name), narrow() if stacked else contextlib.nullcontext():
        drawn = dict(experiment.draw(summary))
    return {name: finish_stacked(figure) for name, figure in drawn.items()} if stacked else drawn
