"""What a rule reads of a summary: a number that was not measured decides nothing, wherever the rule meets it.

A rule may compare by a column, order rows by it, leave rows out by it or only name them by it. NaN in such a column
shuffles rows, drops them or passes a comparison, each in silence. So a rule is given a summary that notes every NaN it
hands out, and a rule that was given one cannot tell. What does not apply to a row is ``None``, not NaN. And groups that
a statement names must be there: a rule that goes through the rows it finds does not miss those it does not.
"""

from __future__ import annotations

import cmath
import dataclasses
import decimal
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, final

import pydantic

from .claim import Claim, Judgement, Verdict
from .summary import Summary

MOST_NAMED = 3


def judge_what_was_measured(claim: Claim, summary: Summary) -> Judgement:
    """What the rule of a claim says of a summary, if all was measured that it read and that the statement names.

    A NaN on the way leaves it undecided, for good and bad news alike. A group that the statement names and the summary
    lacks leaves good news undecided: what is left can refute a statement about all, not confirm it. Of tables that are
    judged ``as_a_whole`` bad news is left undecided as well: the rule reads their ends, counts or a best, which what is
    left may not have.

    Cost: that of the rule; where the summary holds NaN, also that of a copy of it.
    """
    missing: dict[str, None] = {}
    try:
        judgement = claim.judge(_noting(summary, "", missing))
    except Exception as error:
        missing.update(dict.fromkeys(_absent(claim, summary)))
        if not missing:
            raise
        return Judgement(Verdict.UNDECIDED, f"undecided, because {_told(missing)} ({error})")
    if not isinstance(judgement, Judgement) or judgement.verdict in (Verdict.UNDECIDED, Verdict.NOT_RUN):
        return judgement
    bad = judgement.verdict is Verdict.REFUTED
    missing.update(dict.fromkeys(_absent(claim, summary, claim.as_a_whole if bad else None)))
    if not missing:
        return judgement
    return Judgement(Verdict.UNDECIDED, f"undecided, because {_told(missing)} ({judgement.evidence})", judgement.rows)


def _absent(claim: Claim, summary: Summary, tables: Collection[str] | None = None) -> Iterator[str]:
    """What the statement names and no row has: in some tables, or in all."""
    for needed in (needed for needed in claim.needs if tables is None or needed.rows in tables):
        is_field = needed.rows in type(summary).model_fields
        rows = getattr(summary, needed.rows) if is_field else summary.tables.get(needed.rows, [])
        listed = rows if isinstance(rows, list | tuple) else []
        yield from needed.lacking([row for row in listed if isinstance(row, Mapping)])


