"""Data sets and generators.

- ``store/``: which data sets are known, where their files lie, how they are fetched and verified.
- ``images/``, ``text/``: loaders, which turn files into tensors, and data made in code.
- ``sequences/``: sequences to remember, made in code or read step by step.
- ``relational/``: problems whose answer depends on which objects are equal.
- ``batches``: the batch of any step. ``semantic``: tasks for linear networks.

What each of them promises is checked by ``tests/tasks/test_task_contract.py``.
"""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
