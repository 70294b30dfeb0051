"""The script ``run`` with a Python that only pretends to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRETENDER = """#!/bin/sh
case "$*" in
"-m pip --version") exit 0 ;;
*"--require-hashes"*) echo hashed >>"$LOG"; [ -z "${SAYS:-}" ] || { echo "$SAYS"; exit 1; } ;;
*"--no-deps"*) echo built >>"$LOG" ;;
"-m pip install"*) echo begin >>"$LOG"; sleep 0.3; echo end >>"$LOG" ;;
"- "*) echo digest ;;
"-m pytest"*) echo tests; exit "${TESTS:-0}" ;;
"-m mypy") echo types; exit "${TYPES:-0}" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a check out"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "run", folder)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(PRETENDER)
    python.chmod(0o755)
    return folder


def start(folder: Path, command: str = "demo", **changes: str) -> subprocess.Popen[str]:
    env = {**os.environ, "LOG": str(folder / "log"), **changes}
    pipe = subprocess.PIPE
    return subprocess.Popen([folder / "run", command], env=env, stdout=pipe, stderr=pipe, text=True)


def test_two_at_once_install_one_after_the_other_and_once(checkout: Path) -> None:
    for process in [start(checkout) for _ in range(3)]:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert (checkout / "log").read_text().split() == ["begin", "end"]
    assert not (checkout / ".venv.lock").exists()


@pytest.mark.parametrize(
    ("says", "log", "told", "code"),
    [
        ("", ["hashed", "built"], "installing", 0),
        ("ERROR: No matching distribution", ["hashed", "begin", "end"], "lacks a file of digest", 0),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", ["hashed"], "a file with another digest than digest has", 2),
    ],
)
def test_what_is_installed_has_the_digests_of_the_lock(
    checkout: Path, says: str, log: list[str], told: str, code: int
) -> None:
    (checkout / "locks").mkdir()
    (checkout / "locks" / "digest").touch()  # what the pretender calls it
    process = start(checkout, SAYS=says)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, (checkout / "log").read_text().split()) == (code, log)
    assert told in err


def test_the_locks_hold_what_the_constraints_say() -> None:
    """A change of one without the other would install what was not tested together."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    wanted = dict(line.split("==") for line in lines if "==" in line)
    for lock in (ROOT / "locks").glob("*.txt"):
        rows = [line.split(" --hash=sha256:") for line in lock.read_text().splitlines()[1:]]
        found = dict(row[0].split("==") for row in rows)
        assert all(len(digest) == 64 for _, digest in rows)
        assert {name: version.partition("+")[0] for name, version in found.items() if name in wanted} == {
            name: version for name, version in wanted.items() if name in found
        }
        assert {"torch", "numpy", "pydantic", "hatchling"} <= found.keys()


def test_the_lock_of_one_that_was_killed_is_taken_over(checkout: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (checkout / ".venv.lock").mkdir()
    (checkout / ".venv.lock" / "owner").write_text(f"{dead.pid}\n")
    process = start(checkout)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(("tests", "types"), [("0", "0"), ("1", "0"), ("0", "1"), ("5", "1")])
def test_tests_and_types_are_shown_one_after_the_other_and_both_must_pass(
    checkout: Path, tests: str, types: str
) -> None:
    (checkout / ".venv" / "bin" / "lint-imports").symlink_to("/bin/true")
    process = start(checkout, "test", TESTS=tests, TYPES=types)
    out, err = process.communicate(timeout=60)
    assert out == "tests\ntypes\n", err
    assert (process.returncode == 0) == (tests == types == "0")


def test_a_broken_import_contract_ends_it_before_the_tests(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "lint-imports").symlink_to("/bin/false")
    process = start(checkout, "test")
    assert process.communicate(timeout=60)[0] == ""
    assert process.returncode != 0


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="asks Linux which processes there are")
def test_a_part_of_the_bench_that_takes_too_long_leaves_no_process_behind(tmp_path: Path) -> None:
    told = tmp_path / "child"
    part = ["/bin/sh", "-c", f"sleep 600 & echo $! >'{told}'; wait"]  # as the interpreters that a benchmark starts
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import bench\n"
        f"print(bench.call({part!r}, 1.0))\n"
        "print(bench.call(['/bin/sh', '-c', 'exit 3'], 60.0))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:2] == ["none after 1 s", "3"]
    child = int(told.read_text())
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(child)


FAILING = """
import sys; sys.path.insert(0, {folder!r}); import bench
bench.run_part = lambda name, quick, minutes: None if name == "deq" else {{"rows": []}}
sys.argv = ["bench", "--only", "startup,deq", "--quick"]
sys.exit(bench.main())
"""


def test_a_part_that_failed_does_not_stand_in_the_table_with_the_rows_of_an_older_run() -> None:
    program = FAILING.format(folder=str(ROOT / "benchmarks"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "torchdeq" not in done.stdout
    assert "0 of 0 goals hold" in done.stdout


def _runs(process: int) -> bool:
    """Whether a process exists and is more than an entry that nobody has taken away."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
