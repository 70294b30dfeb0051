from .base import AbstractRecurrentMap as AbstractRecurrentMap
from .network import RecurrentNetwork as RecurrentNetwork
from .reading import RecurrentSource as RecurrentSource, recurrent_networks as recurrent_networks
