"""Is ``converged`` ever said wrongly, and how often is it missed? Every kind of known map, every solver.

Maps with known equilibria, or known to have none, in three precisions and four dimensions (``tests/known_maps.py``),
judged by the rules of ``tests/judged_maps.py``. A seed that was looked at while the judgement of convergence was being
written tells nothing about it: take another.
Usage: ``python benchmarks/converged.py SEED out.json [rows [dims=64,256] [kind ...]]``.
"""

from __future__ import annotations

import collections
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from separatrix.dynamics import solvers

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from judged_maps import BUDGET, judged
from known_maps import FRESH, HIDDEN, STRANGE, batches

DIMS = (1, 2, 5, 11)


def counted(kind: str, seed: int, rows: int, dims: Sequence[int]) -> tuple[collections.Counter[str], list[str]]:
    """How many solves of a kind there were, wrong, due and missed, and a line for each wrong or missed one."""
    counts: collections.Counter[str] = collections.Counter(solves=0, wrong=0, due=0, missed=0)
    lines = []
    for known in batches([kind], dims, rows, seed):
        for name, solver in solvers().items():
            for row, verdict in enumerate(judged(known, solver(max_steps=BUDGET))):
                counts.update(solves=1, wrong=verdict.wrong, due=verdict.due, missed=verdict.missed)
                if verdict.wrong or verdict.missed:
                    what = "wrong" if verdict.wrong else f"missed: {verdict.outcome.name.lower()}"
                    lines.append(f"{name}, {known.start.dtype}, d = {known.start.shape[1]}, row {row}, {what}")
    return counts, lines


def main(seed: str, target: str, rows: str = "17", *others: str) -> None:
    """Run and write; every kind has its own seeds, whichever others are run."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    given = [word.removeprefix("dims=") for word in others if word.startswith("dims=")]
    dims = tuple(int(dim) for dim in given[0].split(",")) if given else DIMS
    kinds = [word for word in others if not word.startswith("dims=")]
    table, total = {}, collections.Counter[str]()
    for number, kind in enumerate((*FRESH, *STRANGE, *HIDDEN)):
        if kinds and kind not in kinds:
            continue
        counts, lines = counted(kind, int(seed) + 100 * number, int(rows), dims)
        table[kind] = dict(counts) | {"which": lines}
        total.update(counts)
        print(kind, dict(counts), *lines, sep="\n   ", flush=True)
    print("all", dict(total))
    content = {"seed": int(seed), "rows": int(rows), "dims": dims, "kinds": table, "all": dict(total)}
    Path(target).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
