"""``separatrix publish``: results as small JSON files to keep with the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.core.disk import require_place_for_folder
from separatrix.core.errors import MissingData
from separatrix.lab.experiment.scales import require_scale

from ...lookup import find_experiments, reading
from ...options import AsJson, Names, ScaleName, StoreFolder
from ...printing import print_json, say


def publish(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path("results"),
    scale: ScaleName = "laptop",
    because: Annotated[
        str, typer.Option(help="Why a published verdict or rule changes; kept in its history.", show_default=False)
    ] = "",
    judge_again: Annotated[
        bool, typer.Option("--judge-again", help="Judge the published summaries by the present rules; run nothing.")
    ] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write one JSON file per experiment that has a complete run at the scale."""
    from separatrix.lab.results import publishing

    require_scale(scale)
    left_out: list[str] = []
    if judge_again:
        written = publishing.judge_again(find_experiments(names), output, because)
    else:
        with reading(store) as opened:
            require_place_for_folder(output, "--output")
            if opened is not None:
                written, left_out = publishing.publish(find_experiments(names), opened, output, scale, because)
            else:
                written = []
        if not written:
            raise MissingData(
                f"no experiment has a complete run at scale {scale}; begin with: separatrix run NAME --scale {scale}"
            )
    if as_json:
        print_json({"written": [str(path) for path in written], "left_out": left_out})
        return
    for path in written:
        print(path)
    if judge_again and not written:
        say("every published verdict stands as it is")
    if left_out:
        say(f"left out, not run at scale {scale}: {', '.join(left_out)}")
