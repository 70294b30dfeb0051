"""Install a built wheel in an environment that holds nothing else and use it as a newcomer would.

    python tests/packaging_smoke.py dist [--version X.Y.Z]

Run by the workflows on three systems; needs no shell of one of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FIRST_LINES = """
import torch
from separatrix.dynamics import AttentionFlow, classify, integrate, random_tokens

value = torch.diag(torch.tensor([1.0, 0.5, -0.5], dtype=torch.float64))
flow = AttentionFlow.from_coupling(torch.eye(3, dtype=torch.float64), value)
starts = random_tokens(6, 3, 4, generator=torch.Generator().manual_seed(0))
ends = classify(flow, integrate(flow, starts).final)
assert all(end.stable for end in ends), ends
print(len(ends), "stable ends")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--version", help="what the files must be called")
    options = parser.parse_args()
    (wheel,) = options.dist.glob("*.whl")
    (source,) = options.dist.glob("*.tar.gz")
    if options.version is not None:
        for built in (wheel, source):
            if f"-{options.version}" not in built.name:
                sys.exit(f"{built.name} is not of version {options.version}")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "env")
        constraints = Path(__file__).parent.parent / "constraints.txt"
        call(python, "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel)
        call(python, "-c", FIRST_LINES, cwd=folder)
        call(python, "-m", "separatrix", "list", "--document", "altafini2025", cwd=folder)
        call(python, "-m", "separatrix", "claims", "--summary", cwd=folder)
        pages = Path(folder) / "pages"
        call(python, "-m", "separatrix", "report", "anguita-fig4-4", "--published", "--output", pages, cwd=folder)
        assert "<svg" in (pages / "experiments" / "anguita-fig4-4-laptop.html").read_text(encoding="utf-8")
    print("the wheel works by itself")


def environment(folder: Path) -> Path:
    """A new environment; its interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def call(*words: object, cwd: str | None = None) -> None:
    print("+", *(str(word)[:60].strip().replace("\n", " ") for word in words), flush=True)
    subprocess.run([str(word) for word in words], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
