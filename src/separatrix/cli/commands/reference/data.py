"""``separatrix data``: which data sets are known, where their files lie, and fetching them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...options import AsJson
from ...printing import print_json, print_table, say, tell

if TYPE_CHECKING:
    from separatrix.tasks.store.registry import Dataset


def complete_dataset(incomplete: str) -> list[str]:
    """Names for the shell."""
    from separatrix.tasks.store.catalogue import datasets

    return [name for name in datasets() if name.startswith(incomplete)]


app = typer.Typer(help="List, show and fetch data sets; no other command downloads.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A data set, as in `separatrix data list`.", autocompletion=complete_dataset)]


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """Show every known data set and whether its files are here."""
    from separatrix.tasks.store.catalogue import datasets

    rows = [{"name": name, "state": _state(dataset), "title": dataset.title} for name, dataset in datasets().items()]
    if as_json:
        print_json(rows)
    else:
        print_table(("name", "state", "title"), [tuple(row.values()) for row in rows])


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show files, digests, licence and citation of a data set, and where it is looked for."""
    from separatrix.tasks.store.catalogue import find_dataset
    from separatrix.tasks.store.location import search_folders

    dataset = find_dataset(name)
    folders = [str(folder) for folder in search_folders()]
    if as_json:
        print_json({**_facts(dataset), "looked_in": folders})
        return
    tell(dataset.summary())
    tell(f"looked in: {', '.join(folders)}")
    print(f"state: {_state(dataset)}")


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
    from separatrix.tasks.store.catalogue import find_dataset
    from separatrix.tasks.store.location import locate

    say(f"licence of {name}: {find_dataset(name).licence}")
    located = locate(name, download=True, allow_modified=allow_modified, accept_licence=accept_licence or ())
    if as_json:
        files = {split: {"path": str(path), "sha256": located.sha256[split]} for split, path in located.paths.items()}
        print_json({"name": name, "verified": located.verified, "sha256": located.digest, "files": files})
        return
    for split, path in located.paths.items():
        print(f"{split}: {path}")
    print("every digest is as registered" if located.verified else "not verified: a file was modified")


def _state(dataset: Dataset) -> str:
    from separatrix.core.errors import CorruptData, MissingData
    from separatrix.tasks.store.location import locate

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
        "state": _state(dataset),
        "files": files,
    }
