"""Answers from a fixed list, each shown to people by its own words."""

from __future__ import annotations

import enum

from .errors import unknown_name


class Labelled(enum.Enum):
    """An enumeration whose values are the words that people read."""

    @classmethod
    def _missing_(cls, value: object) -> Labelled:
        raise unknown_name(cls.__name__, value, [str(member.value) for member in cls])

    @property
    def label(self) -> str:
        """As shown to people."""
        return str(self.value)
