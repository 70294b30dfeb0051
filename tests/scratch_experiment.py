"""An experiment that counts step by step and keeps its count in its scratch folder; it can be stopped in the middle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.lab import Cell, Experiment, Params, Summary, scratch_folder


class Settings(Params):
    n_steps: int = 6
    stop_at: int = -1


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    yield settings.model_dump(include={"n_steps", "stop_at"})


def run(cell: Cell) -> dict[str, Any]:
    if os.environ.get("SCRATCH_EXPERIMENT_DIES") == "untidy":
        vars(sys.modules["__main__"])["tidy_after"] = lambda store, key: os._exit(
            9
        )  # killed between publishing and tidying
    folder = scratch_folder(cell)
    done, total, resumed = 0, 0, False
    if folder is not None and (folder / "count").exists():
        done, total = map(int, (folder / "count").read_text().split())
        resumed = True
    for step in range(done, cell.args["n_steps"]):
        if step == cell.args["stop_at"] and not resumed:
            if os.environ.get("SCRATCH_EXPERIMENT_DIES"):
                os._exit(9)
            raise KeyboardInterrupt
        total += step
        if folder is not None:
            (folder / "count").write_text(f"{step + 1} {total}")
    return {"total": total}


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> Summary:
    return Summary()


COUNTING = Experiment(
    name="counting",
    title="counts",
    document="separatrix",
    place="",
    version=1,
    scales=dict.fromkeys(("smoke", "laptop", "paper"), Settings()),  # type: ignore[arg-type]
    expand=expand,
    run=run,
    summarise=summarise,
)
