"""Doors through which a result leaves for a room above: what writes it is looked up by name when it is asked for.

Rooms only look down, and nothing below ``report`` draws. A result whose ``save`` offers a drawn page names the page
here; the room that draws is loaded at that moment and nobody below depends on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_OUTLETS = {
    "diagnosis.html": "separatrix.report.pages.diagnosis:write_diagnosis_page",
    "diagnosis.pdf": "separatrix.report.pages.diagnosis:write_diagnosis_pdf",
}


def outlet(kind: str) -> Callable[..., Any]:
    """The function that writes results of a kind."""
    module, _, name = _OUTLETS[kind].partition(":")
    return getattr(importlib.import_module(module), name)
