"""Figures of the shipped results as files of the site: thumbnails for the gallery, whole ones for pages that ask.

A page asks for a figure with a line ``<!-- figure: EXPERIMENT/NAME -->``; it gets the picture in both themes and the
caption that the figure carries.
"""

from __future__ import annotations

import base64
import functools
import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from separatrix.experiments import catalogue
from separatrix.lab.campaign import RunReport
from separatrix.lab.results.publication import read_publications
from separatrix.lab.results.reports import published_report
from separatrix.report.figures.house.layout import caption_of
from separatrix.report.figures.house.style import save
from separatrix.report.figures.results.experiment import draw_experiment
from separatrix.report.pages.gallery import GalleryView, drawn_figures, gallery_of
from separatrix.report.pages.wording import slug

PROJECT = Path(__file__).parent.parent.parent
WANTED = re.compile(r"^<!-- figure: (?P<experiment>[\w-]+)/(?P<name>[^>]+?) -->$", re.MULTILINE)
THEMES = ("light", "dark")


class NoSuchFigure(LookupError):
    """A page asks for a figure that no shipped result has."""


@functools.cache
def published_runs(results: Path = PROJECT / "results") -> Mapping[str, RunReport]:
    """The shipped results by experiment, in the order of the catalogue."""
    experiments = catalogue()
    found = {publication.experiment: publication for publication in read_publications(results, experiments)}
    return {
        name: published_report(found[name], experiment)
        for name, experiment in experiments.items()
        if name in found and not found[name].stale
    }


def gallery_views() -> Iterator[GalleryView]:
    """Every figure of every shipped result, drawn as the report draws it.

    Cost: half a minute of processor time.
    """
    for run in published_runs().values():
        yield from gallery_of(run, "", drawn_figures(run))


def write_thumbnail(view: GalleryView, folder: Path) -> str:
    """Write the small picture of the report and the whole figure; returns the stem of both."""
    stem = f"{view.experiment}-{slug(view.figure.name)}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.png").write_bytes(base64.b64decode(view.figure.thumbnail.partition(",")[2]))
    (folder / f"{stem}.svg").write_text(str(view.figure.wide), encoding="utf-8")
    return stem


def with_figures(text: str, pages: Path, depth: int) -> str:
    """A page with the figures it asks for; the pictures are written to ``pages/figures``."""

    def put(match: re.Match[str]) -> str:
        return _figure(match["experiment"], match["name"], pages / "figures", "../" * depth + "figures")

    return WANTED.sub(put, text)


def _figure(experiment: str, name: str, folder: Path, address: str) -> str:
    run = published_runs().get(experiment)
    if run is None or run.summary is None:
        raise NoSuchFigure(f"a page wants a figure of {experiment}, which has no shipped result.")
    folder.mkdir(parents=True, exist_ok=True)
    stem, caption, pictures = f"{experiment}-{slug(name)}", "", []
    for theme in THEMES:
        drawn = draw_experiment(run.experiment, run.summary, theme)
        if name not in drawn:
            raise NoSuchFigure(f"{experiment} has no figure {name!r}; it has {', '.join(map(repr, drawn))}.")
        save(drawn[name], folder / f"{stem}-{theme}.png")
        caption = caption_of(drawn[name])
        pictures.append(f'<img src="{address}/{stem}-{theme}.png#only-{theme}" alt="{html.escape(caption)}">')
    told = f"{html.escape(caption)} <code>{experiment}</code>, {run.scale} scale."
    return f"<figure>{''.join(pictures)}<figcaption>{told}</figcaption></figure>"
