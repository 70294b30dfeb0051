"""How numbers, counts and tables are said to people: digits by the uncertainty, names in words, plurals that agree."""

from .folding import folded
from .headings import heading
from .numerals import alike, interval_of, joined, measured, number, several, small, uncertainty, within_interval
from .tables import ReadableTable, cell, readable

__all__ = [
    "ReadableTable",
    "alike",
    "cell",
    "folded",
    "heading",
    "interval_of",
    "joined",
    "measured",
    "number",
    "readable",
    "several",
    "small",
    "uncertainty",
    "within_interval",
]
