"""Published results as an RO-Crate: a folder with metadata in the form that archives take.

Every published file is a file of the crate, made by an action (its command, its times) of one piece of software, and
about the document whose claims it judges.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from separatrix.core.disk import require_place_for_folder
from separatrix.core.errors import InvalidInput, MissingData, MissingExtra
from separatrix.sources.catalogue import documents

from .publication import Publication

LICENCE = "https://spdx.org/licenses/Apache-2.0"
_SOFTWARE = "#separatrix-"


def write_crate(publications: Sequence[Publication], files: Path, folder: Path) -> Path:
    """Write published results as an RO-Crate.

    Args:
        publications: what to put into it.
        files: the folder of their JSON files.
        folder: folder to write; it must not exist or be empty.

    Returns:
        The crate's ``ro-crate-metadata.json``.

    Raises:
        MissingExtra: the package ``rocrate`` is not installed.
        MissingData: there is nothing to put into it, or a file is missing.
        InvalidInput: the folder holds something already.
    """
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise MissingExtra("an RO-Crate needs the package rocrate: install separatrix[crate].") from error
    if not publications:
        raise MissingData("there is no published result to put into a crate; make one with separatrix publish.")
    for publication in publications:
        if not (files / f"{publication.experiment}.json").is_file():
            raise MissingData(f"the published file {files / publication.experiment}.json is gone.")
    require_place_for_folder(folder, "--ro-crate")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput(f"--ro-crate must name a new or empty folder; {folder} holds something.")
    crate = ROCrate()
    last = max(str(publication.provenance.get("last", "")) for publication in publications)
    crate.name = "Results of Separatrix"
    crate.description = _told(publications)
    _belongs(crate)
    crate.datePublished = last
    software = {version: _software(crate, version) for version in sorted(map(_version, publications))}
    about = {key: _document(crate, key) for key in sorted({publication.document for publication in publications})}
    for publication in publications:
        _add(crate, publication, files, software[_version(publication)], about[publication.document])
    crate.write(folder)
    return folder / "ro-crate-metadata.json"


def _belongs(crate: Any) -> None:
    """Licence and authors, each an entity with a name, as the specification of crates recommends."""
    from rocrate.model.contextentity import ContextEntity

    licence = {"@type": "CreativeWork", "name": "Apache License 2.0", "description": "SPDX identifier Apache-2.0"}
    authors = {"@type": "Organization", "name": "The Separatrix developers"}
    crate.license = crate.add(ContextEntity(crate, LICENCE, properties=licence))
    crate.root_dataset["author"] = crate.add(ContextEntity(crate, "#developers", properties=authors))


def _version(publication: Publication) -> str:
    return str(publication.provenance.get("package_version", "unknown"))


def _told(publications: Sequence[Publication]) -> str:
    """What is in the crate, with the count of verdicts."""
    verdicts = collections.Counter(claim["verdict"] for item in publications for claim in item.claims.values())
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return (
        f"{len(publications)} experiments on networks that are dynamical systems: parameters, seeds, summaries, "
        f"digests of every record, and the verdict on each claim ({counted or 'no claims'})."
    )


def _software(crate: Any, version: str) -> Any:
    from rocrate.model.softwareapplication import SoftwareApplication

    facts = {"name": "Separatrix", "softwareVersion": version, "license": {"@id": LICENCE}}
    return crate.add(SoftwareApplication(crate, f"{_SOFTWARE}{version}", properties=facts))


def _document(crate: Any, key: str) -> Any:
    """The source document; ours are statements of the software itself."""
    from rocrate.model.contextentity import ContextEntity

    known = documents().get(key)
    if known is None:
        facts: dict[str, Any] = {"@type": "CreativeWork", "name": f"statements of {key}"}
    else:
        facts = {"@type": "ScholarlyArticle", "name": known.title, "author": known.authors}
        facts |= {"datePublished": str(known.year), "creditText": known.citation()}
    return crate.add(ContextEntity(crate, f"#{key}", properties=facts))


def _add(crate: Any, publication: Publication, files: Path, software: Any, about: Any) -> None:
    source = files / f"{publication.experiment}.json"
    content = source.read_bytes()
    file = crate.add_file(
        source,
        dest_path=f"results/{source.name}",
        properties={
            "name": publication.title,
            "description": f"{publication.experiment}, version {publication.version}, {publication.scale} scale",
            "encodingFormat": "application/json",
            "contentSize": str(len(content)),
            "sha256": hashlib.sha256(content).hexdigest(),
            "about": about,
        },
    )
    provenance = publication.provenance
    facts = {
        "name": str(provenance.get("command", f"separatrix run {publication.experiment}")),
        "startTime": provenance.get("first"),
        "endTime": provenance.get("last"),
        "description": f"{publication.place}; seeds {provenance.get('seeds', [])}; {_seconds(provenance)}",
    }
    known = {name: value for name, value in facts.items() if value is not None}
    run = crate.add_action(software, identifier=f"#run-{publication.experiment}", properties=known)
    run["result"] = file  # one value, not a list of one


def _seconds(provenance: dict[str, Any]) -> str:
    seconds = provenance.get("seconds")
    return f"{seconds:.0f} s of computing" if isinstance(seconds, int | float) else "time unknown"
