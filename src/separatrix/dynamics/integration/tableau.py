"""Embedded Runge-Kutta pairs as data. Every pair here reuses its last stage as the first of the next step."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import final

from separatrix.core import unknown_name


@final
@dataclasses.dataclass(frozen=True)
class Tableau:
    """Stage coefficients, nodes, and the weights of the error estimate; the last row of ``stages`` is the solution."""

    name: str
    order: int
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    error: tuple[float, ...]

    @property
    def n_stages(self) -> int:
        """Stages of a step; one fewer evaluation is needed when the last step was accepted."""
        return len(self.nodes)


def _floats(*values: str) -> tuple[float, ...]:
    return tuple(float(Fraction(value)) for value in values)


BS32 = Tableau(
    name="bs32",
    order=3,
    nodes=_floats("0", "1/2", "3/4", "1"),
    stages=((), _floats("1/2"), _floats("0", "3/4"), _floats("2/9", "1/3", "4/9")),
    error=_floats("-5/72", "1/12", "1/9", "-1/8"),
)
"""Bogacki and Shampine 1989, third order with a second-order estimate."""

DP54 = Tableau(
    name="dp54",
    order=5,
    nodes=_floats("0", "1/5", "3/10", "4/5", "8/9", "1", "1"),
    stages=(
        (),
        _floats("1/5"),
        _floats("3/40", "9/40"),
        _floats("44/45", "-56/15", "32/9"),
        _floats("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        _floats("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
        _floats("35/384", "0", "500/1113", "125/192", "-2187/6784", "11/84"),
    ),
    error=_floats("71/57600", "0", "-71/16695", "71/1920", "-17253/339200", "22/525", "-1/40"),
)
"""Dormand and Prince 1980, fifth order with a fourth-order estimate."""

TSIT5 = Tableau(
    name="tsit5",
    order=5,
    nodes=(0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    stages=(
        (),
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
        (
            0.09646076681806523,
            0.01,
            0.4798896504144996,
            1.379008574103742,
            -3.290069515436081,
            2.324710524099774,
        ),
    ),
    error=(
        -0.00178001105222577714,
        -0.0008164344596567469,
        0.007880878010261995,
        -0.1447110071732629,
        0.5823571654525552,
        -0.45808210592918697,
        0.015151515151515152,
    ),
)
"""Tsitouras 2011, fifth order with a fourth-order estimate."""

TABLEAUS = {tableau.name: tableau for tableau in (BS32, DP54, TSIT5)}


def find_tableau(name: str) -> Tableau:
    """A pair by name."""
    if name not in TABLEAUS:
        raise unknown_name("Runge-Kutta pair", name, TABLEAUS)
    return TABLEAUS[name]
