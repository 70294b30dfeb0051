from .integrate import integrate as integrate
from .trajectory import Trajectory as Trajectory
from .variational import flow_map as flow_map, lyapunov_exponents as lyapunov_exponents
