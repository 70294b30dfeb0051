"""What tests share: the mark that pairs a closed form with an independent check, and random cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def checks(*formulas: Callable[..., Any], by: str) -> pytest.MarkDecorator:
    """Mark a test as an independent check of closed forms, ``by`` the route it takes."""
    names = tuple(function.formula.name for function in formulas)  # type: ignore[attr-defined]
    return pytest.mark.checks(names, by=by)
