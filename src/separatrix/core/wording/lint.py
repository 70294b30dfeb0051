"""What is wrong with a sentence or a heading that people read: digits, plurals, names of code."""

from __future__ import annotations

import re

_SINGULAR = "as is has was less this across class loss process series always minus plus times keeps retains solves"
"""Words in s that may follow a one: they are no plurals, or the one is a name ("layer 1 keeps")."""
_COUNTED = rf"(?<![\w.,/^-])1 (?!(?:{_SINGULAR.replace(' ', '|')})\b)"
_FAULTS = {
    "a plural after one": re.compile(_COUNTED + r"[a-z]+(?<!s)s\b"),
    "+- for ±": re.compile(r"\+-"),
    "a zero with an exponent": re.compile(r"\b0(?:\.0+)?e"),
    "an exponent with a plus or leading zeros": re.compile(r"\de(?:\+|-?0\d)"),
    "a zero with a sign": re.compile(r"(?<![\w.^])[-+]0(?:\.0+)?(?![\d.]|%)"),
    "a name of code": re.compile(r"\b(?!v_\w+\b|[A-Z]_\w\b)[A-Za-z]+_[A-Za-z]\w+"),
    "more digits than an error bears": re.compile(r"(?<![\w.])\d\.\d{2,}e-?\d"),
    "more than six digits": re.compile(r"(?<![\w.])(?:0\.0*[1-9]\d{6,}|[1-9]\d*\.\d{6,})(?!\d| ±)"),
}
_PAIR = re.compile(r"(?<![\w.])-?(\d+(?:\.(\d+))?) ± (\d+(?:\.(\d+))?)(?!\.?\d|e)")


def faults_of(text: str) -> list[str]:
    """What is wrong with a sentence, each with the words it is about.

    Example:
        >>> faults_of("of 1 comparisons 0.604167 ± 0.116108 agree"), faults_of("2 comparisons, 0.60 ± 0.12")
        (['a plural after one: 1 comparisons', 'digits beyond the uncertainty: 0.604167 ± 0.116108'], [])
    """
    found = [f"{fault}: {match[0]}" for fault, pattern in _FAULTS.items() for match in pattern.finditer(text)]
    return found + [f"digits beyond the uncertainty: {match[0]}" for match in _PAIR.finditer(text) if _unfit(match)]


def _unfit(match: re.Match[str]) -> bool:
    """A value and its uncertainty end at the same place, and the latter has at most two digits."""
    places, others = match[2] or "", match[4] or ""
    digits = match[3].replace(".", "").strip("0") if "." not in match[3] else match[3].replace(".", "").lstrip("0")
    return len(places) != len(others) or len(digits) > 2
