"""kerg2022, appendix E: the unitary and triangular matrix groups and their Lie algebras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, condition, judge, with_entry

from . import algebra_measures
from .parts import Measured, at_least, at_most, experiment_of_parts, run_part, within

PARTS: dict[str, Callable[[int, Any], Payload]] = {
    "unitary group": algebra_measures.unitary_group,
    "triangular group": algebra_measures.triangular_group,
    "algebras": algebra_measures.algebras,
    "imaginary spectra": algebra_measures.imaginary_spectra,
}


def run(cell: Cell) -> Payload:
    """Measure one statement at random instances."""
    return run_part(cell, PARTS)


def judge_spectra(summary: Measured) -> Judgement:
    """Decide ``kerg2022-E-imaginary-spectra``."""
    found = summary.parts["imaginary spectra"]
    inside = Row("real part of an eigenvalue, skew-Hermitian", found["real part, skew-Hermitian"], 0.0, 1e-10)
    normal = found["off skew-Hermitian, normal"]
    stated = Row("distance from skew-Hermitian, eigenvalues without real part", found["off skew-Hermitian"], 0.0, 1e-10)
    right = Row("the same, normal matrices", normal, 0.0, 1e-10)
    evidence = (
        f"matrices whose eigenvalues have no real part are up to {found['off skew-Hermitian']:.2g} off the "
        f"skew-Hermitian ones, {small(normal)} if normal"
    )
    says = "among normal matrices; a nilpotent matrix has the eigenvalue 0 alone and is not skew-Hermitian"
    return judge(evidence, [inside, stated], condition(says, [inside, right]))


def _claim(id: str, statement: str, measures: str, test: str, **parts: Any) -> Claim:
    return Claim(id=f"kerg2022-E-{id}", statement=statement, measures=measures, test=test, **parts)


EXPERIMENT = experiment_of_parts(
    "kergE-algebras",
    "Unitary and triangular matrix groups and their Lie algebras",
    "appendix E",
    PARTS,
    (
        _claim(
            "unitary",
            "The unitary matrices, and the diagonal ones among them, are bounded and connected.",
            "largest entry of random unitary matrices; paths to the identity by their eigenvalues",
            "at most 1; paths inside to 1e-10",
            judge=within(
                "unitary group",
                at_most("largest entry", 1 + 1e-12),
                at_most("off the group on the path", 1e-10),
                at_most("gap at the end of the path", 1e-10),
            ),
            counterfeit=with_entry("parts", "unitary group", **{"off the group on the path": 0.1}),
        ),
        _claim(
            "triangular",
            "Triangular matrices with a diagonal on the unit circle are a connected group, locally compact and not "
            "compact.",
            "products, inverses and paths of random members; a member far from the identity",
            "inside to 1e-8; a member with an entry above 1e5",
            judge=within(
                "triangular group",
                at_most("off the group, products", 1e-8),
                at_most("off the group, inverses", 1e-8),
                at_most("off the group, paths", 1e-12),
                at_least("least entry of a far member", 1e5),
            ),
            counterfeit=with_entry("parts", "triangular group", **{"off the group, products": 0.1}),
        ),
        _claim(
            "algebras",
            "The Lie algebras of the diagonal, triangular, unitary and rotation groups are the stated ones, and "
            "turning a group turns its algebra.",
            "exponentials of random members at four times, and of matrices just outside",
            "inside to 1e-8; outside by at least 1e-3",
            judge=within(
                "algebras",
                *(at_most(f"off {group}", 1e-8) for group in ("e(n)", "t(n)", "U(n)", "SO(n)", "a turned group")),
                *(at_least(f"least off {group}, others", 1e-3) for group in ("t(n)", "U(n)", "SO(n)")),
            ),
            counterfeit=with_entry("parts", "algebras", **{"off U(n)": 0.1}),
        ),
        _claim(
            "imaginary-spectra",
            "Skew-Hermitian matrices are precisely those whose eigenvalues have no real part.",
            "eigenvalues of skew-Hermitian matrices; matrices made with such eigenvalues, normal and others",
            "1e-10",
            judge=judge_spectra,
            counterfeit=with_entry(
                "parts", "imaginary spectra", **{"real part, skew-Hermitian": 0.1, "off skew-Hermitian, normal": 0.1}
            ),
            erratum="kerg2022-skew-hermitian",
        ),
    ),
    run=run,
    rehearsed=3,
    seeds=(10, 11, 12),
)
