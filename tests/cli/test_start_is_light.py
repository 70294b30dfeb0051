from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backwards_engine import BackwardsEngine
from command_line import environment
from separatrix.experiments import find
from separatrix.lab import Store

HEAVY = ("torch", "matplotlib", "fastapi", "pandas", "scipy")

PROBE = f"""
import json, sys
from separatrix.cli.main import main
for words in json.loads(sys.argv.pop()):
    sys.argv = ["separatrix", *words]
    try:
        main()
    except SystemExit as end:
        print(words, end.code or 0, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def told(commands: list[list[str]], **env: str) -> list[str]:
    words = [sys.executable, "-c", PROBE, json.dumps(commands)]
    return subprocess.run(
        words, env=environment(**env), capture_output=True, text=True, check=False
    ).stderr.splitlines()


def test_commands_that_compute_nothing_import_nothing_heavy(tmp_path: Path) -> None:
    commands = [["--help"], ["--version"], ["run", "--help"], ["list"], ["claims"], ["errata"], ["version"]]
    assert told(commands, XDG_DATA_HOME=str(tmp_path)) == [f"{words} 0 []" for words in commands]


def test_completion_imports_nothing_heavy() -> None:
    asked = {"_SEPARATRIX_COMPLETE": "complete_bash", "COMP_WORDS": "separatrix run ", "COMP_CWORD": "2"}
    assert told([[]], **asked) == ["[] 0 []"]


@pytest.mark.parametrize("is_stored", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_running_an_experiment_imports_what_it_needs(is_stored: bool, tmp_path: Path) -> None:
    """The worker, which computes and imports torch for it, is started with the slow tests alone."""
    changes = {"n_points": 2, "splits": [[2, 2]]}
    if is_stored:
        experiment = find("altafini-theorem2")
        with Store(tmp_path) as store:
            list(BackwardsEngine().run(experiment.cells(experiment.params("smoke", **changes)), store, {}))
    code = "import sys; from separatrix.cli.main import main; from contextlib import suppress\n"
    code += "with suppress(SystemExit):\n    main()\n"
    code += "rooms = {name for name, module in sys.modules.items() if hasattr(module, '__path__')}\n"
    code += "ours = [name for name in sys.modules if name.split('.')[0] == 'separatrix' and name not in rooms]\n"
    code += "print(*ours, file=sys.stderr)"
    settings = [word for name, value in changes.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    words = ["run", "altafini-theorem2", *settings, "--store", str(tmp_path)]
    answer = subprocess.run(
        [sys.executable, "-c", code, *words, "--jobs", "1"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = answer.stderr.splitlines()[-1].split()
    assert "altafini-theorem2 (smoke): 1 of 1 cells" in answer.stdout
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms == {"cli", "core", "experiments", "lab"}  # no data set is read, nothing is computed in this process
    assert [name for name in loaded if name.count(".") == 3 and ".experiments." in name] == [
        "separatrix.experiments.altafini2025.altafini_theorem2"
    ]
    assert len(loaded) <= 64  # files, not rooms; 111 before experiments and commands were found by name
