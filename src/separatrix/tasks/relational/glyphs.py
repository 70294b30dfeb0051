"""Glyphs: small black drawings on white, made in code or read from files."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arrays import as_tensor, require_integer
from separatrix.core.errors import CorruptData, InvalidInput, MissingData
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn_numpy

from ..store.location import locate

SIDE = 32
FINE = 4
"""Points a side of a pixel at which a drawing is evaluated."""
DARK = (0.06, 0.50)
"""Least and greatest share of ink."""
APART = 60
"""Least number of pixels in which two glyphs differ, after thresholding at half intensity."""
LARGEST = 400
_PRIMITIVES = ("bar", "ring", "disc", "half ring", "triangle")


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class GlyphSet:
    """Distinct images of objects: (n, 3, 32, 32) in [0, 1], background 1, ink 0, three equal channels if grey.

    Args:
        name: says where they come from; it stands in the record of a run and names streams of problems.
        images: the glyphs themselves.
    """

    name: str
    images: Float[Tensor, "n 3 h w"] = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        images = as_tensor(self.images, "images", dtype=torch.float32)
        if images.ndim != 4 or images.shape[1] != 3 or len(images) < 2:
            raise InvalidInput(f"images must be (n, 3, height, width) with n of at least 2; got {tuple(images.shape)}.")
        if float(images.min()) < 0 or float(images.max()) > 1:
            raise InvalidInput(f"images must lie in [0, 1]; got {float(images.min()):g} to {float(images.max()):g}.")
        same = equal_rows(images.flatten(1))
        if same:
            raise InvalidInput(f"images must be distinct; numbers {same[0]} and {same[1]} are equal.")
        object.__setattr__(self, "images", images)

    def __len__(self) -> int:
        return len(self.images)


def equal_rows(rows: Tensor) -> tuple[int, int] | None:
    """The first two rows that are equal, if any."""
    seen: dict[bytes, int] = {}
    for place, row in enumerate(rows.contiguous().numpy()):
        if row.tobytes() in seen:
            return seen[row.tobytes()], place
        seen[row.tobytes()] = place
    return None


def glyphs(n: int = 100, seed: int = 0) -> GlyphSet:
    """Glyphs drawn in code: two to four bars, rings, discs, half rings and triangles, some of them mirrored.

    A drawing is evaluated at 4 x 4 points a pixel; one with less than 6 % or more than 50 % of ink, or that differs
    from an earlier one in fewer than 60 pixels, is left out. The first 50 of 100 glyphs are the 50 of the same seed.

    Args:
        n: how many, at most 400.
        seed: of the drawings.

    Cost: about 5 milliseconds a glyph, once in a process.

    Example:
        >>> glyphs(4).images.shape
        torch.Size([4, 3, 32, 32])
    """
    require_integer(n, "n", at_least=2)
    if n > LARGEST:
        raise InvalidInput(f"n must be at most {LARGEST}; got {n}.")
    grey = torch.stack([_accepted(seed)(place) for place in range(n)])
    return GlyphSet(f"procedural({n}, seed={seed})", grey.unsqueeze(1).repeat(1, 3, 1, 1))


@functools.lru_cache(maxsize=8)
def _accepted(seed: int) -> _Stream:
    return _Stream(seed)


class _Stream:
    """The accepted drawings of a seed, in order, drawn as far as they were asked for."""

    def __init__(self, seed: int) -> None:
        self._seed, self._tried = seed, 0
        self._kept: list[Tensor] = []
        self._marks = torch.zeros(0, SIDE * SIDE, dtype=torch.bool)

    def __call__(self, place: int) -> Float[Tensor, "32 32"]:
        while len(self._kept) <= place:
            drawing = _drawing(spawn_numpy(self._seed, "relational", "glyph", self._tried))
            self._tried += 1
            ink = (drawing < 0.5).flatten()
            if not DARK[0] < float((1 - drawing).mean()) < DARK[1]:
                continue
            if len(self._kept) and int((self._marks ^ ink).sum(1).min()) < APART:
                continue
            self._kept.append(drawing)
            self._marks = torch.cat([self._marks, ink.unsqueeze(0)])
        return self._kept[place]


def _drawing(draws: numpy.random.Generator) -> Float[Tensor, "32 32"]:
    line = (numpy.arange(SIDE * FINE) + 0.5) / (SIDE * FINE) * 2 - 1
    x, y = numpy.meshgrid(line, line)
    covered = numpy.zeros_like(x, dtype=bool)
    for _ in range(draws.integers(2, 5)):
        covered |= _primitive(x, y, draws)
    mirror = draws.integers(3)
    if mirror:
        covered |= covered[:, ::-1] if mirror == 1 else covered[::-1]
    covered &= (numpy.abs(x) < 0.94) & (numpy.abs(y) < 0.94)
    share = covered.reshape(SIDE, FINE, SIDE, FINE).mean((1, 3))
    return torch.from_numpy(1 - share).to(torch.float32)


def _primitive(x: numpy.ndarray, y: numpy.ndarray, draws: numpy.random.Generator) -> numpy.ndarray:
    kind = _PRIMITIVES[draws.integers(len(_PRIMITIVES))]
    (cx, cy), size = draws.uniform(-0.45, 0.45, 2), draws.uniform(0.25, 0.60)
    angle, stroke = draws.uniform(0, numpy.pi), draws.uniform(0.06, 0.14)
    across = (x - cx) * numpy.cos(angle) + (y - cy) * numpy.sin(angle)
    along = (y - cy) * numpy.cos(angle) - (x - cx) * numpy.sin(angle)
    radius = numpy.hypot(across, along)
    if kind == "bar":
        return (numpy.abs(across) < size) & (numpy.abs(along) < stroke)
    if kind == "disc":
        return radius < size
    if kind == "triangle":
        sides = [across * numpy.cos(t) + along * numpy.sin(t) for t in 2 * numpy.pi / 3 * numpy.arange(3)]
        return numpy.abs(numpy.maximum.reduce(sides) - size / 2) < stroke
    ring = numpy.abs(radius - size) < stroke
    return ring & (along > 0) if kind == "half ring" else ring


def read_glyphs(folder: str | Path, n: int = 100) -> GlyphSet:
    """The first ``n`` PNG files of a folder in the order of their names, grey or RGB, all of one size.

    Raises:
        MissingData: there is no such folder.
        InvalidInput: fewer than ``n`` files, unequal sizes or equal images; the sentence names the files.
    """
    from PIL import Image

    require_integer(n, "n", at_least=2)
    place = Path(folder)
    if not place.is_dir():
        raise MissingData(f"folder must be a folder of PNG files; there is none at {place}.")
    files = sorted(place.glob("*.png"), key=lambda path: (len(path.stem), path.stem))
    if len(files) < n:
        shown = ", ".join(path.name for path in files[:3]) or "none"
        raise InvalidInput(f"folder {place} must hold at least {n} PNG files; got {len(files)} ({shown}).")
    named = []
    for path in files[:n]:
        try:
            with Image.open(path) as held:
                named.append((path.name, _pixels(held)))
        except (OSError, SyntaxError) as error:
            raise CorruptData(f"{path.name} is no PNG file that can be read: {error}.") from None
    return _glyph_set(named, place.name)


def _pixels(held: Any) -> numpy.ndarray:
    """Numbers in [0, 1]; what is transparent is white, as the background of a glyph is."""
    from PIL import Image

    if held.has_transparency_data:
        clear = held.convert("RGBA")
        held = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
    plain = held.convert("L" if held.mode in ("1", "L", "I;16", "I") else "RGB")
    return numpy.asarray(plain, dtype=numpy.float32) / 255


def _glyph_set(named: Sequence[tuple[str, numpy.ndarray]], source: str) -> GlyphSet:
    first = named[0][1].shape[:2]
    odd = [name for name, image in named if image.shape[:2] != first]
    if odd:
        raise InvalidInput(f"images must have one size, {first} as {named[0][0]}; others have {', '.join(odd[:5])}.")
    images = torch.stack([_channels(image) for _, image in named])
    same = equal_rows(images.flatten(1))
    if same:
        raise InvalidInput(f"images must be distinct; {named[same[0]][0]} and {named[same[1]][0]} are equal.")
    digest = hashlib.sha256(images.numpy().tobytes()).hexdigest()[:12]
    return GlyphSet(f"{source}({len(images)}, sha256 {digest})", images)


def _channels(image: numpy.ndarray) -> Float[Tensor, "3 h w"]:
    grey = image[..., None] if image.ndim == 2 else image[..., :3]
    return torch.from_numpy(grey).permute(2, 0, 1).expand(3, -1, -1).contiguous()


def unicode_glyphs(path: str | Path | None = None, *, download: bool = False) -> GlyphSet:
    """The 100 characters of the emergent-symbols tasks, from the registered data set ``"glyphs"``.

    Raises:
        DatasetUnavailable: the file was found nowhere.
    """
    import io

    located = locate("glyphs", path=path, download=download)
    with numpy.load(io.BytesIO(located.read("all")), allow_pickle=False) as held:
        if "images" not in held or held["images"].shape[1:] != (SIDE, SIDE):
            raise CorruptData("glyphs must hold an array 'images' of shape (n, 32, 32).")
        grey = torch.from_numpy(held["images"]).to(torch.float32) / 255
    return GlyphSet(f"unicode-glyphs({len(grey)})", grey.unsqueeze(1).repeat(1, 3, 1, 1))


def random_colours(n: int = 100, seed: int = 0) -> Float[Tensor, "n 3"]:
    """Colours uniform in the RGB cube.

    Example:
        >>> random_colours(2).shape
        torch.Size([2, 3])
    """
    return _colours(require_integer(n, "n", at_least=1), seed).clone()


@functools.lru_cache(maxsize=8)
def _colours(n: int, seed: int) -> Float[Tensor, "n 3"]:
    return torch.from_numpy(spawn_numpy(seed, "relational", "colours").random((n, 3))).to(torch.float32)


def thresholded(images: Float[Tensor, "n 3 h w"]) -> Bool[Tensor, "n p"]:
    """Where there is ink, pixel by pixel."""
    return (images.mean(1) < 0.5).flatten(1)
