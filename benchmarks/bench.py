"""All comparisons in one table: ``./run bench [--only linear,deq] [--quick] [--longest MINUTES]``.

Each part is a script of this folder with a function ``rows``; each runs in a process of its own, so that none inherits
the threads, caches or compiled code of another. The table is printed, written to results/bench.json (parts that were
not run keep their rows), drawn in results/bench.png and put into the README. A part that fails, or does not end within
fifteen minutes or what --longest says, is named, and the others go on: the files keep its rows of the run before, and
neither the printed table nor its sum has them. Every part says how long it took.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from rows import HEAD, RESULTS, Row, environment, from_json, line

PARTS = ("attention", "linear", "deq", "recurrent", "relevance", "startup")
HERE = Path(__file__).parent
LONGEST = 15.0
"""Minutes after which a part is given up."""
PART = """
import importlib, pathlib, sys
folder, name, quick, target = sys.argv[1:]
sys.path.insert(0, folder)
importlib.import_module("rows").written(importlib.import_module(name).rows, bool(quick), pathlib.Path(target))
"""
"""What runs a part in a process of its own."""


def call(command: list[str], longest: float) -> int | str:
    """The exit code of a command, or that it had none in time; whatever it started ends with it, also at an interrupt.

    It gets a session of its own: workers and interpreters that a part starts would outlive a signal to the part alone.
    """
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(timeout=longest)
    except subprocess.TimeoutExpired:
        return f"none after {longest:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_part(name: str, quick: bool, minutes: float) -> dict[str, Any] | None:
    """What a script writes, with the seconds it took; None if it failed."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rows.json"
        command = [sys.executable, "-c", PART, str(HERE), name, "quick" if quick else "", str(target)]
        code = call(command, 60 * minutes)
        if code or not target.is_file():
            print(f"bench: {name}.py failed (exit {code}); the other parts go on", file=sys.stderr, flush=True)
            return None
        content: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    taken = time.monotonic() - begun
    print(f"bench: {name} took {taken:.0f} s, {len(content['rows'])} rows", file=sys.stderr, flush=True)
    return content | {"wall_seconds": taken}


def draw(rows: list[Row], target: Path) -> None:
    """The summaries as dots with their spread and goals, faster to the left."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    shown = [row for row in rows if row.readme and row.ratio is not None][::-1]
    names = [textwrap.fill(f"{row.job} / {row.peer}", 72) for row in shown]
    figure, axes = pyplot.subplots(figsize=(10, 1.4 + 0.34 * max(1, len(shown))), layout="constrained")
    for place, row in enumerate(shown):
        assert row.ratio is not None
        colour = "tab:red" if row.holds is False else "tab:blue"
        axes.plot([row.least or row.ratio, row.most or row.ratio], [place, place], color=colour, alpha=0.5)
        axes.plot(row.ratio, place, "o", color=colour)
        if row.goal is not None:
            axes.plot(row.goal, place, "|", color="black", markersize=14)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="CPU time, ours over theirs\nbar: spread; upright mark: goal; red: missed")
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    axes.margins(y=0.01)
    figure.savefig(target, dpi=130)


def main() -> int:
    """Zero if every part that was asked for has been measured."""
    parser = argparse.ArgumentParser(prog="./run bench", description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--only", help=f"parts, separated by commas, of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a rehearsal of a minute or two; nothing is kept")
    parser.add_argument("--longest", type=float, default=LONGEST, help="minutes after which a part is given up (15)")
    options = parser.parse_args()
    if not options.longest > 0:
        parser.error(f"--longest takes a number of minutes above 0; got {options.longest:g}.")
    chosen = tuple(options.only.split(",")) if options.only else PARTS
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}.")
    kept = RESULTS / "bench.json"
    parts: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["parts"] if kept.is_file() else {}
    begun, measured = time.monotonic(), []
    for name in chosen:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        found = run_part(name, options.quick, options.longest)
        if found is not None:
            parts[name] = found
            measured.append(name)
    told = {name: [from_json(row) for row in parts[name]["rows"]] for name in PARTS if name in parts}
    print(HEAD, *(line(row) for name in told for row in told[name] if name in measured), sep="\n")
    judged = [row for name in measured for row in told[name] if row.holds is not None]
    print(f"{sum(bool(row.holds) for row in judged)} of {len(judged)} goals hold")
    print(f"bench: all took {(time.monotonic() - begun) / 60:.1f} min", file=sys.stderr, flush=True)
    if not options.quick:
        content = {"environment": environment(), "parts": {name: parts[name] for name in PARTS if name in parts}}
        kept.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draw([row for rows in told.values() for row in rows], RESULTS / "bench.png")
        sys.path.insert(0, str(HERE.parent / "docs"))
        importlib.import_module("sitegen.comparison").put_into()
    return int(len(measured) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
