from .integrate import integrate as integrate
from .layer_stacks import LayerRun as LayerRun, Layers as Layers, layers_of as layers_of, run_layers as run_layers
from .layers import integrate_layers as integrate_layers
from .methods import *
from .orbits import *
from .trajectory import Trajectory as Trajectory
from .variational import flow_map as flow_map, lyapunov_exponents as lyapunov_exponents
