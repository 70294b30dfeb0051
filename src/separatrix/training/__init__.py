"""Training: one readable loop, checkpoints that survive being killed, schedules, records of what happened."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
