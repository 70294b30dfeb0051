"""On which device a loop that trains should run: where its model lies, unless who computes offers another.

A worker of the lab offers the GPU that it owns. The offer is found out when the first loop asks for it, so a cell that
trains nothing never looks for a GPU, and what was used is noted for the record.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import final

from .described import Described
from .names import suggest_options


@final
@suggest_options
class DeviceOffer(Described):
    """A device for loops that train.

    Args:
        find: gives its name as torch writes it, ``"cpu"`` or ``"cuda:0"``; called once, when it is asked for.
    """

    def __init__(self, find: Callable[[], str]) -> None:
        self._find = find
        self.used = "cpu"
        """What a loop was given; ``"cpu"`` as long as none has asked."""

    def take(self) -> str:
        """The device, for a loop that will use it."""
        self.used = self._find()
        return self.used


_offer: contextvars.ContextVar[DeviceOffer | None] = contextvars.ContextVar("device offer", default=None)


def training_device() -> str | None:
    """The device that a loop which trains should use here; ``None``: the one on which its model lies.

    Example:
        >>> with offered_device(lambda: "cpu") as offer:
        ...     training_device()
        'cpu'
        >>> training_device() is None
        True
    """
    offer = _offer.get()
    return offer.take() if offer is not None else None


@contextlib.contextmanager
def offered_device(find: Callable[[], str]) -> Iterator[DeviceOffer]:
    """Offer a device to loops that train inside the block; the offer says afterwards whether it was used."""
    offer = DeviceOffer(find)
    token = _offer.set(offer)
    try:
        yield offer
    finally:
        _offer.reset(token)
