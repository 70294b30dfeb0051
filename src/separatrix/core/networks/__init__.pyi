from .activations import ACTIVATIONS as ACTIVATIONS, Activation as Activation, find_activation as find_activation
from .trace import Trace as Trace
