from .control import (
    AbstractControl as AbstractControl,
    DisplacementControl as DisplacementControl,
    ScaledControl as ScaledControl,
)
from .integrate import integrate as integrate
from .layer_stacks import LayerRun as LayerRun, Layers as Layers, layers_of as layers_of, run_layers as run_layers
from .layers import integrate_layers as integrate_layers
from .methods import AbstractMethod as AbstractMethod, Rosenbrock as Rosenbrock, RungeKutta as RungeKutta
from .orbits import *
from .presets import Accuracy as Accuracy, Preset as Preset
from .tableau import Tableau as Tableau
from .trajectory import Trajectory as Trajectory
from .variational import flow_map as flow_map, lyapunov_exponents as lyapunov_exponents
