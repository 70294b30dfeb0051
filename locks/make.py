"""Write the lock of this machine's platform: every package that ./run installs, by version and by SHA-256.

    python locks/make.py [GROUP ...]

To be run with the Python of the platform after a change of constraints.txt or of the dependencies. ./run installs by
the lock of its platform, group and version of Python where there is one, and pip refuses a file that has another
digest.
A lock names files, not where they come from: an index that offers other builds (torch for GPUs) lacks the version that
is locked, and ./run then says so and installs by version.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = ("frames", "test")
TO_BUILD = ("hatchling>=1.26", "editables")
"""What builds the package itself, which is installed without a look at any index."""


def name(group: str) -> str:
    """The file of a group on this platform, as ./run looks for it."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{platform.system()}-{platform.machine()}-{version}-{group}.txt".lower()


def resolved(group: str) -> list[tuple[str, str, str]]:
    """Name, version and digest of everything that a group needs, as pip resolves it under the constraints."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", str(report)]
        wanted = ["--constraint", "constraints.txt", *TO_BUILD, f".[{group}]"]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", *words, *wanted], cwd=HERE.parent, check=True
        )
        found = json.loads(report.read_text())["install"]
    return sorted(
        (
            re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower(),
            one["metadata"]["version"],
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in found
        if one["metadata"]["name"] != "separatrix"
    )


def main() -> None:
    """Write one lock per group."""
    for group in sys.argv[1:] or GROUPS:
        lines = [f"{package}=={version} --hash=sha256:{digest}" for package, version, digest in resolved(group)]
        place = HERE / name(group)
        place.write_text("# Made by locks/make.py.\n" + "\n".join(lines) + "\n", encoding="utf-8")
        print(f"{place.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
