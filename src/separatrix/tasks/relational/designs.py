"""The designs of the cognitive tasks: which patterns, with which answers, in training and in the test."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from separatrix.core.names import choose

from .patterns import Design, Pattern

WORDS = ("aaaa", "abaa", "aaba", "baaa", "abba", "abab", "aabb")
"""Rules over four places with at most two objects."""
NEW_WORDS = ("abca", "baca", "bcaa")
"""Rules over four places with three objects."""


def same_diff() -> Design:
    """Are two objects the same?"""
    patterns = (Pattern("same", (0, 0), 0), Pattern("different", (0, 1), 1))
    return Design("same_diff", 2, patterns, patterns, 0, 98, 96)


def rmts() -> Design:
    """Relational match to sample: which of two pairs is related as the source pair is?

    No object is shared between pairs.
    """
    patterns = (
        Pattern("source same, first pair", (0, 0, 1, 1, 2, 3), 0),
        Pattern("source same, second pair", (0, 0, 2, 3, 1, 1), 1),
        Pattern("source different, first pair", (0, 1, 3, 4, 2, 2), 0),
        Pattern("source different, second pair", (0, 1, 2, 2, 3, 4), 1),
    )
    return Design("rmts", 2, patterns, patterns, 0, 95, 96, (2, 2, 2))


def dist3() -> Design:
    """Distribution of three: which object is missing from the second row?"""
    patterns = tuple(
        Pattern("".join("abc"[k] for k in order), (0, 1, 2, *order[:2]), order[2])
        for order in itertools.permutations(range(3))
    )
    return Design("dist3", 4, patterns, patterns, 4, 95, 96, (3, 2))


def identity_rules() -> Design:
    """Which object completes the second row by the rule of the first?"""
    patterns = tuple(_rule(word) for word in ("aaa", "aba", "abb"))
    return Design("identity_rules", 4, patterns, patterns, 4, 95, 96, (3, 2))


def identity_rules4(train: Sequence[str] = WORDS, test: Sequence[str] = NEW_WORDS, name: str = "") -> Design:
    """Rules over four places; those of the test are none of the training."""
    learned, asked = tuple(map(_rule, train)), tuple(map(_rule, test))
    return Design(name or "identity_rules4", 6, learned, asked, 6, 94, 32 * len(learned), (4, 3))


def without(*words: str) -> Design:
    """Rules over four places, some words left out of training.

    Example:
        >>> without("abab").name
        'identity_rules4_missing_abab'
    """
    for word in words:
        choose("missing_one", word, WORDS)
    kept = tuple(word for word in WORDS if word not in words)
    return identity_rules4(kept, NEW_WORDS, "identity_rules4_missing_" + "_".join(words))


def _rule(word: str) -> Pattern:
    """A first row and the second without its last object; the second has its own objects."""
    first = ["abc".index(letter) for letter in word]
    k = len(set(first))
    second = [k + place for place in first]
    return Pattern(word, (*first, *second[:-1]), second[-1])


def same_diff6() -> Design:
    """Are two triplets the same? Different ones are made of the same two objects, so objects do not give it away."""
    forms = {"aaa": (0, 0, 0), "baa": (1, 0, 0), "aba": (0, 1, 0)}
    same = [Pattern(f"{name} {name}", (*form, *form), 0, 2) for name, form in forms.items()]
    pairs = itertools.permutations(forms, 2)
    different = [Pattern(f"{one} {two}", (*forms[one], *forms[two]), 1) for one, two in pairs]
    new = (0, 0, 1)
    test = [Pattern("aab aab", (*new, *new), 0, 6)]
    for name, form in forms.items():
        test += [Pattern(f"aab {name}", (*new, *form), 1), Pattern(f"{name} aab", (*form, *new), 1)]
    return Design("same_diff6", 2, (*same, *different), tuple(test), 0, 98, 384, (3, 3))


def rmts3() -> Design:
    """Which of two triplets has the pattern of the source triplet? The patterns of the test are new."""
    train = ("aaa/bbb/cdc", "aaa/bbb/dcc", "aba/cdc/eee", "abb/cdd/eee", "aba/cdc/eff", "abb/cdd/efe")
    test = ("aab/ccd/efg", "abc/fgh/dde")
    return Design("rmts3", 2, _placed(train), _placed(test), 0, 94, 192, (3, 3, 3))


def _placed(cells: Sequence[str]) -> tuple[Pattern, ...]:
    """Source, match and other: the match as first and as second of the two."""
    patterns = []
    for cell in cells:
        source, match, other = (tuple("abcdefgh".index(letter) for letter in word) for word in cell.split("/"))
        patterns.append(Pattern(f"{cell} first", (*source, *match, *other), 0))
        patterns.append(Pattern(f"{cell} second", (*source, *other, *match), 1))
    return tuple(patterns)


DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        same_diff(),
        rmts(),
        dist3(),
        identity_rules(),
        same_diff6(),
        rmts3(),
        identity_rules4(),
        identity_rules4(tuple(w for w in WORDS if w not in ("abaa", "abab")), NEW_WORDS, "identity_rules4_missing"),
        identity_rules4(NEW_WORDS, WORDS, "identity_rules4_flipped"),
        identity_rules4(("baca", "bcaa"), WORDS, "identity_rules4_flipped_missing"),
        without("abaa"),
        without("abab"),
    )
}
