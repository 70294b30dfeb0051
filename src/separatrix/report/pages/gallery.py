"""Figures of runs as pages hold them: wide and narrow drawings, captions, thumbnails for the front page."""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import final

from markupsafe import Markup
from matplotlib.figure import Figure
from PIL import Image

from separatrix.lab.campaign import RunReport
from separatrix.lab.experiment.claim import Verdict

from ..figures.house.layout import NARROW_WIDTH, caption_of
from ..figures.house.style import to_page_svg
from ..figures.results.experiment import draw_experiment
from .wording import slug

_THUMBNAIL_DPI = 56
_MOST_CLAIMS_NAMED = 3


@final
@dataclasses.dataclass(frozen=True)
class FigureView:
    """One figure of a page."""

    name: str
    anchor: str
    caption: str
    ledger: str
    """What the verdicts of the experiment say, in a sentence."""
    wide: Markup
    narrow: Markup | None
    """Drawn for a narrow page, panels one below the other; nothing where the wide drawing fits it."""
    thumbnail: str
    """A small picture as a ``data:`` address."""
    ratio: float


@final
@dataclasses.dataclass(frozen=True)
class DrawnFigures:
    """The figures of a run, or why there are none."""

    figures: tuple[FigureView, ...] = ()
    error: str | None = None


@final
@dataclasses.dataclass(frozen=True)
class GalleryView:
    """A figure on the front page."""

    figure: FigureView
    page: str
    experiment: str
    title: str
    document: str
    place: str
    scale: str
    verdicts: tuple[Verdict, ...]
    """Distinct verdicts of the experiment, in the order of the enumeration."""

    @property
    def words(self) -> str:
        """What a search looks through."""
        return f"{self.experiment} {self.title} {self.place} {self.figure.name} {self.figure.caption}".lower()


def drawn_figures(run: RunReport) -> DrawnFigures:
    """Draw the figures of a run; one experiment's bug must not cost the reader the other pages.

    Cost: two drawings of a figure that is wider than a narrow page, one of any other, and a thumbnail.
    """
    if run.summary is None:
        return DrawnFigures()
    try:
        wide = draw_experiment(run.experiment, run.summary)
        stacked = (
            draw_experiment(run.experiment, run.summary, stacked=True) if any(map(_is_wide, wide.values())) else {}
        )
    except Exception as error:
        return DrawnFigures(error=f"{type(error).__name__}: {error}")
    said = ledger_sentence(run)
    listed = [_view(number, name, figure, stacked, said) for number, (name, figure) in enumerate(wide.items())]
    return DrawnFigures(tuple(listed))


def _is_wide(figure: Figure) -> bool:
    """Whether its letters would be too small on a narrow page, so that it is drawn for one again."""
    return bool(getattr(figure, "n_columns", 1) > 1 or figure.get_figwidth() > 1.1 * NARROW_WIDTH)


def _view(number: int, name: str, figure: Figure, stacked: Mapping[str, Figure], said: str) -> FigureView:
    narrow = stacked.get(name) if _is_wide(figure) else None
    wide = Markup(to_page_svg(figure, f"figure{number}"))
    return FigureView(
        name=name,
        anchor=f"figure-{slug(name)}",
        caption=caption_of(figure) or name,
        ledger=said,
        wide=wide,
        narrow=None if narrow is None else Markup(to_page_svg(narrow, f"narrow{number}")),
        thumbnail=_thumbnail(figure),
        ratio=figure.get_figwidth() / figure.get_figheight(),
    )


def _thumbnail(figure: Figure) -> str:
    """A small picture of few colours, a few kilobytes: a front page holds more than a hundred. It is laid out as the
    large one, which was drawn before; to find a layout takes longer than to draw."""
    drawn, stream = io.BytesIO(), io.BytesIO()
    figure.set_layout_engine("none")
    figure.savefig(drawn, format="png", dpi=_THUMBNAIL_DPI)
    Image.open(drawn).convert("RGB").quantize(48).save(stream, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def ledger_sentence(run: RunReport) -> str:
    """What the verdicts of a run say: the ids of each verdict, counted where they are many."""
    groups: dict[Verdict, list[str]] = {}
    for claim in run.experiment.claims:
        judgement = run.judgement_of(claim)
        groups.setdefault(judgement.verdict if judgement else Verdict.NOT_RUN, []).append(claim.id)
    parts = [_told(verdict, groups[verdict]) for verdict in Verdict if verdict in groups]
    return f"The ledger: {'; '.join(parts)}." if parts else ""


def _told(verdict: Verdict, ids: Sequence[str]) -> str:
    if len(ids) > _MOST_CLAIMS_NAMED:
        return f"{len(ids)} claims {verdict.label}"
    return f"{', '.join(ids)} {verdict.label}"


def gallery_of(run: RunReport, page: str, drawn: DrawnFigures) -> list[GalleryView]:
    """The figures of a run as the front page shows them."""
    found = [run.judgement_of(claim) for claim in run.experiment.claims]
    verdicts = {judgement.verdict if judgement else Verdict.NOT_RUN for judgement in found}
    return [
        GalleryView(
            figure=figure,
            page=f"{page}#{figure.anchor}",
            experiment=run.experiment.name,
            title=run.experiment.title,
            document=run.experiment.document,
            place=run.experiment.place,
            scale=run.scale,
            verdicts=tuple(verdict for verdict in Verdict if verdict in verdicts),
        )
        for figure in drawn.figures
    ]
