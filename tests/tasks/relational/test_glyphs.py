from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image

from separatrix.core import CorruptData, InvalidInput, MissingData
from separatrix.tasks import GlyphSet, glyphs, make_task, read_glyphs, unicode_glyphs
from separatrix.tasks.relational.glyphs import APART, DARK, thresholded


def test_fewer_glyphs_of_a_seed_are_the_first_of_more() -> None:
    assert torch.equal(glyphs(20, 5).images, glyphs(40, 5).images[:20])
    assert not torch.equal(glyphs(20, 5).images, glyphs(20, 6).images)


def test_glyphs_are_black_on_white_and_far_apart() -> None:
    images = glyphs(100).images
    assert images.shape == (100, 3, 32, 32)
    assert torch.equal(images[:, 0], images[:, 2])
    assert bool((images[:, :, 0] == 1).all())
    ink = (1 - images).mean((1, 2, 3))
    assert DARK[0] < float(ink.min()) < float(ink.max()) < DARK[1]
    marks = thresholded(images)
    apart = (marks.unsqueeze(0) ^ marks.unsqueeze(1)).sum(-1) + 10_000 * torch.eye(100, dtype=torch.int64)
    assert int(apart.min()) >= APART


@pytest.mark.slow
def test_four_hundred_glyphs_can_be_had() -> None:
    assert len(glyphs(400)) == 400


@pytest.mark.parametrize("n", [1, 401])
def test_too_few_or_too_many_glyphs_are_refused(n: Any) -> None:
    with pytest.raises(InvalidInput, match="n must be"):
        glyphs(n)


def write(folder: Path, n: int, size: int = 32, mode: str = "L") -> None:
    for k in range(n):
        values = numpy.full((size, size), 255, dtype=numpy.uint8)
        values[k % size, : 1 + k // size] = 0
        Image.fromarray(values).convert(mode).save(folder / f"{k}.png")


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_folder_of_pictures_becomes_a_set_in_the_order_of_numbers(tmp_path: Path, mode: str) -> None:
    write(tmp_path, 12, mode=mode)
    found = read_glyphs(tmp_path, 12)
    assert found.images.shape == (12, 3, 32, 32)
    assert float(found.images[10, 0, 10, 0]) == 0.0
    assert len(make_task("same_diff", holdout=6, glyph_set=found).ids("test")) == 6


def test_a_bad_folder_is_answered_with_the_names_of_files(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="there is none"):
        read_glyphs(tmp_path / "nowhere", 3)
    write(tmp_path, 3)
    with pytest.raises(InvalidInput, match=r"at least 4 PNG files; got 3 \(0.png, 1.png, 2.png\)"):
        read_glyphs(tmp_path, 4)
    Image.fromarray(numpy.zeros((8, 8), dtype=numpy.uint8)).save(tmp_path / "3.png")
    with pytest.raises(InvalidInput, match=r"others have 3\.png"):
        read_glyphs(tmp_path, 4)
    Image.open(tmp_path / "0.png").save(tmp_path / "3.png")
    with pytest.raises(InvalidInput, match=r"0\.png and 3\.png are equal"):
        read_glyphs(tmp_path, 4)


@pytest.mark.parametrize(
    ("images", "words"),
    [(torch.ones(3, 3, 4, 4), "distinct"), (2 * torch.rand(3, 3, 4, 4), r"\[0, 1\]")],
)
def test_images_that_are_no_glyphs_are_refused(images: torch.Tensor, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        GlyphSet("bad", images)


@pytest.mark.needs_data
def test_the_public_glyphs_are_read_with_white_background() -> None:
    images = unicode_glyphs().images
    assert images.shape == (100, 3, 32, 32)
    assert float(images.flatten(1).median()) == 1.0


def test_a_file_that_is_no_picture_is_named_and_what_is_transparent_is_white(tmp_path: Path) -> None:
    for k in range(2):
        pixels = numpy.zeros((4, 4, 4), dtype=numpy.uint8)
        pixels[k, k, 3] = 255  # one black pixel on nothing
        Image.fromarray(pixels, "RGBA").save(tmp_path / f"{k}.png")
    images = read_glyphs(tmp_path, 2).images
    assert images[:, 0].sum((1, 2)).tolist() == [15.0, 15.0]
    (tmp_path / "1.png").write_bytes(b"none")
    with pytest.raises(CorruptData, match=r"1.png is no PNG file"):
        read_glyphs(tmp_path, 2)
