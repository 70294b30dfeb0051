from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from separatrix.core import InvalidInput
from separatrix.report import ink, new_figure, paper, save, single_axes, styled, theme, to_svg

SIGNATURES = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_suffix_chooses_the_format_and_equal_figures_give_equal_bytes(suffix: str, tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        figure, ax = single_axes(width=2, height=2)
        ax.plot([0, 1], [1, 0])
        written.append(save(figure, tmp_path / f"{name}{suffix}").read_bytes())
    assert written[0].startswith(SIGNATURES[suffix])
    assert written[0] == written[1]


def test_axes_are_saved_as_their_figure(tmp_path: Path) -> None:
    figure, ax = single_axes(width=2, height=2)
    assert save(ax, tmp_path / "axes.svg").read_bytes() == save(figure, tmp_path / "figure.svg").read_bytes()
    ax.remove()
    with pytest.raises(InvalidInput, match="axes were removed"):
        save(ax, tmp_path / "nothing.svg")


def test_unknown_suffix_and_theme_are_refused(tmp_path: Path) -> None:
    figure, _ = single_axes()
    with pytest.raises(InvalidInput, match=r"one of .pdf, .svg, .png; got '.jpg'"):
        save(figure, tmp_path / "figure.jpg")
    with pytest.raises(InvalidInput, match="Did you mean 'dark'"), theme("drak"):
        pass


def test_dark_theme_reaches_legends_and_notes() -> None:
    with theme("dark"):
        figure, ax = single_axes()
        ax.plot([0, 1], label="line")
        texts = [*ax.legend().get_texts(), ax.text(0, 0, "note"), ax.title, ax.xaxis.label]
        assert {to_hex(text.get_color()) for text in texts} == {ink()}
        assert to_hex(figure.get_facecolor()) == paper()


def test_figure_keeps_its_own_paper_when_saved_outside_its_theme() -> None:
    with theme("dark"):
        figure, _ = single_axes()
        dark = paper()
    assert dark in to_svg(figure, "f")
    assert paper() not in to_svg(figure, "f")


def test_settings_of_the_user_are_untouched() -> None:
    before = dict(matplotlib.rcParams)
    with theme("dark"):
        new_figure(2, 2)
    to_svg(single_axes()[0], "f")
    assert dict(matplotlib.rcParams) == before


def test_axes_come_as_an_array_of_rows_and_columns() -> None:
    _, axes = new_figure(2, 3)
    assert axes.shape == (2, 3)


def test_inline_figures_share_no_ids_and_refer_to_their_own() -> None:
    def ids(svg: str) -> tuple[set[str], set[str]]:
        root = ElementTree.fromstring(svg)
        own = {node.get("id") for node in root.iter() if node.get("id")}
        links = {value.lstrip("#") for node in root.iter() for key, value in node.items() if key.endswith("href")}
        clips = {node.get("clip-path", "")[5:-1] for node in root.iter() if node.get("clip-path")}
        return own, links | clips

    figure, ax = single_axes()
    ax.plot([0, 1], "o-")
    first, used = ids(to_svg(figure, "a"))
    second, _ = ids(to_svg(figure, "b"))
    assert not first & second
    assert used
    assert used <= first


def test_prefix_that_cannot_be_an_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="prefix must be a letter"):
        to_svg(single_axes()[0], '"><script>')


def test_a_styled_function_draws_legends_and_titles_in_the_house_style_without_being_told() -> None:
    @styled
    def draw(label: str, *, title: str) -> Figure:
        figure, axes = single_axes()
        axes.plot([0, 1], label=label)
        axes.set_title(title)
        axes.legend()
        return figure

    before = matplotlib.rcParams.copy()
    for name in ("light", "dark"):
        with theme(name):
            (axes,) = draw("a line", title="a title").axes
            legend = axes.get_legend()
            assert legend is not None
            assert not legend.get_frame_on()
            assert legend.get_texts()[0].get_color() == axes.title.get_color() == ink()
            assert axes.title.get_fontsize() == 10
    assert matplotlib.rcParams == before
    (axes,) = draw("a line", title="a title").axes
    assert axes.title.get_fontsize() == 10  # outside of any theme too


def test_a_figure_brings_no_address_that_runs_code_into_a_page() -> None:
    figure, ax = single_axes()
    for number, address in enumerate(
        ("javascript:alert(1)", "JaVaScript:alert(2)", "data:text/html,x", "https://a.b/c")
    ):
        ax.text(0.5, number / 4, "x").set_url(address)
    element = to_svg(figure, "f")
    assert "alert" not in element
    assert "text/html" not in element
    assert "https://a.b/c" in element
