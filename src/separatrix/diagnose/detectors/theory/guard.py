"""A note of the theory must not end a diagnosis: what a stranger's model raises when called otherwise is told."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from ...findings.finding import Finding
from ...recording.observed import Observed

Detector = Callable[[Observed], list[Finding]]


def never_fatal(detector: Detector) -> Detector:
    """The detector, listed as skipped with the reason where the model does not bear how it is called."""

    @functools.wraps(detector)
    def guarded(facts: Observed) -> list[Finding]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the model said what it warns of at its first forward
                return detector(facts)
        except Exception as error:  # a forward of somebody else's may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())[:80]
            facts.skip(detector.__name__, f"the model could not be called for it ({said})")
            return []

    return guarded
