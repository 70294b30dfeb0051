"""Every relational task by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from separatrix.core.errors import InvalidInput, unknown_name
from separatrix.core.names import choose, require_options, resolve

from .cognitive import DIRECTIONS, DistributionOfN, PatternTask
from .designs import DESIGNS, without
from .features import ColouredTask, ComparisonTask, SeparatedTask
from .game_rules import RULES
from .games import GameTask
from .glyphs import GlyphSet, glyphs
from .patterns import Design
from .polyominoes import FAMILIES, Family
from .task import RelationalTask

BASIC = ("same_diff", "rmts", "dist3", "identity_rules")
"""The four basic tasks."""
UNSEEN_RELATIONS = ("same_diff6", "rmts3", "identity_rules4", "identity_rules4_missing")
"""Tasks whose test asks relations that training does not show."""
GAME_TESTS: dict[str, tuple[Family, ...]] = {
    rule.name: ("hexominoes",) if rule.needs_shapes else ("hexominoes", "stripes") for rule in RULES.values()
}
"""By rule of a game, the families it is asked on."""


def _shapes(n_shapes: int, glyph_set: GlyphSet | None) -> GlyphSet:
    if glyph_set is None:
        return glyphs(n_shapes)
    if not isinstance(glyph_set, GlyphSet):
        raise InvalidInput(f"glyph_set must be a GlyphSet; got {type(glyph_set).__name__}.")
    return glyph_set


def _extreme(design: Design, shapes: GlyphSet, holdout: int | None) -> int:
    """The holdout that was asked for, else the source's extreme one, as a share of 100 shapes counted from the end."""
    return design.extreme - 100 + len(shapes) if holdout is None else holdout


def _pattern(
    name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None, missing_one: str | None = None
) -> PatternTask:
    shapes = _shapes(n_shapes, glyph_set)
    if missing_one is not None and name != "identity_rules4":
        raise InvalidInput(f"missing_one is for identity_rules4; got it for {name}.")
    design = DESIGNS[name] if missing_one is None else without(missing_one)
    return PatternTask(design, _extreme(design, shapes, holdout), seed, shapes)


def _coloured(name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None) -> ColouredTask:
    relevant: Any = "colour" if name.endswith("_by_colour") else "shape"
    base = _pattern(name.removesuffix("_by_colour").removesuffix("_colour"), holdout, seed, n_shapes, glyph_set)
    return ColouredTask(base, relevant, len(base.glyph_set) if relevant == "colour" else 100)


def _separated(name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None) -> SeparatedTask:
    shapes = _shapes(n_shapes, glyph_set)
    return SeparatedTask(len(shapes) - 2 if holdout is None else holdout, seed, shapes)


def _comparison(name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None) -> ComparisonTask:
    shapes = _shapes(n_shapes, glyph_set)
    held = len(shapes) - 5 if holdout is None else holdout
    return ComparisonTask(held, name.endswith("transitive"), seed, shapes)


def _distribution(
    name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None, n: int = 10
) -> DistributionOfN:
    shapes = _shapes(n_shapes, glyph_set)
    n = 10 if name == "dist10" else n
    return DistributionOfN(n, len(shapes) - (n + 1) if holdout is None else holdout, None, seed, shapes)


def _restricted(
    name: str,
    holdout: int | None,
    seed: int,
    n_shapes: int,
    glyph_set: GlyphSet | None,
    n: int = 10,
    train: str | None = None,
) -> DistributionOfN:
    if train is None:
        raise InvalidInput(
            f"train must be a name, {' or '.join(sorted(DIRECTIONS))}, that says which permutations train."
        )
    direction: Any = choose("train", train, DIRECTIONS)
    shapes = _shapes(n_shapes, glyph_set)
    return DistributionOfN(n, len(shapes) - (n + 1) if holdout is None else holdout, direction, seed, shapes)


def _game(
    name: str, holdout: int | None, seed: int, n_shapes: int, glyph_set: GlyphSet | None, test: str = "hexominoes"
) -> GameTask:
    if holdout is not None or glyph_set is not None:
        raise InvalidInput(
            f"holdout and glyph_set are not for games, whose families are held out; got them for {name}."
        )
    family: Any = choose("test", test, FAMILIES)
    return GameTask(name.removeprefix("game_"), family)


_MAKERS: dict[str, Callable[..., RelationalTask]] = {
    **dict.fromkeys(DESIGNS, _pattern),
    **{f"{name}_colour": _coloured for name in BASIC},
    **{f"{name}_by_colour": _coloured for name in BASIC},
    "same_diff_separated": _separated,
    "comparison": _comparison,
    "comparison_transitive": _comparison,
    "dist10": _distribution,
    "dist_n": _distribution,
    "dist_n_restricted": _restricted,
    **{f"game_{name}": _game for name in RULES},
}
TASK_NAMES: tuple[str, ...] = tuple(_MAKERS)
"""What ``make_task`` knows."""


def make_task(
    name: str,
    *,
    holdout: int | None = None,
    seed: int = 0,
    n_shapes: int = 100,
    glyph_set: GlyphSet | None = None,
    **options: Any,
) -> RelationalTask:
    """A relational task by name.

    Args:
        name: one of ``TASK_NAMES``.
        holdout: m, shapes held out of training; the source's extreme case by default. Not for games.
        seed: of the choice of held-out shapes.
        n_shapes: procedural glyphs, if no set is given.
        glyph_set: other glyphs, of ``read_glyphs`` for instance.
        options: ``missing_one`` of identity_rules4 (a word left out of training), ``n`` of dist_n, ``n`` and ``train``
            of dist_n_restricted, ``test`` of games (``"hexominoes"`` or ``"stripes"``).

    Example:
        >>> task = make_task("identity_rules", holdout=95, seed=0)
        >>> index, label = task.train_batch(3)
        >>> index.shape, label.shape, task.images.shape
        (torch.Size([3, 9]), torch.Size([3]), torch.Size([100, 3, 32, 32]))
    """
    if not isinstance(name, str) or name not in _MAKERS:
        raise unknown_name("relational task", name, TASK_NAMES)
    maker = _MAKERS[name]
    taken = list(inspect.signature(maker).parameters)[5:]
    require_options(f"make_task({name!r})", options, taken)
    return maker(name, holdout, seed, n_shapes, glyph_set, **options)


def find_design(name: str | Design) -> Design:
    """The design of a cognitive task by name."""
    return resolve("design", name, DESIGNS, base=Design)
