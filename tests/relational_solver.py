"""A solver of our tasks by equality alone, written from their descriptions; it never sees a pattern."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[int]


def word(row: Row) -> tuple[int, ...]:
    """The pattern of a row: each object by the place of its first occurrence."""
    return tuple(list(row).index(thing) for thing in row)


def same_or_different(row: Row) -> list[int]:
    half = len(row) // 2
    return [0 if row[:half] == row[half:] else 1]


def match_to_sample(row: Row) -> list[int]:
    third = len(row) // 3
    source, first, second = row[:third], row[third : 2 * third], row[2 * third :]
    return [place for place, other in enumerate((first, second)) if word(source) == word(other)]


def completions(row: Row, n: int) -> list[int]:
    """Choices that give the second row the pattern of the first."""
    first, begun, choices = row[:n], row[n : 2 * n - 1], row[2 * n - 1 :]
    return [place for place, choice in enumerate(choices) if word((*begun, choice)) == word(first)]


def missing(row: Row, n: int) -> list[int]:
    first, begun, choices = row[:n], row[n : 2 * n - 1], row[2 * n - 1 :]
    return [place for place, choice in enumerate(choices) if choice in first and choice not in begun]


def on_a_line(cells: Row) -> bool:
    """Whether three cells of a 3 x 3 board, in ascending order, lie evenly on a straight line."""
    (r1, c1), (r2, c2), (r3, c3) = (divmod(cell, 3) for cell in cells)
    return (r1 + r3, c1 + c3) == (2 * r2, 2 * c2)


def game(rule: str, row: Row) -> list[int]:
    """Boards with 0 for blank."""
    cells = tuple(place for place, thing in enumerate(row) if thing)
    things = tuple(row[place] for place in cells)
    if rule == "same":
        return [int(things[0] == things[1])]
    if rule.startswith("between"):
        return [int(on_a_line(cells) and things[0] == things[2] != things[1])]
    top, *below = things
    if rule == "occurs":
        return [int(top in below)]
    if rule == "xoccurs":
        return [int(below.count(top) == 1 and len(set(below)) == 3)]
    if rule == "row_matching":
        return [int(word(things[:3]) == word(things[3:]))]
    if rule.startswith("column_"):
        assert len(things) == 3
        assert len({place % 3 for place in cells}) == 1
        return [int(word(things) == word(tuple("abc".index(letter) for letter in rule.removeprefix("column_"))))]
    raise AssertionError(rule)


def solve(name: str, row: Row) -> list[int]:
    """Every admissible answer; a sound problem has one."""
    name = name.removesuffix("_by_colour").removesuffix("_colour")
    if name.startswith("game_"):
        return game(name.removeprefix("game_"), row)
    if name in ("same_diff", "same_diff6"):
        return same_or_different(row)
    if name == "same_diff_separated":
        return same_or_different((row[0], row[2]))
    if name in ("rmts", "rmts3"):
        return match_to_sample(row)
    if name.startswith("identity_rules4"):
        return completions(row, 4)
    if name == "identity_rules":
        return completions(row, 3)
    return missing(row, 3 if name == "dist3" else len(row) // 3)
