"""``separatrix version``: what is installed."""

from __future__ import annotations

from ...options import AsJson
from ...printing import print_json


def version(as_json: AsJson = False) -> None:
    """Show the version of the package, of Python and of the numerical libraries."""
    import separatrix
    from separatrix.lab.experiment.provenance import machine

    facts = {"separatrix": separatrix.__version__, **machine()}
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        print(f"{name} {value}")
