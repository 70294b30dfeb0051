from __future__ import annotations

import re
from pathlib import Path

import pytest

import separatrix.report
from sitegen import pictures

DOCS = pictures.PROJECT / "docs"


def wanted() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        for match in pictures.WANTED.finditer(path.read_text(encoding="utf-8")):
            found.append((path.name, match["experiment"], match["name"]))
    return found


def test_every_figure_that_a_page_wants_has_a_shipped_result() -> None:
    assert len(wanted()) >= 8
    results = {path.stem for path in (pictures.PROJECT / "results").glob("*.json")}
    assert [place for place in wanted() if place[1] not in results] == []


def test_a_page_gets_the_picture_in_both_themes_with_its_caption(tmp_path: Path) -> None:
    page = "before\n\n<!-- figure: attention-criterion/windows -->\n\nafter"
    made = pictures.with_figures(page, tmp_path, 1)
    assert made.startswith("before\n\n<figure>")
    assert made.count('src="../figures/attention-criterion-windows-') == 2
    assert "<figcaption>" in made
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "attention-criterion-windows-light.png",
        "attention-criterion-windows-dark.png",
    }


def test_a_figure_that_does_not_exist_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(pictures.NoSuchFigure, match="has no figure 'nothing'; it has 'windows'"):
        pictures.with_figures("<!-- figure: attention-criterion/nothing -->", tmp_path, 0)
    with pytest.raises(pictures.NoSuchFigure, match="no shipped result"):
        pictures.with_figures("<!-- figure: nothing-like-it/x -->", tmp_path, 0)


def test_thumbnails_are_darkened_on_dark_pages_of_site_and_report_alike() -> None:
    report = (Path(separatrix.report.__file__).parent / "pages" / "templates" / "style.css").read_text(encoding="utf-8")
    site = (DOCS / "assets" / "site.css").read_text(encoding="utf-8")
    filters = [
        re.search(rf"{re.escape(place)} {{\s*filter: invert\(0?(\.\d+)\) hue-rotate\((\w+)\);\s*}}", text)
        for place, text in (('[data-md-color-scheme="slate"] .gallery figure img', site), (".picture img", report))
    ]
    assert all(filters)
    assert len({found.groups() for found in filters if found}) == 1


@pytest.mark.slow
def test_every_figure_that_a_page_wants_is_drawn(tmp_path: Path) -> None:
    for _, experiment, name in wanted():
        assert "<img" in pictures.with_figures(f"<!-- figure: {experiment}/{name} -->", tmp_path, 0)
