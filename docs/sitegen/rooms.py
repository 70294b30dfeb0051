"""The rooms of the package as its stubs describe them, and where each public name stands on the site."""

from __future__ import annotations

import dataclasses
import functools
import posixpath
from collections.abc import Iterator
from pathlib import Path

import separatrix
from separatrix.core.rooms import offered

PACKAGE = Path(separatrix.__file__).parent
ORDER = "core sources matrices theory dynamics lab tasks nn training diagnose advise report experiments explorer cli"


@dataclasses.dataclass(frozen=True)
class Room:
    """A room or sub-room: the names its own files define, the modules it offers whole, the sub-rooms below it."""

    path: str
    names: dict[str, list[str]]
    modules: tuple[str, ...]
    inner: tuple[Room, ...]

    @property
    def dotted(self) -> str:
        """Its name for an import."""
        return f"separatrix.{self.path}"

    @property
    def folder(self) -> Path:
        """Its folder."""
        return PACKAGE / self.path.replace(".", "/")

    @property
    def page(self) -> str:
        """Its page below the pages of the site; a room with sub-rooms has a folder of pages."""
        stem = f"reference/{self.path.replace('.', '/')}"
        return f"{stem}/index.md" if self.inner else f"{stem}.md"

    def walk(self) -> Iterator[Room]:
        """This room and every room below it."""
        yield self
        for room in self.inner:
            yield from room.walk()

    def own_names(self) -> Iterator[tuple[str, str]]:
        """(module, name) of what its own files define."""
        for module, names in self.names.items():
            for name in names:
                yield module, name

    def all_names(self) -> Iterator[tuple[Room, str]]:
        """Every public name with the room whose files define it, names of sub-rooms included."""
        for room in self.walk():
            for _, name in room.own_names():
                yield room, name


@functools.cache
def rooms() -> tuple[Room, ...]:
    """The rooms that have a stub, from the ground up."""
    order = ORDER.split()
    found = [folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.pyi").is_file()]
    return tuple(_read(name) for name in sorted(found, key=lambda name: (name not in order, order.index(name))))


def _read(path: str) -> Room:
    folder = PACKAGE / path.replace(".", "/")
    modules, names = offered(folder / "__init__.pyi")
    inner = sorted(name for name in {*modules, *names} if (folder / name / "__init__.pyi").is_file())
    own = {module: sorted(listed) for module, listed in sorted(names.items()) if module not in inner}
    return Room(path, own, tuple(sorted(modules - set(inner))), tuple(_read(f"{path}.{name}") for name in inner))


@functools.cache
def places() -> dict[str, str]:
    """``page#anchor`` by every dotted form of a public name: as its sub-room and as its module name it."""
    found = {}
    for room in (inner for outer in rooms() for inner in outer.walk()):
        for module, name in room.own_names():
            anchor = f"{room.dotted}.{name}"
            found[anchor] = found[f"{room.dotted}.{module}.{name}"] = f"{room.page}#{anchor}"
    return found


@functools.cache
def unambiguous() -> dict[str, str]:
    """``page#anchor`` by bare name, for names that only one room uses."""
    found: dict[str, set[str]] = {}
    for dotted, place in places().items():
        found.setdefault(dotted.rsplit(".", 1)[-1], set()).add(place)
    return {name: next(iter(where)) for name, where in found.items() if len(where) == 1}


def relative(place: str, page: str) -> str:
    """The address of ``page#anchor`` as seen from a page."""
    target, _, anchor = place.partition("#")
    address = posixpath.relpath(target, posixpath.dirname(page) or ".")
    return f"{address}#{anchor}" if anchor else address
