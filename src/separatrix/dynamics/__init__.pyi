from .layer_descent import Descent as Descent
from .layer_trajectory import LayerTrajectory as LayerTrajectory
from .linear_network import LinearNetworkFlow as LinearNetworkFlow, chain_product as chain_product
