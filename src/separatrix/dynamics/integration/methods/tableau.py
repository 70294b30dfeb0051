"""Embedded Runge-Kutta pairs as data. Every pair here reuses its last stage as the first of the next step."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from typing import final

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.names import suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class Tableau:
    """Stage coefficients, nodes, error estimates and dense output; the last row of ``stages`` is the solution.

    ``errors`` holds the weights of one estimate, or of two that are combined as in DOP853 (the higher order first).
    ``dense`` holds, for each stage, the coefficients of theta, theta^2, ... of the state at a fraction theta of the
    step; without it steps end on the times that are asked for. ``order`` is that of the solution.
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    errors: tuple[tuple[float, ...], ...]
    dense: tuple[tuple[float, ...], ...] | None = None

    @property
    def n_stages(self) -> int:
        """Stages of a step; one fewer evaluation is needed, as the first is the last of the step before."""
        return len(self.nodes)

    @functools.cache  # noqa: B019
    def rows(self) -> numpy.ndarray:
        """The rows of all stages, then those of the errors, filled up with zeros."""
        filled = [[*row, *[0.0] * (self.n_stages - len(row))] for row in (*self.stages, *self.errors)]
        return numpy.array(filled)

    @functools.cache  # noqa: B019 (a handful of tables that live as long as the program)
    def on(self, dtype: torch.dtype, device: torch.device) -> Coefficients:
        """The coefficients as tensors, built once for each precision and device."""

        def tensor(values: object) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        dense = None if self.dense is None else tensor(self.dense)
        return Coefficients(tuple(tensor(row) for row in self.stages), tensor(self.errors), dense)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """A tableau on a device."""

    stages: tuple[Tensor, ...]
    errors: Float[Tensor, "estimates stages"]
    dense: Float[Tensor, "stages powers"] | None


def _floats(*values: str) -> tuple[float, ...]:
    return tuple(float(Fraction(value)) for value in values)


BS32 = Tableau(
    name="bs32",
    order=3,
    nodes=_floats("0", "1/2", "3/4", "1"),
    stages=((), _floats("1/2"), _floats("0", "3/4"), _floats("2/9", "1/3", "4/9")),
    errors=(_floats("-5/72", "1/12", "1/9", "-1/8"),),
    dense=(
        _floats("1", "-4/3", "5/9"),
        _floats("0", "1", "-2/3"),
        _floats("0", "4/3", "-8/9"),
        _floats("0", "-1", "1"),
    ),
)
"""Bogacki and Shampine 1989, third order with a second-order estimate; dense output by cubic interpolation."""

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
    errors=(_floats("71/57600", "0", "-71/16695", "71/1920", "-17253/339200", "22/525", "-1/40"),),
    dense=(
        _floats("1", "-8048581381/2820520608", "8663915743/2820520608", "-12715105075/11282082432"),
        _floats("0", "0", "0", "0"),
        _floats("0", "131558114200/32700410799", "-68118460800/10900136933", "87487479700/32700410799"),
        _floats("0", "-1754552775/470086768", "14199869525/1410260304", "-10690763975/1880347072"),
        _floats("0", "127303824393/49829197408", "-318862633887/49829197408", "701980252875/199316789632"),
        _floats("0", "-282668133/205662961", "2019193451/616988883", "-1453857185/822651844"),
        _floats("0", "40617522/29380423", "-110615467/29380423", "69997945/29380423"),
    ),
)
"""Dormand and Prince 1980, fifth order with a fourth-order estimate; dense output of Shampine 1986, fourth order."""

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
    errors=(
        (
            -0.00178001105222577714,
            -0.0008164344596567469,
            0.007880878010261995,
            -0.1447110071732629,
            0.5823571654525552,
            -0.45808210592918697,
            0.015151515151515152,
        ),
    ),
    dense=(
        (0.9999999999999998, -2.763706197274826, 2.9132554618219126, -1.0530884977290216),
        (0.0, 0.13169999999999998, -0.2234, 0.1017),
        (0.0, 3.930296236894751, -5.941033872131505, 2.490627285651253),
        (0.0, -12.411077166933676, 30.338188630282318, -16.548102889244902),
        (0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928),
        (0.0, -27.896526289197286, 65.09189467479368, -34.87065786149661),
        (0.0, 1.5, -4.0, 2.5),
    ),
)
"""Tsitouras 2011, fifth order with a fourth-order estimate and dense output of fourth order."""


@functools.cache
def dop853() -> Tableau:
    """Hairer, Norsett, Wanner 1993: eighth order, with estimates of fifth and third order; no dense output.

    The numbers are those of ``scipy.integrate.DOP853``, imported here because few callers need them.
    """
    from scipy.integrate import DOP853

    rows = tuple(tuple(map(float, DOP853.A[i, :i])) for i in range(len(DOP853.B)))
    return Tableau(
        name="dop853",
        order=8,
        nodes=(*map(float, DOP853.C[: len(rows)]), 1.0),
        stages=(*rows, tuple(map(float, DOP853.B))),
        errors=(tuple(map(float, DOP853.E5)), tuple(map(float, DOP853.E3))),
    )
