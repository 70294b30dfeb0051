from __future__ import annotations

import subprocess
import sys

import pytest

from command_line import environment

HEAVY = ("torch", "matplotlib", "fastapi", "pandas", "scipy")

PROBE = f"""
import sys
HEAVY = {HEAVY}
from separatrix.cli.main import main
sys.argv = ["separatrix", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    code = end.code or 0
print("LOADED", code, *[name for name in HEAVY if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["list"], ["claims"], ["run", "--help"], ["errata"], ["version"]], ids=" ".join
)
def test_commands_that_compute_nothing_import_nothing_heavy(words: list[str], tmp_path) -> None:
    assert loaded(words, XDG_DATA_HOME=str(tmp_path)) == "LOADED 0"


def test_completion_imports_nothing_heavy() -> None:
    asked = {"_SEPARATRIX_COMPLETE": "complete_bash", "COMP_WORDS": "separatrix run ", "COMP_CWORD": "2"}
    assert loaded([], **asked) == "LOADED 0"


def loaded(words: list[str], **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], env=environment(**env), capture_output=True, text=True, check=False
    )
    return done.stderr.strip().splitlines()[-1]
