"""The figures of an experiment, from the summary of a run."""

from __future__ import annotations

from matplotlib.figure import Figure

from separatrix.lab.experiment.definition import Experiment
from separatrix.lab.experiment.summary import Summary

from .style import theme


def draw_experiment(experiment: Experiment, summary: Summary, theme_name: str = "light") -> dict[str, Figure]:
    """The named figures of an experiment in one theme; empty when it draws nothing."""
    if experiment.draw is None:
        return {}
    with theme(theme_name):
        return dict(experiment.draw(summary))
