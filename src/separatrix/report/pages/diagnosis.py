"""A diagnosis as a page or a PDF: findings with what to do, profiles drawn, what was skipped. No network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib.backends.backend_pdf import PdfPages

from separatrix.core.disk import write_text_whole, written_whole

from ..figures.house.style import new_figure, theme, to_page_svg
from ..figures.results.diagnosis import diagnosis_figures
from .html import render

_CAPTIONS = {
    "depth": "Size of the result of each weight, its difference between samples, and the gradient that arrives there.",
    "time": "How gradients by earlier inputs fall or grow with the distance to the last step.",
    "attention": "Entropy of attention rows over that of uniform attention on the keys that are not masked.",
}
_LINES = 62


def write_diagnosis_page(diagnosis: Any, path: Path) -> Path:
    """One HTML file with everything inside."""
    with theme("light"):
        drawn = diagnosis_figures(diagnosis)
    figures = [
        {"name": name, "caption": _CAPTIONS[name], "svg": Markup(to_page_svg(figure, f"profile-{name}"))}
        for name, figure in drawn.items()
    ]
    text = render("diagnosis.html", title="separatrix.check", diagnosis=diagnosis, figures=figures)
    write_text_whole(path, text)
    return path


def write_diagnosis_pdf(diagnosis: Any, path: Path) -> Path:
    """The whole text, page by page, then the profiles."""
    from separatrix.diagnose.findings.text import as_text

    lines = as_text(diagnosis, lines=None).splitlines()
    with written_whole(path) as stream, theme("light"), PdfPages(stream, metadata={"CreationDate": None}) as pdf:
        for start in range(0, len(lines), _LINES):
            figure, axes = new_figure(width=8.3, height=11.7)
            axes[0, 0].axis("off")
            block = "\n".join(lines[start : start + _LINES])
            axes[0, 0].text(0, 1, block, family="monospace", fontsize=8, va="top", transform=axes[0, 0].transAxes)
            pdf.savefig(figure)
        for figure in diagnosis_figures(diagnosis).values():
            pdf.savefig(figure)
    return path
