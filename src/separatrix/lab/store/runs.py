"""What a store remembers of runs: which experiment, scale and parameters, and the keys of their cells.

So an unfinished run can be resumed without repeating its options, and claims know which records belong together.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

from separatrix.core.disk import read_regular, why_not, write_text_whole
from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.core.names import suggest_options

from ..experiment.cell import Cell, canonical_json, is_key
from ..experiment.definition import Experiment, Params
from ..experiment.provenance import code_state
from ..experiment.scales import SCALES, require_scale
from .records import Store


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class StoredRun:
    """One remembered run."""

    experiment: str
    version: int
    scale: str
    params: dict[str, Any]
    keys: tuple[str, ...]
    command: str
    time: float
    """When it was last asked for."""

    def params_of(self, experiment: Experiment) -> Params | None:
        """Its parameters as the experiment's own model, or ``None`` if the code no longer accepts them."""
        return _params_of(experiment, self.scale, self.params)


def _params_of(experiment: Experiment, scale: str, settings: dict[str, Any]) -> Params | None:
    given = {name: value for name, value in settings.items() if name != "seeds"}
    try:
        return experiment.params(scale, settings.get("seeds"), **given)
    except InvalidInput:
        return None


def remember_run(
    store: Store, experiment: Experiment, scale: str, params: Params, cells: Sequence[Cell], command: str
) -> None:
    """Keep a run; the same experiment, version, scale and parameters are one run, whenever asked for.

    It stands in the index and, for the day the index is lost, in a file beside the records.

    Raises:
        StoreError: it cannot be written.
    """
    name, keys = run_name(experiment, scale, params), tuple(cell.key for cell in cells)
    settings = params.model_dump(mode="json")
    run = StoredRun(experiment.name, experiment.version, scale, settings, keys, command, time.time())
    _write_run(store, name, run)
    with store.database.transaction() as connection:
        insert_run(connection, name, run)
        connection.execute("UPDATE runs SET code = ? WHERE id = ?", (code_state(experiment.module), name))


def run_name(experiment: Experiment, scale: str, params: Params) -> str:
    """By what a run is known: a digest of experiment, version, scale and parameters."""
    settings = canonical_json(params.model_dump(mode="json"))
    identity = canonical_json([experiment.name, experiment.version, scale, settings])
    return hashlib.sha256(identity.encode()).hexdigest()


def touch_run(store: Store, experiment: Experiment, scale: str, params: Params) -> None:
    """Note that a remembered run was asked for again."""
    with store.database.transaction() as connection:
        connection.execute("UPDATE runs SET time = ? WHERE id = ?", (time.time(), run_name(experiment, scale, params)))


def is_known(store: Store, experiment: Experiment, scale: str, params: Params) -> bool:
    """Whether a run was asked for before with the very same code, so that its keys need not be made again."""
    return bool(
        store.database.query(
            "SELECT 1 FROM runs WHERE id = ? AND code = ?",
            (run_name(experiment, scale, params), code_state(experiment.module)),
        )
    )


def _write_run(store: Store, name: str, run: StoredRun) -> None:
    path = store.folder / "runs" / f"{name}.json"
    try:
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_text_whole(path, json.dumps(dataclasses.asdict(run), indent=1) + "\n")
    except OSError as error:
        raise StoreError(f"the run cannot be noted in the store {store.folder}: {why_not(error)}.") from error


def write_runs(store: Store, connection: sqlite3.Connection) -> None:
    """Write the files of runs that stand in the index alone, as older versions of the package left them."""
    for name, *row in connection.execute(f"SELECT id, {_COLUMNS} FROM runs").fetchall():
        _write_run(store, name, _stored(row))


