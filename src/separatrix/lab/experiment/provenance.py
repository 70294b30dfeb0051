"""Where a record comes from: code, data, machine, time. It decides no result, but helps to repeat one."""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import separatrix

from .cell import Cell
from .definition import Experiment
from .rule import rule_digest


def provenance(
    experiment: Experiment, cell: Cell, seconds: float, data: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What goes into a record beside its payload: all that helps to repeat it, and the rules its claims have now.

    So a rule that is changed after a cell was computed is seen to be.

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
        "commit": commit(),
        "code": code_fingerprint(experiment.module),
        "rules": {claim.id: rule_digest(claim) for claim in experiment.claims},
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
def code_state(module: str) -> str:
    """Digest of the code that an experiment can be expected to use: that of ``code_fingerprint`` and, for an experiment
    that is not of this package, every source below its folder and every other that is loaded from no installed package.

    Cost: reading these files once per process.
    """
    digest = hashlib.sha256(code_fingerprint(module).encode())
    source = getattr(sys.modules.get(module), "__file__", None)
    if module.split(".")[0] == "separatrix" or source is None:
        return digest.hexdigest()
    modules = [
        found for name, found in list(sys.modules.items()) if name.split(".")[0] not in ("separatrix", "__main__")
    ]
    loaded = {getattr(found, "__file__", None) for found in modules}
    files = {Path(name) for name in loaded if name and name.endswith(".py")} | set(Path(source).parent.rglob("*.py"))
    installed = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    for path in sorted(files):
        if "site-packages" not in path.parts and not str(path).startswith(installed) and path.is_file():
            digest.update(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@functools.cache
def commit() -> str:
    """The commit of the package's sources: of the checkout it is run from, or of which it was installed by pip.

    ``+changes`` follows when files of the package differ from it; ``"unknown"`` when neither is known.
    """
    root = Path(separatrix.__file__).parent
    git = ["git", "-C", str(root)]
    try:
        tracked = subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], capture_output=True, timeout=10)
        if tracked.returncode == 0:
            head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, timeout=10, text=True, check=True)
            changed = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, timeout=10, check=True)
            return head.stdout.strip() + ("+changes" if changed.stdout else "")
    except (OSError, subprocess.SubprocessError):
        pass
    return _installed_commit()


def _installed_commit() -> str:
    try:
        origin = importlib.metadata.distribution("separatrix").read_text("direct_url.json")
        return str(json.loads(origin or "{}")["vcs_info"]["commit_id"])
    except (importlib.metadata.PackageNotFoundError, ValueError, KeyError):
        return "unknown"


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
        "commits": sorted({record.get("commit", "unknown") for record in records}),
        "code": sorted({record["code"] for record in records}),
        "rules": _rules(records),
        "data": {name: digest for record in records for name, digest in record["data"].items()},
        "seeds": sorted({record["seed"] for record in records}),
        "machines": _distinct([record["machine"] for record in records]),
        "seconds": sum(record["seconds"] for record in records),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
    }


def _rules(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By claim id, the digests of every rule that stood when a cell was computed; older records name none."""
    found: dict[str, set[str]] = {}
    for record in records:
        for claim, digest in record.get("rules", {}).items():
            found.setdefault(claim, set()).add(digest)
    complete = {claim for claim in found if all(claim in record.get("rules", {}) for record in records)}
    return {claim: sorted(found[claim]) for claim in sorted(complete)}


def _distinct(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(items) for items in sorted({tuple(sorted(machine.items())) for machine in machines})]
