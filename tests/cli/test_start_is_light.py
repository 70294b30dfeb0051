from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from command_line import environment

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
