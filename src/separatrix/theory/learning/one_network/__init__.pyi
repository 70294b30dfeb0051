from .network_product import NetworkProduct as NetworkProduct, Unreliable as Unreliable
from .plain_arrays import PlainNetwork as PlainNetwork, plain_network as plain_network
