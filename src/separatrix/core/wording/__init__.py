"""How numbers, counts and tables are said to people: digits by the uncertainty, names in words, plurals that agree."""

from .headings import heading
from .numerals import joined, measured, number, several, small, within_interval
from .tables import ReadableTable, cell, readable

__all__ = [
    "ReadableTable",
    "cell",
    "heading",
    "joined",
    "measured",
    "number",
    "readable",
    "several",
    "small",
    "within_interval",
]
