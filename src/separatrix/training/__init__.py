"""Training: one readable loop, checkpoints that survive being killed, schedules, records of what happened."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
