"""What a diagnosis says: findings with their certainty, what was skipped, one screen of text, JSON, HTML."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
