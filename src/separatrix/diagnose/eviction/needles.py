"""Needles in a haystack: what a model still finds under a cache, by where it stood and how large the cache is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

from jaxtyping import Bool, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result, frame

from .audit import cache_audit

if TYPE_CHECKING:
    import pandas

NeedleProblems: TypeAlias = Callable[[int, bool], tuple[Int[Tensor, "batch t"], Bool[Tensor, "batch t"]]]
"""From the place of the needle and whether it is paraphrased to tokens and the queries that are scored."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class NeedleTable(Result):
    """Accuracy of every cache at every budget, place and wording."""

    rows: tuple[Mapping[str, Any], ...]
    """``cache``, ``budget``, ``place``, ``wording`` (exact or paraphrased), ``accuracy``, ``unbounded``."""

    def to_frame(self) -> pandas.DataFrame:
        """One row a combination."""
        return frame([dict(row) for row in self.rows])

    def accuracy(self, cache: str, budget: int, wording: str = "exact") -> dict[int, float]:
        """By place."""
        wanted = {"cache": cache, "budget": budget, "wording": wording}
        found = [row for row in self.rows if all(row[key] == value for key, value in wanted.items())]
        if not found:
            raise InvalidInput(f"the table has no row with {wanted}.")
        return {row["place"]: row["accuracy"] for row in found}

    def __repr__(self) -> str:
        places = sorted({row["place"] for row in self.rows})
        keys = list(dict.fromkeys((row["cache"], row["budget"], row["wording"]) for row in self.rows))
        names = max((len(str(key[0])) for key in keys), default=5)
        lines = [f"  {'cache':<{names}}  budget  wording      " + " ".join(f"{place:>6}" for place in places)]
        for cache, budget, wording in keys:
            by_place = self.accuracy(cache, budget, wording)
            cells = " ".join(f"{by_place[p]:6.3f}" if p in by_place else "     -" for p in places)
            lines.append(f"  {cache:<{names}}  {budget:>6}  {wording:<11}  {cells}")
        return "\n".join(["NeedleTable: accuracy by place of the needle", *lines])


def needle_table(
    model: Any,
    problems: NeedleProblems,
    caches: Mapping[str, Callable[[int], Any]],
    *,
    places: Sequence[int],
    budgets: Sequence[int],
    paraphrased: Sequence[bool] = (False, True),
    prefill: int = 1,
) -> NeedleTable:
    """Ask for needles at several places under several caches of several sizes.

    Args:
        model: as for ``cache_audit``.
        problems: makes tokens and scored queries for a needle at a place, exact or paraphrased.
        caches: by name, what makes a cache of a given budget.
        places: of the needle.
        budgets: keys that a head may hold.
        paraphrased: which wordings to ask in.
        prefill: tokens of the first call.

    Cost: an audit for every place, wording and budget.
    """
    sizes = [require_integer(budget, "budgets", at_least=1) for budget in budgets]
    if not sizes or not places or not caches or not paraphrased:
        raise InvalidInput("places, budgets, paraphrased and caches must each hold at least one; one is empty.")
    labels = {f"{name} {size}": (name, size) for name in caches for size in sizes}
    makers = {label: _maker(caches[name], size) for label, (name, size) in labels.items()}
    rows = []
    for is_paraphrased in paraphrased:
        for place in places:
            tokens, scored = problems(place, is_paraphrased)
            audit = cache_audit(model, tokens, makers, scored=scored, prefill=prefill)
            for row in audit.rows:
                name, size = labels[row.name]
                rows.append(
                    {
                        "cache": name,
                        "budget": size,
                        "place": place,
                        "wording": "paraphrased" if is_paraphrased else "exact",
                        "accuracy": row.accuracy,
                        "unbounded": audit.unbounded_accuracy,
                    }
                )
    return NeedleTable(tuple(rows))


def _maker(build: Callable[[int], Any], size: int) -> Callable[[], Any]:
    return lambda: build(size)
