"""What a census counted: per weight instance, over all of them, and as a table."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Result, choose

from ..equilibria.equilibrium import Equilibrium
from .proportions import unseen_mass, wilson_interval

NO_END = ("not converged", "slow")
"""Labels of starts that have not arrived anywhere."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class InstanceCensus(Result):
    """All starts of one weight instance.

    ``families`` counts class and eigenvector, ``coarse`` also the sizes, ``fine`` the partition of the tokens; all
    modulo the antipode. ``alignments`` are beta v_k' M v_k for the first and the last eigenvector of a symmetric V.
    """

    instance: int
    n_starts: int
    eigenvalues: Float[Tensor, " d"]
    alignments: tuple[float, float] | None
    families: dict[str, int]
    coarse: dict[str, int]
    fine: dict[str, int] = dataclasses.field(repr=False)
    n_stable: int
    n_not_converged: int
    saddles: int
    times: Float[Tensor, " starts"]
    evaluations: int
    ends: tuple[Equilibrium, ...] = dataclasses.field(repr=False)

    @property
    def multilabel(self) -> bool:
        """Whether more than one coarse label was reached."""
        return len([label for label in self.coarse if label not in NO_END]) > 1

    @property
    def reached_several(self) -> bool:
        """Whether what was reached implies more than one stable equilibrium modulo antipode.

        A stable state of two or more clusters implies others, by exchanging tokens. States that no start reached do
        not count, so that this is a lower bound: ``diagnose.multistability`` unites it with the closed form.
        """
        stable = [end for end in self.ends if end.stable]
        return len({end.fine_label for end in stable}) > 1 or any(len(end.sizes) > 1 for end in stable)

    @property
    def unseen(self) -> float:
        """Good-Turing estimate of the basin of coarse labels that were not reached."""
        return unseen_mass(count for label, count in self.coarse.items() if label not in NO_END)

    def fraction(self, family: str) -> tuple[float, float, float]:
        """Share of the starts that end in a family, with its 95% interval."""
        count = self.families.get(family, 0)
        return count / self.n_starts, *wilson_interval(count, self.n_starts)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Census(Result):
    """All instances of a census."""

    instances: tuple[InstanceCensus, ...]

    @property
    def families(self) -> dict[str, int]:
        """Runs that end in each family, most frequent first."""
        total: Counter[str] = Counter()
        for instance in self.instances:
            total.update(instance.families)
        return dict(total.most_common())

    @property
    def occurrence(self) -> dict[str, int]:
        """Instances in which each family occurs."""
        total: Counter[str] = Counter()
        for instance in self.instances:
            total.update(instance.families.keys())
        return dict(total.most_common())

    @property
    def n_runs(self) -> int:
        """Starts of all instances."""
        return sum(instance.n_starts for instance in self.instances)

    def table(self) -> list[dict[str, Any]]:
        """One row per family: runs, mean share stratified by instance with its standard error, instances."""
        return family_table([instance.families for instance in self.instances])

    def reached_several(self, sense: str = "equilibria") -> tuple[float, float, float]:
        """Share of instances whose starts reach several ends, with its 95% interval.

        Args:
            sense: ``"equilibria"`` (default) or ``"labels"``, as ``InstanceCensus.reached_several`` and ``multilabel``.
        """
        choose("sense", sense, ("equilibria", "labels"))
        hits = [item.reached_several if sense == "equilibria" else item.multilabel for item in self.instances]
        return sum(hits) / len(hits), *wilson_interval(sum(hits), len(hits))


def family_table(instances: Sequence[Mapping[str, int]]) -> list[dict[str, Any]]:
    """The table of a census from what it counted, also where only the counts were kept.

    Args:
        instances: for each weight instance, how many of its starts ended in each family.

    Returns:
        One row per family, most frequent first: runs, mean share stratified by instance with its standard error, and
        the number of instances in which it occurs with its 95% interval.
    """
    rows: list[dict[str, Any]] = []
    for family in dict.fromkeys(name for families in instances for name in families):
        counts = [families.get(family, 0) for families in instances]
        shares = torch.tensor(
            [count / sum(families.values()) for count, families in zip(counts, instances, strict=True)],
            dtype=torch.float64,
        )
        occurs = sum(count > 0 for count in counts)
        low, high = wilson_interval(occurs, len(instances))
        rows.append(
            {
                "family": family,
                "runs": sum(counts),
                "share": float(shares.mean()),
                "standard error": float(shares.std() / len(shares) ** 0.5) if len(shares) > 1 else 0.0,
                "instances": occurs,
                "instances low": low,
                "instances high": high,
            }
        )
    return sorted(rows, key=lambda row: -row["runs"])
