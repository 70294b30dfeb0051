"""The ground floor: errors, outcomes, formula records, random streams, results, array checks. No mathematics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
