from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

import separatrix
from separatrix.core import InvalidInput, Result
from separatrix.report import drawable, ink, single_axes, theme
from separatrix.report.figures.house import plots
from separatrix.report.figures.house.plots import _DRAWINGS


@dataclasses.dataclass(frozen=True, repr=False)
class Pendulum(Result):
    angles: tuple[float, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class LongPendulum(Pendulum):
    length: float = 2.0


@pytest.fixture(autouse=True)
def drawing() -> Iterator[None]:
    @plots("Pendulum")
    def draw_pendulum(result: Pendulum, ax: Axes) -> None:
        ax.plot(result.angles, label="angle")
        ax.legend()

    yield
    del _DRAWINGS["Pendulum"]


def test_registered_result_is_drawn_on_new_axes_or_on_given_ones() -> None:
    ax = separatrix.plot(Pendulum((0.0, 1.0, 0.5)))
    assert list(ax.lines[0].get_ydata()) == [0.0, 1.0, 0.5]
    _, mine = single_axes()
    assert separatrix.plot(Pendulum((1.0,)), ax=mine) is mine
    assert len(mine.lines) == 1


def test_subclass_is_drawn_like_its_parent() -> None:
    assert len(separatrix.plot(LongPendulum((0.0, 1.0))).lines) == 1


def test_theme_of_the_caller_holds() -> None:
    with theme("dark"):
        ax = separatrix.plot(Pendulum((0.0, 1.0)))
        assert to_hex(ax.get_legend().get_texts()[0].get_color()) == ink()


def test_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"no drawing for a dict\. Known: .*Pendulum"):
        separatrix.plot({"a": 1})


def test_second_drawing_for_one_class_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Pendulum already has the drawing"):
        plots("Pendulum")(lambda result, ax: None)
    assert "Pendulum" in drawable()
