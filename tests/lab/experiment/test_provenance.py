from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
import torch

import separatrix
from separatrix.lab import machine, provenance
from separatrix.lab.experiment.provenance import Origins, _fingerprint
from short_experiments import SHORT

CELL = SHORT.cells(SHORT.params("smoke", seeds=(7,)))[0]


def test_provenance_names_everything_needed_to_repeat_a_cell() -> None:
    found = provenance(SHORT, CELL, 1.5, {"mnist": "abc"})
    assert found["args"] == CELL.args
    assert (found["seed"], found["seconds"]) == (7, 1.5)
    assert found["package_version"] == separatrix.__version__
    assert found["data"] == {"mnist": "abc", "ptb": "not recorded"}


def test_the_machine_knows_its_libraries_without_importing_them() -> None:
    build = torch.__version__  # some builds name their hardware (+cu124) here and not in their metadata
    assert machine()["torch"] in (build, build.partition("+")[0])
    assert machine()["numpy"] == numpy.__version__
    code = "import sys; from separatrix.lab import machine; machine(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_fingerprint_changes_with_the_code_of_the_experiment(tmp_path: Path, monkeypatch) -> None:
    inside = _fingerprint.__wrapped__("separatrix.lab.experiment.cell")
    outside = _fingerprint.__wrapped__("short_experiments")
    assert inside != outside
    copy = tmp_path / "copy.py"
    copy.write_text("changed")
    monkeypatch.setattr(sys.modules["short_experiments"], "__file__", str(copy))
    assert _fingerprint.__wrapped__("short_experiments") != outside
    assert _fingerprint.__wrapped__("separatrix.lab.experiment.cell") == inside


def test_a_run_combines_what_its_records_say() -> None:
    first, second = provenance(SHORT, CELL, 1.5), {**provenance(SHORT, CELL, 2.0), "package_version": "9.9", "seed": 1}
    origins = Origins()
    for one in (first, {**second, "device": "cuda (A)"}):
        origins.add(one)
    found = origins.combined()
    assert found["seconds"] == 3.5
    assert found["package_versions"] == [separatrix.__version__, "9.9"]
    assert found["seeds"] == [1, 7]
    assert found["machines"] == [machine()]
    assert found["devices"] == ["cpu", "cuda (A)"]
    assert Origins().combined()["first"] is None
