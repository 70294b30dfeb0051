"""Kerg 2022 on Lie algebras of matrices and their exponentials (appendix E): errata and numbered items."""

from __future__ import annotations

from separatrix.sources.document import Erratum, Item

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="kerg2022-skew-hermitian",
        place="appendix E",
        printed="a matrix is skew-Hermitian if and only if its eigenvalues are purely imaginary",
        correct="only if; the converse needs a normal matrix",
        evidence="[[i, 1], [0, i]]",
    ),
    Erratum(
        key="kerg2022-unitary-closed",
        place="appendix E",
        printed="U(n) is closed as the preimage of the unit circle under the determinant",
        correct="that preimage is larger; U(n) is the preimage of the identity under A -> A*A",
        evidence="diag(2, 1/2) has determinant one",
    ),
)
ITEMS: tuple[Item, ...] = (
    Item(
        "text",
        "Lie groups",
        "appendix E",
        "what a Lie group and a Lie algebra are; Cartan, Heine-Borel",
        (),
        "definitions and theorems of others, quoted",
    ),
    Item(
        "text",
        "unitary and diagonal groups",
        "appendix E.1, two propositions",
        "U(n) and e(n) are connected and compact",
        ("kerg2022-E-unitary",),
    ),
    Item(
        "text",
        "triangular group",
        "appendix E.1, third proposition",
        "t(n) is connected and locally compact",
        ("kerg2022-E-triangular",),
    ),
    Item(
        "text",
        "Lie algebras",
        "appendix E.2, propositions, corollary and last remark",
        "the algebras of e(n), t(n), U(n) and SO(n); turning a group turns its algebra",
        ("kerg2022-E-algebras",),
    ),
    Item(
        "text",
        "spectra without real part",
        "appendix E.2, proof of the corollary",
        "skew-Hermitian matrices are those whose eigenvalues have no real part",
        ("kerg2022-E-imaginary-spectra",),
    ),
    Item(
        "text",
        "turned groups",
        "appendix E.2, last proposition",
        "turning a group keeps it connected, compact or locally compact",
        (),
        "turning is a continuous bijection with a continuous inverse; nothing to measure",
    ),
)
