from .base import AbstractMethod as AbstractMethod
from .control import (
    AbstractControl as AbstractControl,
    DisplacementControl as DisplacementControl,
    ScaledControl as ScaledControl,
)
from .presets import Accuracy as Accuracy, Preset as Preset
from .rosenbrock import Rosenbrock as Rosenbrock
from .runge_kutta import RungeKutta as RungeKutta
from .tableau import Tableau as Tableau
