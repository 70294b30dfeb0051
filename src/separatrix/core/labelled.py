"""Answers from a fixed list, each shown to people by its own words."""

from __future__ import annotations

import enum


class Labelled(enum.Enum):
    """An enumeration whose values are the words that people read."""

    @property
    def label(self) -> str:
        """As shown to people."""
        return str(self.value)
