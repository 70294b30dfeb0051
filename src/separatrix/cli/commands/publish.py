"""``separatrix publish``: results as small JSON files to keep with the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.core.errors import MissingData
from separatrix.lab.experiment.scales import require_scale

from ..lookup import find_experiments, reading
from ..options import AsJson, Names, ScaleName, StoreFolder
from ..printing import print_json, say


def publish(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path("results"),
    scale: ScaleName = "laptop",
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write one JSON file per experiment that has a complete run at the scale."""
    from separatrix.lab import publication

    require_scale(scale)
    with reading(store) as opened:
        written, left_out = (
            publication.publish(find_experiments(names), opened, output, scale) if opened is not None else ([], [])
        )
    if not written:
        raise MissingData(
            f"no experiment has a complete run at scale {scale}; begin with: separatrix run NAME --scale {scale}"
        )
    if as_json:
        print_json({"written": [str(path) for path in written], "left_out": left_out})
        return
    for path in written:
        print(path)
    if left_out:
        say(f"left out, not run at scale {scale}: {', '.join(left_out)}")
