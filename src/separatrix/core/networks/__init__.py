"""What rooms that do not know each other say of networks: activations, the halves of an attentive step, a trace."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
