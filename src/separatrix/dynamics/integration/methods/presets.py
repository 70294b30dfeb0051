"""How carefully a trajectory is followed, by name."""

from __future__ import annotations

import dataclasses
from typing import final

import torch

from separatrix.core import require_positive, resolve
from separatrix.core.names import suggest_options

from .base import AbstractMethod
from .control import AbstractControl, DisplacementControl, ScaledControl
from .named import find_method
from .tableau import Tableau


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Accuracy:
    """A method with its tolerances."""

    method: str | Tableau | AbstractMethod
    rtol: float
    atol: float | None = None

    def __post_init__(self) -> None:
        find_method(self.method)
        require_positive(self.rtol, "rtol")
        if self.atol is not None:
            require_positive(self.atol, "atol")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Preset:
    """Accuracy on the sphere, where errors are judged by displacements, and elsewhere, where they are judged by sizes.

    ``early`` is the relative speed at which the first attempt is made to finish by Newton's method; an attempt
    succeeds only if a stable equilibrium lies beside the state. ``transient`` is the precision on the sphere down to a
    speed of 1e-3; the rest, and everything that decides, is float64. ``exact`` presets take many small steps.
    """

    name: str
    sphere: Accuracy
    free: Accuracy
    transient: torch.dtype
    early: float
    exact: bool = False


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("fast", Accuracy("tsit5", 2e-2), Accuracy("tsit5", 1e-4, 1e-7), torch.float32, 1e-2),
        Preset("default", Accuracy("tsit5", 1e-3), Accuracy("tsit5", 1e-6, 1e-9), torch.float32, 1e-2),
        Preset("reference", Accuracy("tsit5", 1e-5), Accuracy("dop853", 1e-10, 1e-12), torch.float64, 1e-6, True),
    )
}
"""``fast`` for proportions, ``default`` for what an individual start does, ``reference`` to judge the others."""


def find_preset(given: str | Preset) -> Preset:
    """A preset by name, or the given one."""
    return resolve("preset", given, PRESETS, base=Preset)


def chosen_accuracy(
    on_sphere: bool,
    preset: Preset,
    method: str | Tableau | AbstractMethod | None,
    rtol: float | None,
    atol: float | None,
) -> tuple[AbstractMethod, AbstractControl]:
    """Method and step control of a preset, on the sphere or elsewhere, with what the caller overrides."""
    own = preset.sphere if on_sphere else preset.free
    for value, name in ((rtol, "rtol"), (atol, "atol")):
        if value is not None:
            require_positive(value, name)
    found = find_method(own.method if method is None else method)
    rtol = own.rtol if rtol is None else rtol
    atol = own.atol if atol is None else atol
    if on_sphere:
        return found, DisplacementControl(rtol, atol)
    assert atol is not None
    return found, ScaledControl(rtol, atol)
