"""Options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from .lookup import complete_document, complete_experiment, complete_scale

Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Experiments by name; MODULE:NAME for one of your own.",
        autocompletion=complete_experiment,
        show_default=False,
    ),
]
Name: TypeAlias = Annotated[
    str, typer.Argument(help="An experiment; MODULE:NAME for one of your own.", autocompletion=complete_experiment)
]
StoreFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="DIR", help="Folder of the records; default: your data folder.", show_default=False
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Worker processes; default: physical cores.", show_default=False),
]
CellTimeout: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cell-timeout",
        metavar="TIME",
        help="Stop a cell after this long (90s, 20m, 2h) and set it aside; default: the experiment's or the scale's.",
        show_default=False,
    ),
]
EngineName: TypeAlias = Annotated[
    str, typer.Option("--engine", help="local (processes of this machine) or dask (extra: cluster).")
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Scheduler of a running Dask cluster, tcp://... or tls://...; default: a cluster of this machine.",
        show_default=False,
    ),
]
Seeds: TypeAlias = Annotated[
    str | None,
    typer.Option("--seeds", help="3 (seeds 0, 1, 2), 0,4,7 or 2-5; default: the scale's.", show_default=False),
]
Settings: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter; repeat for more.")
]
DocumentKey: TypeAlias = Annotated[
    str | None,
    typer.Option("--document", help="Only this document.", autocompletion=complete_document, show_default=False),
]
ScaleName: TypeAlias = Annotated[
    str, typer.Option("--scale", help="smoke, laptop or paper.", autocompletion=complete_scale)
]
AnyScale: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scale", help="Only this scale; default: the largest.", autocompletion=complete_scale, show_default=False
    ),
]
