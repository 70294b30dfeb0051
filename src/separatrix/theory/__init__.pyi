from .balanced_flow import BalancedFlow as BalancedFlow
from .linear_kernel import two_layer_ntk as two_layer_ntk
