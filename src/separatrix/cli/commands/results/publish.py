"""``separatrix publish``: results as small JSON files to keep with the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.core.disk import require_place_for_folder
from separatrix.core.errors import InvalidInput, MissingData
from separatrix.lab.experiment.scales import require_scale

from ...lookup import find_experiments, reading
from ...options import AsJson, Names, ScaleName, StoreFolder
from ...printing import print_json, say


def publish(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path("results"),
    scale: ScaleName = "laptop",
    because: Annotated[
        str,
        typer.Option(
            metavar="REASON", help="Why a published verdict or rule changes; kept in its history.", show_default=False
        ),
    ] = "",
    judge_again: Annotated[
        bool, typer.Option("--judge-again", help="Judge the published summaries by the present rules; run nothing.")
    ] = False,
    ro_crate: Annotated[
        Path | None,
        typer.Option(
            "--ro-crate",
            metavar="DIR",
            help="Pack what is published in --output, or what came with the package, as an RO-Crate for an archive.",
        ),
    ] = None,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write one JSON file per experiment that has a complete run at the scale."""
    from separatrix.lab.results import publishing

    require_scale(scale)
    if ro_crate is not None:
        _pack(names, output, ro_crate, judge_again, as_json)
        return
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


def _pack(names: list[str] | None, published: Path, target: Path, judge_again: bool, as_json: bool) -> None:
    """Write published files as an RO-Crate; nothing is run or judged."""
    from separatrix.lab.results.crate import write_crate
    from separatrix.lab.results.publication import read_publications
    from separatrix.lab.results.shipped import shipped_results

    if judge_again:
        raise InvalidInput("--ro-crate packs published results as they are; judge them again first, by itself.")
    files = published if published.is_dir() else shipped_results()
    if files is None:
        raise MissingData(f"--output must be a folder of published results; there is none at {published}.")
    experiments = {experiment.name: experiment for experiment in find_experiments(names)}
    found = [item for item in read_publications(files, experiments) if item.experiment in experiments]
    metadata = write_crate(found, files, target)
    if as_json:
        print_json({"metadata": str(metadata), "experiments": [item.experiment for item in found]})
    else:
        print(metadata)
