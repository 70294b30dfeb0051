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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import separatrix

from .cell import Cell
from .definition import Experiment
from .instruction_sets import chosen_kernels
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


def code_fingerprint(module: str) -> str:
    """Digest of the package's sources and of the module that defines an experiment, if that stands elsewhere."""
    return _fingerprint(module)


@functools.cache
def _fingerprint(module: str) -> str:
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


def machine() -> dict[str, Any]:
    """Platform, Python, number of processors, the numerical libraries: their versions (read without importing them) and
    the kernels that those which are loaded chose for this processor."""
    chosen = chosen_kernels()
    return {**_machine(), **({"kernels": chosen} if chosen else {})}


@functools.cache
def _machine() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "numpy": importlib.metadata.version("numpy"),
        "cpu_count": os.cpu_count() or 1,
    }


@final
class Origins:
    """The provenance of a run from that of its records, taken in one by one: memory does not grow with their number."""

    def __init__(self) -> None:
        self._distinct: dict[str, set[Any]] = {name: set() for name in ("versions", "commits", "code", "seeds")}
        self._machines: set[tuple[tuple[str, Any], ...]] = set()
        self._machine: Mapping[str, Any] | None = None
        self._devices: set[str] = set()
        self._data: dict[str, str] = {}
        self._rules: dict[str, set[str]] = {}
        self._ruled: dict[str, int] = {}
        self._first = self._last = None
        self._seconds, self._count = 0.0, 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in the provenance of one record."""
        versions, commits, code, seeds = self._distinct.values()
        versions.add(record["package_version"])
        commits.add(record.get("commit", "unknown"))
        code.add(record["code"])
        seeds.add(record["seed"])
        if record["machine"] != self._machine:  # most are of one
            self._machine = record["machine"]
            self._machines.add(tuple(sorted(self._machine.items())))
        self._devices.add(record.get("device", "cpu"))
        self._data.update(record["data"])
        for claim, digest in record.get("rules", {}).items():
            self._rules.setdefault(claim, set()).add(digest)
            self._ruled[claim] = self._ruled.get(claim, 0) + 1
        time, self._count = record["time"], self._count + 1
        self._first = time if self._first is None else min(self._first, time)
        self._last = time if self._last is None else max(self._last, time)
        self._seconds += record["seconds"]

    def combined(self) -> dict[str, Any]:
        """Every distinct value, first and last time, all seconds; rules as far as every record names one."""
        versions, commits, code, seeds = (sorted(found) for found in self._distinct.values())
        return {
            "package_versions": versions,
            "commits": commits,
            "code": code,
            "rules": {
                claim: sorted(found)
                for claim, found in sorted(self._rules.items())
                if self._ruled[claim] == self._count
            },
            "data": dict(self._data),
            "seeds": seeds,
            "machines": [dict(items) for items in sorted(self._machines)],
            "devices": sorted(self._devices),
            "seconds": self._seconds,
            "first": self._first,
            "last": self._last,
        }
