"""The ground floor: errors, outcomes, formula records, random streams, results, array checks. No mathematics."""

from .rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
