"""What a relational task is called where people read it."""

from __future__ import annotations

import re

_TITLES = {
    "same_diff": "same or different",
    "rmts": "match to sample",
    "dist": "distribution of",
    "identity_rules": "identity rules",
    "comparison": "comparison",
}
"""By the first part of a name; the number behind it is how many objects or answers there are."""
_NUMBERS = {"3": "three", "4": "four", "6": "six", "10": "ten", "_n": "n"}
_ENDINGS = {
    "_by_colour": ", by colour",
    "_colour": ", coloured",
    "_separated": ", separated",
    "_transitive": ", transitive",
    "_flipped": ", flipped",
    "_missing": ", one missing",
    "_restricted": ", restricted",
}
"""What a task does otherwise, said after it."""


def task_title(name: str) -> str:
    """A task in words; a name that no task has is given back without underlines.

    Example:
        >>> task_title("same_diff"), task_title("dist3"), task_title("identity_rules4_flipped_missing")
        ('same or different', 'distribution of three', 'identity rules (four), flipped, one missing')
        >>> task_title("game_row_matching"), task_title("dist_n_restricted:even"), task_title("my_task")
        ('game: row matching', 'distribution of n, restricted, even', 'my task')
    """
    rest, _, more = name.partition(":")
    said = f", {more}" if more else ""
    while ending := next((end for end in _ENDINGS if rest.endswith(end)), None):
        rest, said = rest.removesuffix(ending), _ENDINGS[ending] + said
    found = re.fullmatch(rf"({'|'.join(_TITLES)})(\d+|_n)?", rest)
    if found is None:
        return rest.replace("game_", "game: ").replace("_", " ") + said
    many = _NUMBERS.get(found[2] or "", found[2] or "")
    title = _TITLES[found[1]]
    return (f"{title} {many}" if title.endswith(" of") else f"{title} ({many})" if many else title) + said
