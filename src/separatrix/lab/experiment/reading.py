"""What a rule reads of a summary: a number that was not measured decides nothing, wherever the rule meets it.

A rule may compare by a column, order rows by it, leave rows out by it or only name them by it. NaN in such a column
shuffles rows, drops them or passes a comparison, each in silence. So a rule is given a summary that notes every NaN it
hands out, and a rule that was given one cannot tell. What does not apply to a row is ``None``, not NaN. And groups that
a statement names must be there: a rule that goes through the rows it finds does not miss those it does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pydantic

from .claim import Claim, Judgement, Verdict
from .summary import Summary

MOST_NAMED = 3


def judge_what_was_measured(claim: Claim, summary: Summary) -> Judgement:
    """What the rule of a claim says of a summary, if all was measured that it read and that the statement names.

    A NaN on the way leaves it undecided, for good and bad news alike. A group that the statement names and the summary
    lacks leaves good news undecided: what is left can refute a statement about all, not confirm it.

    Cost: that of the rule; where the summary holds NaN, also that of a copy of it.
    """
    missing: dict[str, None] = {}
    try:
        judgement = claim.judge(_noting(summary, "", missing))
    except Exception as error:
        if not missing:
            raise
        return Judgement(Verdict.UNDECIDED, f"undecided, because {_told(missing)} ({error})")
    if not isinstance(judgement, Judgement) or judgement.verdict in (Verdict.UNDECIDED, Verdict.NOT_RUN):
        return judgement
    if judgement.verdict is not Verdict.REFUTED:
        missing.update(dict.fromkeys(_absent(claim, summary)))
    if not missing:
        return judgement
    return Judgement(Verdict.UNDECIDED, f"undecided, because {_told(missing)} ({judgement.evidence})", judgement.rows)


def _absent(claim: Claim, summary: Summary) -> Iterator[str]:
    """Groups that the statement names and no row has."""
    for needed in claim.needs:
        is_field = needed.rows in type(summary).model_fields
        rows = getattr(summary, needed.rows) if is_field else summary.tables.get(needed.rows, [])
        found = {row.get(needed.column) for row in rows}
        yield from (f"{needed.column} {value}" for value in needed.entries if value not in found)


def _told(missing: Iterable[str]) -> str:
    """Where the first few stand, and how many more there are."""
    places = list(missing)
    rest = f"; {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    return f"this was not measured: {'; '.join(places[:MOST_NAMED])}{rest}"


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN, or a list with a NaN in it: who is given the list is given the number."""
    if isinstance(value, list | tuple):
        return any(_is_missing(own) for own in value)
    return isinstance(value, float) and math.isnan(value)


def _lacks(value: Any) -> bool:
    """Whether there is a NaN anywhere in a value."""
    if isinstance(value, pydantic.BaseModel):
        return any(_lacks(getattr(value, name)) for name in type(value).model_fields)
    if isinstance(value, dict | list | tuple):
        return any(_lacks(own) for own in (value.values() if isinstance(value, dict) else value))
    return _is_missing(value)


def _noting(value: Any, place: str, missing: dict[str, None]) -> Any:
    """A copy that enters into ``missing`` the place of every NaN which it hands out."""
    if not _lacks(value):
        return value
    if isinstance(value, pydantic.BaseModel):
        return _noting_model(value, place, missing)
    if isinstance(value, dict):
        return _Noting({key: _noting(own, _joined(place, key), missing) for key, own in value.items()}, place, missing)
    if isinstance(value, list | tuple):
        return type(value)(_noting(own, _joined(place, index + 1), missing) for index, own in enumerate(value))
    return value


def _joined(place: str, name: object) -> str:
    return f"{place}, {name}" if place else str(name)


def _noting_model(model: Any, place: str, missing: dict[str, None]) -> Any:
    """The model with a class of its own, so that a field which is NaN is noted when it is asked for."""
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    places = {name: place if name == "tables" else _joined(place, name) for name in fields}
    copied = model.model_copy(update={name: _noting(own, places[name], missing) for name, own in fields.items()})
    bare = frozenset(name for name, own in fields.items() if _is_missing(own))
    if bare:
        own_class = type(model)

        class NotingModel(own_class):  # type: ignore[misc, valid-type]
            def __getattribute__(self, name: str) -> Any:
                if name in bare:
                    missing[places[name]] = None
                return super().__getattribute__(name)

        object.__setattr__(copied, "__class__", NotingModel)
    return copied


class _Noting(dict[Any, Any]):
    """A dictionary that notes each NaN it hands out, also to those who copy it."""

    def __init__(self, values: dict[Any, Any], place: str, missing: dict[str, None]) -> None:
        super().__init__(values)
        self._place, self._missing = place, missing

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        if _is_missing(value):
            self._missing[_joined(self._place, key)] = None
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if super().__contains__(key) else default

    def __iter__(self) -> Iterator[Any]:
        # a dictionary with a way of its own to be walked through is copied key by key
        return iter(list(super().keys()))

    def items(self) -> Any:
        return {key: self[key] for key in self}.items()

    def values(self) -> Any:
        return {key: self[key] for key in self}.values()
