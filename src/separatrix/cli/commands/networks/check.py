"""``separatrix check``: look inside a model named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.core.errors import InvalidInput, SeparatrixError

from ...options import AsJson
from ...printing import print_json, say, tell

FAILED = 3
"""Exit status of a check that could not run; 0 nothing but notes, 1 warnings, 2 faults."""


def check_target(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Weights (.safetensors, .npz, .onnx, a checkpoint of plain tensors), a local Hugging Face folder, "
            "or hf:NAME.",
        ),
    ],
    arch: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Your own code that builds the model; run only when named."),
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One batch: .npy, .npz or .safetensors (by argument name).")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="cross_entropy or mse; needs target in the sample's file.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a page with the profiles drawn.")] = None,
    budget: Annotated[float, typer.Option(help="Seconds after which it stops.")] = 120.0,
    seed: Annotated[int, typer.Option(help="Seed of projections and of a made-up sample.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with a model, how sure that is, and what to change.

    Nothing in a file is executed. Exit status: 0 nothing but notes, 1 warnings, 2 faults, 3 could not run.
    """
    from separatrix.core.disk import require_place_for_file

    from ...targets import examined

    if html is not None:
        if html.suffix.lower() not in (".html", ".pdf"):
            raise InvalidInput(f"--html must end with .html or .pdf; got {html.name[:60]!r}.")
        require_place_for_file(html, "--html")
    try:
        found = examined(target, arch=arch, sample=sample, loss=loss, budget=budget, seed=seed)
    except SeparatrixError as error:
        say(str(error))
        raise typer.Exit(FAILED) from None
    if html is not None:
        found.save(html)
        say(f"wrote {html}")
    if as_json:
        print_json(found.to_dict())
    else:
        tell(str(found))
    raise typer.Exit(found.exit_status)
