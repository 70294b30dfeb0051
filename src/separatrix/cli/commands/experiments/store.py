"""``separatrix store``: carry, join, check and tidy the records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.core.disk import require_place_for_file
from separatrix.core.errors import InvalidInput, MissingData

from ...lookup import find_experiments, reading
from ...options import AsJson, Names, StoreFolder
from ...printing import print_json, say, tell

if TYPE_CHECKING:
    from separatrix.lab.store.exchange import Taken

app = typer.Typer(help="Carry, join, check and tidy the records.", no_args_is_help=True)


@app.command("export")
def export_command(
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="FILE.csv, FILE.parquet, or FILE.zip with everything.")
    ],
    names: Names = None,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write records as a table (.csv, .parquet), or all of the store into one file (.zip) to carry elsewhere."""
    from separatrix.lab.store.exchange import export_archive
    from separatrix.lab.store.tables import export_table

    if output.suffix not in (".csv", ".parquet", ".zip"):
        raise InvalidInput(f"FILE must end with .csv, .parquet or .zip; got {output.name!r}.")
    if output.suffix == ".zip" and names:
        raise InvalidInput("a .zip holds the whole store; name experiments for .csv and .parquet only.")
    require_place_for_file(output, "FILE")
    chosen = {experiment.name for experiment in find_experiments(names)} if names else None
    with reading(store) as opened:
        if opened is None:
            raise MissingData("there is no store yet; begin with: separatrix run NAME")
        count = export_archive(opened, output) if output.suffix == ".zip" else export_table(opened, output, chosen)
    if as_json:
        print_json({"file": str(output), "records": count})
    else:
        tell(f"{count} records in {output}")


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .zip made by separatrix store export.")],
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Take the records of an exported file over."""
    from separatrix.lab.store.exchange import import_archive
    from separatrix.lab.store.records import Store

    if not file.is_file():
        raise MissingData(f"there is no file {str(file)!r}.")
    with Store(store) as opened:
        _tell_taken(import_archive(opened, file), as_json)


@app.command("merge")
def merge_command(
    other: Annotated[Path, typer.Argument(metavar="DIR", help="Another store, which is left as it is.")],
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Take the records of another store over; of records that both have, both provenances are kept."""
    from separatrix.lab.store.exchange import merge
    from separatrix.lab.store.records import Store

    with Store(other, read_only=True) as source, Store(store) as opened:
        _tell_taken(merge(opened, source), as_json)


def _tell_taken(taken: Taken, as_json: bool) -> None:
    if as_json:
        print_json(taken.to_dict())
    else:
        tell(f"{taken.n_new} records taken over, {taken.n_equal} were there already")
    for key in taken.conflicts:
        say(f"the cell {key} has another result there; yours is kept")
    for name in taken.damaged:
        say(f"{name} is not a whole record there and was left out")
    if taken.conflicts or taken.damaged:
        raise typer.Exit(1)


@app.command("verify")
def verify_command(store: StoreFolder = None, as_json: AsJson = False) -> None:
    """Read every record and compare it with its digest; leave with 1 if one is damaged or missing."""
    from separatrix.lab.store.upkeep import check_store

    with reading(store) as opened:
        if opened is None:
            raise MissingData("there is no store yet; begin with: separatrix run NAME")
        found = check_store(opened)
    if as_json:
        print_json(found.to_dict())
    else:
        tell(f"{found.n_whole} records are whole, {len(found.damaged)} damaged, {len(found.missing)} missing")
    for path, reason in found.damaged.items():
        say(f"{path}: {reason}")
    for key in found.missing:
        say(f"the record of cell {key} is missing")
    if not found.ok:
        raise typer.Exit(1)


@app.command("gc")
def gc_command(
    old_versions: Annotated[
        bool, typer.Option("--old-versions", help="Also records of versions that the experiments no longer have.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Remove what nobody needs: temporary files, scratch of finished cells, records set aside, logs."""
    from separatrix.lab.store.records import Store
    from separatrix.lab.store.upkeep import clear

    if not Store.exists(store):
        raise MissingData("there is no store yet; begin with: separatrix run NAME")
    versions = {experiment.name: experiment.version for experiment in find_experiments(None)} if old_versions else None
    with Store(store) as opened:
        cleared = clear(opened, versions, dry_run)
    if as_json:
        print_json({**cleared.to_dict(), "dry_run": dry_run})
        return
    verb = "would be removed" if dry_run else "removed"
    tell(f"{len(cleared.paths)} files and folders {verb}, {cleared.n_bytes / 1e6:.3g} MB, {cleared.n_records} records")


@app.command("rebuild")
def rebuild_command(store: StoreFolder = None, as_json: AsJson = False) -> None:
    """Make the index anew from the records, whatever state it is in; the old one is kept as index.sqlite.old."""
    from separatrix.lab.store.rebuilding import rebuild
    from separatrix.lab.store.records import store_folder

    count = rebuild(store_folder(store))
    if as_json:
        print_json({"records": count})
    else:
        tell(f"the index holds {count} records")
