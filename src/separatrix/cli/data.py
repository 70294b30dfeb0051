"""``separatrix data``: which data sets are known, where their files lie, and fetching them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from separatrix.core.errors import CorruptData, MissingData
from separatrix.tasks.catalogue import datasets, find_dataset
from separatrix.tasks.location import cache_folder, locate, search_folders
from separatrix.tasks.registry import Dataset

app = typer.Typer(help="Data sets: list them, show one, fetch one. Nothing is downloaded by any other command.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Name = Annotated[str, typer.Argument(help="Name of a data set, as in `separatrix data list`.")]


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """Every known data set and whether its files are here."""
    rows = [{"name": name, "title": dataset.title, "state": _state(dataset)} for name, dataset in datasets().items()]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:{width}}  {row['state']:9}  {row['title']}")


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Files, digests, licence and citation of a data set, and where it was looked for."""
    dataset = find_dataset(name)
    if as_json:
        typer.echo(json.dumps(_facts(dataset), indent=1))
        return
    typer.echo(dataset.summary())
    typer.echo(f"looked in: {', '.join(str(folder) for folder in search_folders())}")
    typer.echo(f"state: {_state(dataset)}")


@app.command()
def get(
    name: Name,
    allow_modified: Annotated[
        bool, typer.Option("--allow-modified", help="Use a file with another digest, marked as not verified.")
    ] = False,
    accept_licence: Annotated[
        list[str] | None,
        typer.Option("--accept-licence", metavar="NAME", help="Accept a licence that asks for a decision."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find a data set or download it into the user's cache, and verify every file."""
    dataset = find_dataset(name)
    typer.echo(f"licence of {name}: {dataset.licence}", err=True)
    located = locate(name, download=True, allow_modified=allow_modified, accept_licence=accept_licence or ())
    if as_json:
        files = {split: {"path": str(path), "sha256": located.sha256[split]} for split, path in located.paths.items()}
        typer.echo(json.dumps({"name": name, "verified": located.verified, "files": files}, indent=1))
        return
    for split, path in located.paths.items():
        typer.echo(f"{split}: {path}")
    typer.echo("every digest is as registered" if located.verified else "not verified: a file was modified")


def _state(dataset: Dataset) -> str:
    try:
        locate(dataset.name)
    except CorruptData:
        return "corrupt"
    except MissingData:
        return "missing"
    return "here"


def _facts(dataset: Dataset) -> dict[str, Any]:
    files = [
        {
            "name": file.name,
            "split": file.split,
            "n_bytes": file.n_bytes,
            "sha256": file.sha256,
            "addresses": [mirror.url for mirror in file.mirrors],
        }
        for file in dataset.files
    ]
    return {
        "name": dataset.name,
        "title": dataset.title,
        "version": dataset.version,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "note": dataset.note,
        "sha256": dataset.sha256,
        "cache": str(cache_folder()),
        "state": _state(dataset),
        "files": files,
    }
