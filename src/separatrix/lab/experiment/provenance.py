"""Where a record comes from: code, data, machine, time. It decides no result, but helps to repeat one."""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import separatrix

from .cell import Cell
from .definition import Experiment


def provenance(
    experiment: Experiment, cell: Cell, seconds: float, data: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What goes into a record beside its payload.

    Args:
        experiment: whose cell was computed.
        cell: the cell, with its arguments and seed.
        seconds: how long it took.
        data: SHA-256 of each data set by name; a data set the experiment names but nobody gave is marked
            ``"not recorded"``.
    """
    known = data or {}
    return {
        "args": dict(cell.args),
        "seed": cell.seed,
        "package_version": separatrix.__version__,
        "code": code_fingerprint(experiment.module),
        "data": {name: known.get(name, "not recorded") for name in experiment.data},
        "machine": machine(),
        "seconds": seconds,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def code_fingerprint(module: str) -> str:
    """Digest of the package's sources and of the module that defines an experiment, if that stands elsewhere."""
    root = Path(separatrix.__file__).parent
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is not None and not Path(source).is_relative_to(root):
        files[f"../{module}"] = Path(source)
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@functools.cache
def machine() -> dict[str, Any]:
    """Platform, Python, versions of the numerical libraries (read without importing them), number of processors."""
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "numpy": importlib.metadata.version("numpy"),
        "cpu_count": os.cpu_count() or 1,
    }


def combined(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The provenance of a run from that of its records: every distinct value, first and last time, all seconds."""
    times = sorted(record["time"] for record in records)
    return {
        "package_versions": sorted({record["package_version"] for record in records}),
        "code": sorted({record["code"] for record in records}),
        "data": {name: digest for record in records for name, digest in record["data"].items()},
        "seeds": sorted({record["seed"] for record in records}),
        "machines": _distinct([record["machine"] for record in records]),
        "seconds": sum(record["seconds"] for record in records),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
    }


def _distinct(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(items) for items in sorted({tuple(sorted(machine.items())) for machine in machines})]