def insert_run(connection: sqlite3.Connection, name: str, run: StoredRun, *, newer_only: bool = False) -> None:
    """Take a run into the index, inside a transaction."""
    connection.execute(
        f"""INSERT OR {"IGNORE" if newer_only else "REPLACE"} INTO runs
            (id, experiment, version, scale, params, keys, command, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            name,
            run.experiment,
            run.version,
            run.scale,
            canonical_json(run.params),
            json.dumps(run.keys),
            run.command,
            run.time,
        ),
    )


def read_run(path: Path) -> StoredRun:
    """A run from the file beside the records.

    Raises:
        CorruptData: it is not such a file.
    """
    try:
        return run_from_body(read_regular(path), str(path))
    except OSError as error:
        raise CorruptData(f"{path} does not tell of a run: {why_not(error)}.") from None


def run_from_body(content: bytes, name: str) -> StoredRun:
    """A run from the content of such a file.

    Raises:
        CorruptData: it is not such a file.
    """
    try:
        body = json.loads(content)
        if not all(map(is_key, body["keys"])):
            raise ValueError("a key of a cell is none")
        return StoredRun(**{**body, "keys": tuple(body["keys"])})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptData(f"{name} does not tell of a run ({type(error).__name__}: {error}).") from None


def stored_runs(store: Store, experiment: Experiment) -> list[StoredRun]:
    """Remembered runs of an experiment at its present version, oldest first."""
    return [_stored(row) for row in store.database.query(_of_experiment(_COLUMNS), _version(experiment))]


_COLUMNS = "experiment, version, scale, params, keys, command, time"
_IS_COMPLETE = "NOT EXISTS (SELECT 1 FROM json_each(runs.keys) WHERE value NOT IN (SELECT key FROM records))"


def _of_experiment(columns: str) -> str:
    return f"SELECT {columns} FROM runs WHERE experiment = ? AND version = ? ORDER BY time"


def _version(experiment: Experiment) -> tuple[str, int]:
    return experiment.name, experiment.version


def _stored(row: Sequence[Any]) -> StoredRun:
    name, version, scale, params, keys, command, when = row
    return StoredRun(name, version, scale, json.loads(params), tuple(json.loads(keys)), command, when)


def best_run(experiment: Experiment, store: Store, scale: str | None = None) -> StoredRun | None:
    """The complete run that judges an experiment: of the largest scale, most seeds, latest.

    Only runs with the parameters of their scale count (seeds may differ): a run made small with ``--set`` is not the
    scale it was derived from.
    """
    for name, _, _ in ranked_runs(experiment, store, scale):
        if is_complete(store, name):
            return _stored(store.database.query(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (name,))[0])
    return None


def ranked_runs(experiment: Experiment, store: Store, scale: str | None = None) -> list[tuple[str, Params, str]]:
    """Name, parameters and scale of the runs that may judge an experiment, complete or not, the best first."""
    if scale is not None:
        require_scale(scale)
    found = []
    for name, own, text, when in store.database.query(_of_experiment("id, scale, params, time"), _version(experiment)):
        settings = _settings(store, own, text)
        params = _params_of(experiment, own, settings)
        if scale in (None, own) and params is not None and _is_usual(experiment, own, settings):
            found.append(((SCALES.index(own), len(settings["seeds"]), when), name, params, own))
    return [(name, params, own) for _, name, params, own in sorted(found, key=lambda run: run[0], reverse=True)]


def _settings(store: Store, scale: str, text: str) -> dict[str, Any]:
    """The parameters of a run as the index holds them."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise store.database.damaged(f"the parameters of a run are not JSON: {error}") from None
    if scale not in SCALES or not isinstance(found, dict) or not isinstance(found.get("seeds"), list):
        raise store.database.damaged("the parameters of a run are none")
    return found


def is_complete(store: Store, name: str) -> bool:
    """Whether every cell of a run has a record in the index."""
    return bool(store.database.query(f"SELECT {_IS_COMPLETE} FROM runs WHERE id = ?", (name,))[0][0])


def _is_usual(experiment: Experiment, scale: str, params: dict[str, Any]) -> bool:
    usual = experiment.params(scale).model_dump(mode="json")
    return {**params, "seeds": ()} == {**usual, "seeds": ()}


def unfinished_runs(experiments: Iterable[Experiment], store: Store) -> list[tuple[Experiment, Params, str]]:
    """Remembered runs that lack records, as requests for ``run_experiments``."""
    requests = []
    for experiment in experiments:
        rows = store.database.query(_of_experiment(f"scale, params, {_IS_COMPLETE}"), _version(experiment))
        for scale, text, complete in rows:
            params = None if complete else _params_of(experiment, scale, _settings(store, scale, text))
            if params is not None:
                requests.append((experiment, params, scale))
    return requests


def run_command(experiment: Experiment, params: Params, scale: str) -> str:
    """The command line that gives exactly this run."""
    words = ["separatrix", "run", experiment.typed_name, "--scale", scale]
    usual, given = experiment.params(scale).model_dump(mode="json"), params.model_dump(mode="json")
    for field, value in given.items():
        if value != usual[field]:
            if field == "seeds":
                words += ["--seeds", ",".join(str(seed) for seed in value) + ("," if len(value) == 1 else "")]
            else:
                words += ["--set", f"{field}={json.dumps(value)}"]
    return shlex.join(words)
