"""Every numbered item of agarwala2022, with the claims that judge it or the reason why it has none."""

from __future__ import annotations

from ..document import Item

ITEMS: tuple[Item, ...] = ()
