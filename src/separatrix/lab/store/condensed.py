"""Condensed runs: the summary of a run as it was last made, so that looking at 100,000 records reads none of them.

A condensed run is used as long as nothing that went into it has changed: its records (by the size and time of their
files, and their digests), the code of the package and of the experiment, and the parameters.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from ..experiment.definition import Experiment
from ..experiment.provenance import code_state
from ..experiment.summary import Summary
from .gathering import as_number
from .records import Store
from .run_keys import RunKeys


def state_of(experiment: Experiment, keys: RunKeys) -> tuple[str, int] | None:
    """A digest of all that decides the summary of a run's records; ``None`` if one is missing or was touched.

    With it comes the sum of the records' own digests, to be compared with what was gathered.
    """
    state, total = hashlib.sha256(code_state(experiment.module).encode()), 0
    rows = keys.digests()
    while some := list(itertools.islice(rows, 1000)):
        lines = [f"{key} {digest}\n" for key, digest in some if digest is not None]
        if len(lines) < len(some):
            return None
        state.update("".join(lines).encode())
        total += sum(as_number(digest) for _, digest in some if digest is not None)
    return state.hexdigest(), total


def keep_condensed(
    store: Store, run: str, experiment: Experiment, state: str, summary: Summary, provenance: Mapping[str, Any]
) -> None:
    """Keep what a run condensed to; not if it would read back as something else (a quantity that is not a number)."""
    try:
        body = json.dumps({"summary": summary.to_dict(), "provenance": dict(provenance)}, allow_nan=False)
        faithful = experiment.summary.from_dict(json.loads(body)["summary"]) == summary
    except (ValueError, TypeError):
        return
    if faithful:
        with store.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO reports VALUES (?, ?, ?)", (run, state, body))


def find_condensed(store: Store, run: str, experiment: Experiment, state: str) -> tuple[Summary, dict[str, Any]] | None:
    """Summary and provenance of a run in this state, if they were kept."""
    rows = store.database.query("SELECT body FROM reports WHERE run = ? AND digest = ?", (run, state))
    if not rows:
        return None
    try:
        body = json.loads(rows[0][0])
        return experiment.summary.from_dict(body["summary"]), body["provenance"]
    except (ValueError, KeyError, TypeError, AttributeError):  # of another time; it is made again
        return None
