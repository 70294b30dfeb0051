"""Where the results that come with the package are: in a checkout its folder ``results``, else inside the package."""

from __future__ import annotations

from pathlib import Path

import separatrix


def shipped_results() -> Path | None:
    """The folder of published results that belongs to this code; ``None`` if it was installed without them."""
    package = Path(separatrix.__file__).parent
    places = (package / "results", package.parent.parent / "results")
    return next((place for place in places if any(place.glob("*.json"))), None)
