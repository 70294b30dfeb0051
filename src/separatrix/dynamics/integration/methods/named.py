"""Methods by name."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.core import resolve

from .base import AbstractMethod
from .rosenbrock import Rosenbrock
from .runge_kutta import RungeKutta
from .tableau import BS32, DP54, TSIT5, Tableau, dop853

EXPLICIT: Mapping[str, Tableau] = {tableau.name: tableau for tableau in (BS32, DP54, TSIT5)}
METHODS = (*EXPLICIT, "dop853", "rodas4")


def find_method(given: str | Tableau | AbstractMethod) -> AbstractMethod:
    """A method by name, from a tableau of one's own, or the given object."""
    if isinstance(given, AbstractMethod):
        return given
    if isinstance(given, Tableau):
        return RungeKutta(given)
    name = resolve("method", given, {name: name for name in METHODS})
    if name == "rodas4":
        return Rosenbrock()
    return RungeKutta(dop853() if name == "dop853" else EXPLICIT[name])
