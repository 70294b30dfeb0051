from __future__ import annotations

import pytest
import torch

from separatrix.tasks.relational.polyominoes import FAMILIES, all_cells, colours, connected_masks, objects


def free(mask: tuple[int, ...]) -> frozenset[tuple[int, int]]:
    """A mask up to translation, rotation and mirroring: the least of its eight images."""
    points = [divmod(block, 3) for block in mask]
    images = []
    for flip in (False, True):
        turned = [(r, -c) if flip else (r, c) for r, c in points]
        for _ in range(4):
            turned = [(c, -r) for r, c in turned]
            low = (min(r for r, _ in turned), min(c for _, c in turned))
            images.append(tuple(sorted((r - low[0], c - low[1]) for r, c in turned)))
    return frozenset(min(images))


@pytest.mark.parametrize(("n", "placed"), [(5, 49), (6, 48)])
def test_connected_masks_are_counted_and_have_eight_free_shapes(n: int, placed: int) -> None:
    masks = connected_masks(n)
    assert len(masks) == placed
    assert len({free(mask) for mask in masks}) == 8


def test_objects_are_counted_and_distinct() -> None:
    assert [len(objects(family)) for family in FAMILIES] == [1225, 1200, 625]
    assert len(all_cells().flatten(1).unique(dim=0)) == 1 + 1225 + 1200 + 625


def test_test_families_share_neither_mask_nor_colour_with_training() -> None:
    train, test = ({tuple(c) for c in colours(family).tolist()} for family in FAMILIES[:2])
    assert len(train) == len(test) == 25
    assert not train & test


def test_objects_leave_a_margin_and_hexominoes_have_54_pixels() -> None:
    cells = objects("hexominoes").images.sum(-1) > 0
    assert bool((cells.sum((1, 2)) == 54).all())
    assert not bool(cells[:, 0].any() | cells[:, 10:].any())
    assert torch.equal(objects("stripes").images[0, 1:10, 1:4], objects("stripes").images[0, 1:10, 7:10])
