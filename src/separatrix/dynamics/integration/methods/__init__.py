"""How a step is made: Runge-Kutta pairs, a Rosenbrock method, step control, and presets of both."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
