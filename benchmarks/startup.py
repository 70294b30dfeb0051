"""Start-up: ``separatrix --help`` against bare interpreters, ``separatrix run NAME`` against ``import torch``.

CPU time of child processes, in turns. The run has nothing to compute: its store holds every cell already.
Usage: python benchmarks/startup.py [--quick]; writes benchmarks/results/startup.json.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile

from rows import Row, compared, main


def child_seconds(*words: str) -> float:
    """User and system time of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        run = ("-m", "separatrix", "run", "altafini-foundations", "--scale", "smoke", "--store", folder, "-q")
        subprocess.run([sys.executable, *run], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pairs = {
            ("separatrix --help", "a bare interpreter", 3.0): (("-m", "separatrix", "--help"), ("-c", "pass")),
            ("separatrix run, nothing to compute", "import torch", 1.5): (run, ("-c", "import torch")),
        }
        found = []
        for (job, peer, goal), words in pairs.items():
            seconds: list[list[float]] = [[], []]
            for _ in range(3 if quick else 9):
                for side in (0, 1):
                    seconds[side].append(child_seconds(*words[side]))
            found.append(compared(job, peer, *seconds, goal=goal, readme=True))
        return found


if __name__ == "__main__":
    main(rows, __file__, __doc__)