def _told(missing: Iterable[str]) -> str:
    """Where the first few stand, and how many more there are."""
    places = list(missing)
    rest = f"; {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    return f"this was not measured: {'; '.join(places[:MOST_NAMED])}{rest}"


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN of any kind, or a collection with one in it: who is given the list is given the number.

    Of a mapping only the keys count, of a model nothing: what they hold is noted when it is asked for.
    """
    if isinstance(value, float):
        return math.isnan(value)
    if value is None or isinstance(value, int | bytes | pydantic.BaseModel):
        return False
    if isinstance(value, str):
        return value.strip().lower() == "nan"  # a published summary turns the word into the number
    if isinstance(value, complex):
        return cmath.isnan(value)
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    if isinstance(value, Mapping):
        return any(_is_missing(key) for key in value if not isinstance(key, str))
    if hasattr(value, "tolist"):  # arrays, tensors and scalars of other libraries
        return _is_missing(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_lacks(getattr(value, field.name)) for field in dataclasses.fields(value))
    return isinstance(value, Collection) and any(_is_missing(own) for own in value)


def _lacks(value: Any) -> bool:
    """Whether there is a NaN anywhere in a value."""
    return next(_places(value, ""), None) is not None


def _places(value: Any, place: str) -> Iterator[str]:
    """Where there is NaN in a value."""
    if isinstance(value, pydantic.BaseModel):
        for name in type(value).model_fields:
            yield from _places(getattr(value, name), _field_place(place, name))
    elif isinstance(value, Mapping):
        if _is_missing(value):
            yield place
        for key, own in value.items():
            yield from _places(own, _joined(place, key))
    elif isinstance(value, list | tuple):
        for index, own in enumerate(value):
            yield from _places(own, _joined(place, index + 1))
    elif _is_missing(value):
        yield place


def _noting(value: Any, place: str, missing: dict[str, None]) -> Any:
    """A copy that enters into ``missing`` the place of every NaN which it hands out."""
    if not _lacks(value):
        return value
    if isinstance(value, pydantic.BaseModel):
        return _noting_model(value, place, missing)
    if isinstance(value, Mapping):
        return _Noting({key: _noting(own, _joined(place, key), missing) for key, own in value.items()}, place, missing)
    if isinstance(value, list | tuple):
        inner = [_noting(own, _joined(place, index + 1), missing) for index, own in enumerate(value)]
        return value._make(inner) if hasattr(value, "_make") else type(value)(inner)  # a tuple with names
    return value


def _field_place(place: str, name: str) -> str:
    """Tables are named by their titles alone."""
    return place if name == "tables" else _joined(place, name)


def _joined(place: str, name: object) -> str:
    return f"{place}, {name}" if place else str(name)


def _noting_model(model: Any, place: str, missing: dict[str, None]) -> Any:
    """The model with a class of its own, so that a field which is NaN is noted when it is asked for.

    Such a field is no longer among the model's attributes but one of that class, and whoever asks for all
    attributes (``vars``, ``repr``, comparisons, copies, pickles, pydantic's serialisers) is given the number, noted.
    """
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    places = {name: _field_place(place, name) for name in fields}
    copied = model.model_copy(update={name: _noting(own, places[name], missing) for name, own in fields.items()})
    bare = {name: value for name, value in dict(vars(copied)).items() if name in fields and _is_missing(fields[name])}
    everything = dict.fromkeys(_places(model, place))
    own_class = type(model)

    class NotingModel(own_class):  # type: ignore[misc, valid-type]
        def __getattribute__(self, name: str) -> Any:
            if name == "__dict__":
                kept = super().__getattribute__(name)
                lacking = [own for own in bare if own not in kept]
                if lacking:
                    missing.update(dict.fromkeys(places[own] for own in lacking))
                    complete = {own: kept[own] if own in kept else bare[own] for own in fields}
                    kept.clear()
                    kept.update(complete)  # in place: pydantic writes into what it asks for
                return kept
            if name in _WHOLE:
                missing.update(everything)
            return super().__getattribute__(name)

        def __reduce_ex__(self, protocol: Any) -> Any:
            missing.update(everything)
            return own_class.model_construct(**vars(self)).__reduce_ex__(protocol)

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            missing.update(everything)
            return iter(super().__iter__())

        def __eq__(self, other: object) -> bool:
            missing.update(everything)
            return isinstance(other, own_class) and vars(self) == vars(other)

        __hash__ = own_class.__hash__

    for name, value in bare.items():
        setattr(NotingModel, name, _Noted(value, places[name], missing))
        del vars(copied)[name]
    NotingModel.__name__, NotingModel.__qualname__ = own_class.__name__, own_class.__qualname__
    object.__setattr__(copied, "__class__", NotingModel)
    return copied


@final
@dataclasses.dataclass(frozen=True)
class _Noted:
    """A number in the place of an attribute; whoever reads it is noted."""

    value: Any
    place: str
    missing: dict[str, None]

    def __get__(self, owner: object, kind: object) -> Any:
        self.missing[self.place] = None
        return self.value


_WHOLE = frozenset({"model_dump", "model_dump_json", "dict", "json"})
"""Methods of a model that give all of it away."""


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

    def setdefault(self, key: Any, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        self.get(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        self.values()
        return super().popitem()

    def __eq__(self, other: object) -> bool:
        self.values()
        return super().__eq__(other)

    __hash__ = None

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        self.values()
        return super().__repr__()

    def __iter__(self) -> Iterator[Any]:
        # a dictionary with a way of its own to be walked through is copied key by key
        return iter(list(super().keys()))

    def items(self) -> Any:
        return {key: self[key] for key in self}.items()

    def values(self) -> Any:
        return {key: self[key] for key in self}.values()
