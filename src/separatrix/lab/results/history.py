"""How published verdicts changed: a file may not change its mind without saying when and why."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from separatrix.core.errors import InvalidInput

from ..experiment.provenance import commit
from .publication import Publication, read_publication


def with_history(body: Mapping[str, Any], path: Path, because: str) -> dict[str, Any]:
    """The body of a file with the history of the one it replaces, and what changes now.

    Raises:
        InvalidInput: a verdict or rule changes and no reason is given.
    """
    if not path.exists():
        return dict(body)
    before = read_publication(path, None)
    changes = _changes(before, body)
    if not changes:
        return {**body, "history": before.history}
    if not because.strip():
        named = "; ".join(f"{name}: {change['from']} to {change['to']}" for name, change in changes.items())
        raise InvalidInput(f"because must say why published verdicts or rules of {path.name} change ({named}).")
    entry = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "because": because.strip(),
        "changes": changes,
    }
    return {**body, "history": [*before.history, entry]}


def _changes(before: Publication, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By claim id: the verdict before and now, and whether the rule or the run is another."""
    old, new = before.claims, body["claims"]
    another_run = before.provenance.get("last") != body["provenance"].get("last")
    found = {}
    for name in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(name, {}), new.get(name, {})
        verdict_changed = was.get("verdict") != now.get("verdict")
        # A file of the time before rules were digested has none to compare with.
        rule_changed = "rule" in was and was["rule"] != now.get("rule")
        if verdict_changed or rule_changed:
            found[name] = {
                "from": was.get("verdict", "no such claim"),
                "to": now.get("verdict", "no such claim"),
                "rule": "changed" if rule_changed else "not recorded before" if "rule" not in was else "the same",
                "run": "another" if another_run else "the same",
            }
    return found
